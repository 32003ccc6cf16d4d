"""What reading a team file gives: the team, and where each of its values came from."""

from __future__ import annotations

from msgspec import Struct

from nbs_fleet.spec.team import Team


class Origin(Struct, frozen=True):
    """Where a value was set: `teams/review.yaml:12`, `role x, teams/review.yaml:7` or `environment`.

    `shown` is its text as written where variables were expanded in it; the value itself must not be printed then.
    """

    where: str
    shown: str | None = None


class Loaded(Struct, frozen=True):
    """A valid team file.

    `source` is a digest of the text of `files` (absolute paths, the main file first). `origins` maps a dotted key,
    such as `agents.bo-1.dialogs.plan`, to where the file or the environment set it; what is missing is a default.
    `warnings` are lines like those of errors. `secrets` are values of variables used in the file whose names look
    secret; they are to be masked wherever text is kept.
    """

    team: Team
    source: str
    files: tuple[str, ...]
    origins: dict[str, Origin]
    warnings: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
