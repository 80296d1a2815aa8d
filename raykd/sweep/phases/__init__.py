"""The phases of a sweep, one module each."""
