"""The phase `features`: frozen encoders read the text that models and teachers need of them."""

from __future__ import annotations

from raykd.precompute.transfer import compute_features
from raykd.sweep.phases.interface import Phase


class Features(Phase):
    """Computes the features that are not stored yet. Signals that a teacher cannot give are refused before it."""

    name = "features"
    _summary = ""

    def run(self) -> tuple[()]:
        sweep = self.sweep
        sweep.transfer()
        self._summary = compute_features(
            sweep.storage, sweep.models(), sweep.teacher_texts(), sweep.file.resources, self.context.cluster,
            self.listener, sweep.nodes,
        )  # fmt: skip
        return ()

    def summary(self) -> str:
        return self._summary
