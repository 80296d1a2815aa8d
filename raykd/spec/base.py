"""The base of every configuration model."""

from typing import ClassVar

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Base of every configuration model: immutable, strict, unknown keys refused."""

    renamed: ClassVar[tuple[tuple[str, str], ...]] = ()
    """(former name, present name) of keys that were renamed: `check` refuses the former with the present as hint."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, validate_default=True, use_attribute_docstrings=True
    )
