"""Addresses of webhooks, which may hold a secret: a plan names them, and a file of values holds them. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import sha256

from msgspec.structs import replace

from nbs_fleet.spec.team import Notification, Team

PREFIX = "HOOK_"


def hidden(rules: tuple[Notification, ...]) -> tuple[Notification, ...]:
    """The rules with a name in the place of each address."""
    return tuple(replace(rule, url=_name(rule.url)) if rule.url else rule for rule in rules)


def addresses(team: Team) -> dict[str, str]:
    """Name -> address, of all rules of the team and its agents."""
    rules: Iterable[Notification] = (*team.notifications, *(rule for a in team.agents for rule in a.notifications))
    return {_name(rule.url): rule.url for rule in rules if rule.url}


def _name(url: str) -> str:
    return PREFIX + sha256(url.encode("utf-8", "surrogateescape")).hexdigest()[:16]
