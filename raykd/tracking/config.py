"""The section `tracking` of a sweep file."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from raykd.spec import Frozen


class TrackingConfig(Frozen):
    """The MLflow server or database of a sweep, and the files and models written to it."""

    uri: Annotated[str, Field(min_length=1)] = "sqlite:///mlflow.db"
    artifacts: Annotated[str, Field(min_length=1)] | None = None
    """Folder or bucket for the files of a new experiment.

    By default a tracking server uses its own setting. With a database it is `mlruns`: beside an SQLite file, or in the
    working directory for PostgreSQL.
    """
    models: Literal["front", "none"] = "front"
    """The students logged as models that MLflow serves, and registered under the sweep's name."""
