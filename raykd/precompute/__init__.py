"""What is computed once: teachers' signals, encoders' features, costs."""
