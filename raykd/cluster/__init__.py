"""Ray: nodes, placement, the executor, groups of workers."""
