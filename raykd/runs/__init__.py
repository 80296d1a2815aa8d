"""One resolved run and all that is done with it: prepare, precompute, distil, evaluate, measure its cost."""
