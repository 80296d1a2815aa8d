"""What teachers and students share: embeddings, character encoder, BiLSTM and Transformer, heads, models of these."""
