"""What only a person knows of a model and its data."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from raykd.spec import Frozen

NonEmptyText = Annotated[str, Field(min_length=1)]


class CardConfig(Frozen):
    """What the model cards of exports say of licences. Nothing is assumed: what is missing is "not stated"."""

    license: NonEmptyText | None = None
    """Of the models, as Hugging Face names it: `apache-2.0`, `cc-by-4.0`, …"""
    data_license: NonEmptyText | None = None
    """Of the corpus."""
    datasets: tuple[NonEmptyText, ...] = ()
    """Names of the corpus on Hugging Face: `unimelb-nlp/wikiann`."""
