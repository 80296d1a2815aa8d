"""The phases that compute once for a whole sweep: teachers' signals, encoders' features, costs."""
