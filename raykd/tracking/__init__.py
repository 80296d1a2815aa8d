"""What MLflow shows: one experiment per sweep name, one parent run per sweep, one child per trial.

The only package that imports mlflow, used in the driver only.
"""

from raykd.tracking.origin import git_commit
from raykd.tracking.registry import SHIP
from raykd.tracking.server import LOCAL_DEFAULT, check, is_relative, resolve
from raykd.tracking.tracker import Tracker

__all__ = ["LOCAL_DEFAULT", "SHIP", "Tracker", "check", "git_commit", "is_relative", "resolve"]
