"""What of a sweep file says how it is tracked."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from raykd.spec import Frozen


class TrackingConfig(Frozen):
    """Where MLflow writes."""

    uri: Annotated[str, Field(min_length=1)] = "sqlite:///mlflow.db"
    artifacts: Annotated[str, Field(min_length=1)] | None = None
    """Folder or bucket below which MLflow keeps the files of a new experiment. By default a tracking server's own; with
    a database `mlruns`, beside the SQLite file or, of PostgreSQL, in the working directory."""
    models: Literal["front", "none"] = "front"
    """Which students are logged as models that MLflow serves, and registered under the sweep's name."""
