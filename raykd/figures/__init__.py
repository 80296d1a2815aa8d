"""Every figure of a trial; results, trials and fronts."""
