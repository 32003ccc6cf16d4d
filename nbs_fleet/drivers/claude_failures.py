"""Why a turn of Claude Code failed, from the words it has for it, and until when a limit holds."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any

from nbs_fleet.drivers.base import Reading
from nbs_fleet.model import AgentState, ErrorKind

_BY_TEXT: tuple[tuple[ErrorKind, str], ...] = (
    (ErrorKind.BILLING, r"credit balance|out of usage credits|billing|spend(ing)? limit|payment"),
    (
        ErrorKind.CONTEXT_FULL,
        r"prompt is too long|too large for|context (limit|window)|exceeds? the maximum|input length and",
    ),
    (ErrorKind.REFUSAL, r"usage policy|unable to respond to this request"),
    (ErrorKind.OVERLOAD, r"overloaded|\b529\b|at capacity"),
    (
        ErrorKind.NETWORK,
        (
            r"unable to connect|connection (error|refused|reset|closed)|ConnectionRefused|ECONN|ENOTFOUND|fetch failed"
            r"|EAI_AGAIN|timed? ?out|socket|certificate"
        ),
    ),
    (
        ErrorKind.RATE_LIMIT,
        r"\(429\)|\b429\b|rate limit|(session|weekly|usage|opus|sonnet) limit|you've hit your .{0,40}limit|limit reached",
    ),
    (ErrorKind.AUTHENTICATION, r"invalid api key|please run /login|not logged in|\b401\b|\b403\b|oauth|revoked"),
)
"""Tried in this order; the most telling first."""

_BY_NAME: dict[str, ErrorKind] = {
    "authentication_failed": ErrorKind.AUTHENTICATION,
    "oauth_org_not_allowed": ErrorKind.AUTHENTICATION,
    "billing_error": ErrorKind.BILLING,
    "rate_limit": ErrorKind.RATE_LIMIT,
    "overloaded": ErrorKind.OVERLOAD,
}
"""The client's own names that leave no doubt (2.1.197). `server_error`, `invalid_request` and `unknown` cover several."""

_RESET = re.compile(
    r"\b(?:resets?|reset at|try again at)\s+(?:at\s+)?"
    r"(?:(?P<month>[A-Z][a-z]{2})[a-z]*\s+(?P<day>\d{1,2}),?\s+(?:(?P<year>\d{4}),?\s+)?(?:at\s+)?)?"
    r"(?P<hour>1[0-2]|0?[1-9])(?::(?P<minute>\d\d))?\s*(?P<half>[ap]m)"
    r"(?:\s*\((?P<zone>[^)]+)\))?",
    re.IGNORECASE,
)
"""`resets 3pm (Europe/Paris)`, `resets Nov 28, 3:30pm (UTC)` (the client's own formatter, read from its program)."""
_EPOCH = re.compile(r"limit reached\|(\d{10})")
_AFTER = re.compile(r"retry[- ]after\D{0,3}(\d{1,6})", re.IGNORECASE)
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DETAIL = 200


def read_failure(data: dict[str, Any], at: float | None) -> tuple[ErrorKind, Reading]:
    """The kind of a StopFailure, and the reading: idle again, with the client's own words and perhaps an end."""
    said, more = str(data.get("last_assistant_message") or ""), str(data.get("error_details") or "")
    name = str(data.get("error") or "")
    kind = classify(name, f"{said}\n{more}")
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    until = reset_time(f"{said}\n{more}", at) if kind in (ErrorKind.RATE_LIMIT, ErrorKind.BILLING) else None
    return kind, Reading(AgentState.IDLE, detail=(lines[0] if lines else name)[:_DETAIL], until=until)


def classify(name: str, text: str) -> ErrorKind:
    """The kind of an error by the client's name for it and its text.

    Out of credits comes as `rate_limit`, `billing_error` or a 400; so that is looked for under each name.
    """
    by_text = next((kind for kind, pattern in _BY_TEXT if re.search(pattern, text, re.IGNORECASE)), None)
    by_name = _BY_NAME.get(name)
    if by_name is None:
        return by_text or ErrorKind.OTHER
    if by_name is ErrorKind.RATE_LIMIT and by_text is ErrorKind.BILLING:
        return ErrorKind.BILLING
    return by_name


def reset_time(text: str, at: float | None) -> float | None:
    """When a limit ends (wall seconds), if the text says so; a mere time of day is the first one after `at`."""
    if found := _EPOCH.search(text):
        return float(found[1])
    if at is None:
        return None
    if found := _AFTER.search(text):
        return at + float(found[1])
    if (found := _RESET.search(text)) is None:
        return None
    try:
        return _next_moment(found, datetime.fromtimestamp(at, _zone(found["zone"])))
    except (ValueError, OverflowError, OSError):
        return None


def _next_moment(found: re.Match[str], base: datetime) -> float:
    hour = int(found["hour"]) % 12 + (12 if found["half"].lower() == "pm" else 0)
    moment = base.replace(hour=hour, minute=int(found["minute"] or 0), second=0, microsecond=0)
    if found["month"] is None:
        return (moment if moment > base else moment + timedelta(days=1)).timestamp()
    month = _MONTHS.index(found["month"].lower()) + 1
    moment = moment.replace(year=int(found["year"] or base.year), month=month, day=int(found["day"]))
    if not found["year"] and moment < base - timedelta(days=1):
        moment = moment.replace(year=base.year + 1)
    return moment.timestamp()


def _zone(name: str | None) -> tzinfo:
    """The zone by its IANA name; without one, or for one not known here, UTC."""
    if not name:
        return UTC
    from zoneinfo import ZoneInfo  # noqa: PLC0415 -- it loads all that Python was built with, for a failure that is rare

    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return UTC
