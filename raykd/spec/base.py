"""The base of every configuration model."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Base of every configuration model: immutable, strict, unknown keys refused."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, validate_default=True, use_attribute_docstrings=True
    )
