"""The phase `precompute`: what teachers know is computed once, for every trial of the sweep."""

from __future__ import annotations

from raykd.precompute.plan import PrecomputeResult, estimate
from raykd.precompute.transfer import compute_missing
from raykd.sweep.phases.interface import Phase, PhaseContext
from raykd.sweep.teacher_rows import refuse_unlearnt


class Precompute(Phase):
    """Computes the shards that are missing.

    Raises:
        UnlearntError: no teacher learnt anything.
    """

    name = "precompute"

    def __init__(self, context: PhaseContext):
        super().__init__(context)
        self.computed: PrecomputeResult | None = None
        """None where no objective reads what is stored of a teacher."""
        self._found_files = 0

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

    def summary(self) -> str:
        done = self.computed
        if done is None:
            return ""
        return (
            f"{done.computed_shards} shards computed, {self._found_files} files found; "
            f"{done.bytes / 2**20:.1f} MiB, {done.bytes / max(done.tokens, 1):.0f} bytes per token"
        )
