"""Keys of the team file that are about limits and about calling people: budget, context, notifications."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from nbs_fleet.spec.fields import NUMBER, WORD, Command, Duration, Quiet, Span, Text, Url, one_or_more
from nbs_fleet.spec.section import Strict, key

Percent = Annotated[int, Field(ge=1, le=100), NUMBER]


class BudgetFile(Strict):
    """Limits of use."""

    tokens: Annotated[int, Field(ge=1), NUMBER] | None = key("Tokens", default="no limit", example=2000000)
    restarts: Annotated[int, Field(ge=0, le=1_000_000), NUMBER] | None = key("Restarts", default="no limit", example=20)
    hours: Annotated[float, Field(gt=0, le=100_000, allow_inf_nan=False), NUMBER] | None = key(
        "Hours since `up`", default="no limit", example=8
    )
    then: Annotated[Literal["notice", "pause", "attention"], WORD] | None = key(
        "What happens at the limit", example="attention"
    )


class ContextFile(Strict):
    """What happens as an agent's context fills up."""

    limit: Annotated[int, Field(ge=1), NUMBER] | None = key("Tokens that its model can hold", example=200000)
    warn: Percent | None = key("Percent of it at which the agent is told", default="never", example=70)
    handover: Percent | None = key(
        "Percent of it at which it writes a handover and begins afresh with that", default="never", example=85
    )
    file: Text | None = key(
        "Where the handover is written, relative to the root", default=".nbs/handover-HANDLE.md", example="HANDOVER.md"
    )
    timeout: Span | None = key("How long the handover may take before a person is called", example="5m")


Blocked = Literal[
    "trust",
    "bypass",
    "mcp",
    "setup",
    "apikey",
    "login",
    "settings",
    "resume",
    "plan",
    "permission",
    "question",
    "draft",
]
"""What an agent can be blocked on."""

Occasion = Literal[
    "attention",
    "blocked",
    "failed",
    "limited",
    "escalated",
    "done",
    "budget",
    "alarm",
    Blocked,
]


class NotificationFile(Strict):
    """One rule: on what occasion a person is called outside the terminal, and how."""

    on: Annotated[list[Annotated[Occasion, WORD]], one_or_more(Occasion), Field(min_length=1)] = key(
        "Occasions", must=True, example=["attention"]
    )
    via: Annotated[Literal["desktop", "command", "webhook"], WORD] = key("Way", must=True, example="desktop")
    command: Command | None = key("Program for `via: command`", default="none", example=["notify.sh"])
    url: Url | None = key("Address for `via: webhook`", default="none", example="https://example.org/hook")
    after: Duration | None = key(
        "How long it must have waited while somebody is attached to the team", default="0s", example="1m"
    )
    cooldown: Duration | None = key("Shortest time between two calls of this rule", default="0s", example="5m")
    quiet: Quiet | None = key("Time of day without calls", default="none", example="22:00-07:00")
