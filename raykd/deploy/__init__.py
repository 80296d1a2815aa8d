"""A trained model as it ships."""
