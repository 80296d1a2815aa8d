"""The phase `features`: frozen encoders read the text for models and teachers."""

from __future__ import annotations

from typing_extensions import override

from raykd.precompute.transfer import compute_features
from raykd.sweep.phases.interface import Phase


class Features(Phase):
    """Computes the missing features. Signals that a teacher cannot give are refused first."""

    name = "features"
    _summary = ""

    @override
    def run(self) -> tuple[()]:
        sweep = self.sweep
        sweep.transfer()
        self._summary = compute_features(
            sweep.storage, sweep.models(), sweep.teacher_texts(), sweep.file.resources, self.context.cluster,
            self.listener, sweep.nodes,
        )  # fmt: skip
        return ()

    @override
    def summary(self) -> str:
        return self._summary
