"""Networks and configurations of teachers and students: embeddings, encoders, heads, and whole models."""
