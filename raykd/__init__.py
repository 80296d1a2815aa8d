"""raykd: the smallest and fastest sequence labeller that keeps a teacher's accuracy."""
