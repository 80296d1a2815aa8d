"""Export of trained models."""
