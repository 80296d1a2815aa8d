"""The figures of a trial; results, trials and fronts."""
