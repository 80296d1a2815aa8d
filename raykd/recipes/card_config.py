"""Licences and names of data sets for model cards, which only a person can state."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from raykd.spec import Frozen

NonEmptyText = Annotated[str, Field(min_length=1)]


class CardConfig(Frozen):
    """Licences and data sets for the model cards of exports. Nothing is assumed: a missing key reads "not stated"."""

    license: NonEmptyText | None = None
    """Licence of the models, by its name on Hugging Face: `apache-2.0`, `cc-by-4.0`, …"""
    data_license: NonEmptyText | None = None
    """Licence of the corpus."""
    datasets: tuple[NonEmptyText, ...] = ()
    """Names of the corpus on Hugging Face: `unimelb-nlp/wikiann`."""
