"""The training loop: stages, batches, checkpoints, evaluation; models and what they read."""
