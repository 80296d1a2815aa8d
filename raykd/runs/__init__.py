"""One resolved run and all that is done with it: prepare, precompute (Ray Data), distil (Ray Train), evaluate, measure."""
