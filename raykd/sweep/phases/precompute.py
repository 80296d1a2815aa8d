"""The phase `precompute`: compute the signals of the teachers once, for all trials of the sweep."""

from __future__ import annotations

from typing_extensions import override

from raykd.precompute.plan import PrecomputeResult, estimate
from raykd.precompute.transfer import compute_missing
from raykd.sweep.phases.interface import Phase, PhaseContext
from raykd.sweep.teacher_rows import refuse_unlearnt


class Precompute(Phase):
    """Computes the missing shards.

    Raises:
        UnlearntError: no teacher learnt anything.
    """

    name = "precompute"

    def __init__(self, context: PhaseContext):
        super().__init__(context)
        self.computed: PrecomputeResult | None = None
        """None where no objective reads what is stored of a teacher."""
        self._found_files = 0

    @override
    def run(self) -> tuple[()]:
        sweep = self.sweep
        refuse_unlearnt(sweep, self.listener)
        plan = sweep.transfer()
        if plan is not None:
            self._found_files = estimate(plan).cached_shards
            self.computed = compute_missing(
                self.name, plan, sweep.file.resources, self.context.cluster, self.listener, sweep.nodes
            )
        return ()

    @override
    def summary(self) -> str:
        computed = self.computed
        if computed is None:
            return ""
        return (
            f"{computed.computed_shards} shards computed, {self._found_files} files found; "
            f"{computed.bytes / 2**20:.1f} MiB, {computed.bytes / max(computed.tokens, 1):.0f} bytes per token"
        )
