"""A sweep in MLflow: one experiment per sweep name, one parent run per sweep, one child run per trial.

This is the only package that imports mlflow. Only the driver uses it.
"""
