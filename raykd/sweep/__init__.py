"""All trials of one file: the search space, the driver, the study, records to resume from."""
