"""What MLflow shows: one experiment per sweep name, one parent run per sweep, one child per trial.

The only package that imports mlflow, used in the driver only.
"""
