"""The state an error that ended a turn leaves an agent of the Claude family in, as its screen and transcript tell it."""

from __future__ import annotations

from nbs_fleet.drivers.base import Reading
from nbs_fleet.drivers.claude_failures import classify
from nbs_fleet.model import AgentState, BlockedKind, ErrorKind

_LIMITS = (ErrorKind.RATE_LIMIT, ErrorKind.OVERLOAD, ErrorKind.BILLING)


def read_error(text: str, name: str = "") -> Reading:
    """The agent's state after this error; `name` is the client's own class of it, where known.

    Nobody is logged in: BLOCKED. A limit of the account or the service: LIMITED. Any other leaves the client
    at its prompt, but failed: UNKNOWN. `detail` begins with `error: `.
    """
    detail = f"error: {text}"
    kind = classify(name, text)
    if kind is ErrorKind.AUTHENTICATION:
        return Reading(AgentState.BLOCKED, detail=detail, blocked=BlockedKind.LOGIN)
    return Reading(AgentState.LIMITED if kind in _LIMITS else AgentState.UNKNOWN, detail=detail)
