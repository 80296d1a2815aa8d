"""Every figure of a trial; results, trials, fronts."""
