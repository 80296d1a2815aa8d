"""What runs outside the house: an exported model as a labeller of text."""
