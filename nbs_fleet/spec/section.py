"""What every section of a YAML file of ours is made of: strict, with a meaning for each key."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field

NOBODY = "nobody restarts"


def key(meaning: str, *, change: str = NOBODY, default: str = "", example: Any = None, must: bool = False) -> Any:
    """A key of the file; `default` where it is not the value that the code carries anyway."""
    return Field(
        default=... if must else None,
        description=meaning,
        json_schema_extra={"x-change": change, "x-default": default},
        examples=None if example is None else [example],
    )


class Strict(BaseModel):
    """A section of the file."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)
