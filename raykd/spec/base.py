"""The base of all configuration models."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Base of all configuration models: immutable, strict, unknown keys refused."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, validate_default=True, use_attribute_docstrings=True
    )
