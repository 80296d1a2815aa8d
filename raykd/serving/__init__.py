"""Serving: an exported model as a labeller of text, without the rest of raykd."""
