"""The command `raykd`: one module per verb, and the only place that prints."""
