"""What one interaction is."""

from __future__ import annotations

from dataclasses import dataclass, field

from tests.conformance.stage import Setting


@dataclass(frozen=True)
class Interaction:
    """A short play with a client. `name` is its file's name, too; `about` is the line it has on the reference page.

    `aside` names parts of what is seen that have no order or no fixed content in the real client (`rows`, `hooks`,
    `transcript`, `requests`, `files`); they are compared without order, or with a leading `-` not at all.
    With `notice` the reminder of an open permission is compared, too.
    """

    name: str
    about: str
    steps: tuple[str, ...]
    setting: Setting = field(default_factory=Setting)
    aside: frozenset[str] = frozenset()


def play(name: str, about: str, steps: str, setting: Setting | None = None, *, aside: str = "") -> Interaction:
    """An interaction with its steps as lines."""
    lines = tuple(line.strip() for line in steps.strip().splitlines() if line.strip())
    return Interaction(name, about, lines, setting or Setting(), frozenset(aside.split()))
