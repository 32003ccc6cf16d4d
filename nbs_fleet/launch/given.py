"""Which messages a client keeps in an inbox of its own, for which of its sessions: beyond its own end, too."""

from __future__ import annotations

import json
import os

from nbs_fleet.errors import FleetError
from nbs_fleet.jsontext import load_object
from nbs_fleet.launch.files import read_text, write_atomic
from nbs_fleet.plan.paths import AgentPaths

FILE = "given.json"
KEPT = 100
"""Messages that are remembered: the last ones."""
_LIMIT = 100_000


def note(paths: AgentPaths, identity: str, session: str) -> None:
    """Remember that the client keeps this message for this session, before it is given."""
    known = {**_read(paths), identity: session}
    write_atomic(os.path.join(paths.dir, FILE), json.dumps(dict(list(known.items())[-KEPT:])), durable=True)


def kept(paths: AgentPaths, session: str) -> tuple[str, ...]:
    """Ids of the messages that a client of this session has, whichever process it was that took them."""
    return tuple(identity for identity, one in _read(paths).items() if one == session)


def _read(paths: AgentPaths) -> dict[str, str]:
    """What was noted; a file that makes no sense is none."""
    try:
        found = load_object(read_text(os.path.join(paths.dir, FILE), _LIMIT) or "{}")
    except FleetError:
        return {}
    return {key: str(value) for key, value in found.items()}
