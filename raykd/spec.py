"""The grammar of sweep files: YAML 1.2 with line numbers, searchable values, strict errors."""

from pydantic import BaseModel, ConfigDict


class Frozen(BaseModel):
    """Base of every configuration model: immutable, strict, unknown keys refused."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True)
