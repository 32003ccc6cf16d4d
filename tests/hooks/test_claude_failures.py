"""Errors of a turn: each kind by the client's words, and when a limit ends."""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.drivers.claude_failures import classify, read_failure, reset_time
from nbs_fleet.model import AgentState, ErrorKind


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("authentication_failed", "Invalid API key · Fix external API key", ErrorKind.AUTHENTICATION),
        ("authentication_failed", "Please run /login · API Error: 403 forbidden", ErrorKind.AUTHENTICATION),
        ("oauth_org_not_allowed", "Your organization has disabled OAuth", ErrorKind.AUTHENTICATION),
        ("billing_error", "usage limit reached", ErrorKind.BILLING),
        ("invalid_request", "Credit balance is too low", ErrorKind.BILLING),
        ("rate_limit", "You're out of usage credits · resets 3pm (UTC)", ErrorKind.BILLING),
        (
            "rate_limit",
            "API Error: Request rejected (429) · This request would exceed your account's",
            ErrorKind.RATE_LIMIT,
        ),
        ("rate_limit", "You've hit your session limit · resets 3pm (Europe/Paris)", ErrorKind.RATE_LIMIT),
        ("", "You've hit your weekly limit · resets Nov 30, 3pm (UTC)", ErrorKind.RATE_LIMIT),
        ("server_error", "API Error: Repeated 529 Overloaded errors. The API is at capacity", ErrorKind.OVERLOAD),
        ("overloaded", "", ErrorKind.OVERLOAD),
        ("unknown", "API Error: mock overloaded_error", ErrorKind.OVERLOAD),
        ("server_error", "API Error: Unable to connect to API (ConnectionRefused)", ErrorKind.NETWORK),
        ("server_error", "API Error: Request timed out.", ErrorKind.NETWORK),
        ("server_error", "API Error: 500 Internal server error. This is a server-side issue", ErrorKind.OTHER),
        ("invalid_request", "Prompt is too long · the request is ~250000 tokens", ErrorKind.CONTEXT_FULL),
        ("invalid_request", "API Error: Claude Code is unable to respond to this request, which", ErrorKind.REFUSAL),
        ("model_not_found", "There's an issue with the selected model (x).", ErrorKind.OTHER),
        ("", "", ErrorKind.OTHER),
    ],
)
def test_each_kind_is_told_by_the_clients_words(name: str, text: str, kind: ErrorKind) -> None:
    assert classify(name, text) is kind


def at(zone: str, *parts: int) -> float:
    return datetime(*parts, tzinfo=ZoneInfo(zone)).timestamp()  # type: ignore[arg-type, misc]


NOW = at("UTC", 2026, 11, 27, 12, 30)


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("You've hit your session limit · resets 3pm (UTC)", at("UTC", 2026, 11, 27, 15)),
        ("You've hit your session limit · resets 3:45pm (Europe/Paris)", at("Europe/Paris", 2026, 11, 27, 15, 45)),
        ("limit reached ∙ resets 9am (UTC)", at("UTC", 2026, 11, 28, 9)),
        ("limit reached · resets 12am (UTC)", at("UTC", 2026, 11, 28)),
        ("limit reached · resets 12pm (America/New_York)", at("America/New_York", 2026, 11, 27, 12)),
        ("weekly limit · resets Nov 30, 3pm (UTC)", at("UTC", 2026, 11, 30, 15)),
        ("weekly limit · resets Jan 2, 8:30am (UTC)", at("UTC", 2027, 1, 2, 8, 30)),
        ("weekly limit · resets Jan 2, 2028, 8am (UTC)", at("UTC", 2028, 1, 2, 8)),
        ("Your limit will reset at 3pm (UTC).", at("UTC", 2026, 11, 27, 15)),
        ("Claude AI usage limit reached|1795900000", 1795900000.0),
        ("429 retry-after: 30", NOW + 30),
        ("limit · resets 3pm (Nowhere/Land)", at("UTC", 2026, 11, 27, 15)),
        ("limit · resets 3pm (../../etc/passwd)", at("UTC", 2026, 11, 27, 15)),
        ("limit · resets Feb 31, 3pm (UTC)", None),
        ("it resets 99pm", None),
        ("Please try again later.", None),
    ],
)
def test_the_end_of_a_limit_is_read_where_it_is_shown(text: str, until: float | None) -> None:
    assert reset_time(text, NOW) == until


def test_a_time_of_day_says_nothing_without_knowing_when_it_was_said() -> None:
    assert reset_time("resets 3pm (UTC)", None) is None
    assert reset_time("limit reached|1795900000", None) == 1795900000.0


def test_a_failed_turn_leaves_an_idle_client_with_its_own_words() -> None:
    said = "You've hit your session limit · resets 3pm (UTC)\nmore"
    kind, reading = read_failure({"error": "rate_limit", "last_assistant_message": said}, NOW)
    assert kind is ErrorKind.RATE_LIMIT
    assert (reading.state, reading.detail) == (AgentState.IDLE, said.splitlines()[0])
    assert reading.until == at("UTC", 2026, 11, 27, 15)


def test_details_tell_what_the_words_leave_open() -> None:
    details = '400 {"type":"error","error":{"message":"prompt is too long: 250000 tokens > 200000 maximum"}}'
    assert read_failure({"error": "invalid_request", "error_details": details}, None)[0] is ErrorKind.CONTEXT_FULL


@given(st.text(), st.floats(min_value=0, max_value=4e9) | st.none())
def test_no_text_breaks_it(text: str, moment: float | None) -> None:
    read_failure({"error": text, "last_assistant_message": f"resets {text}"}, moment)
    until = reset_time(f"limit · resets {text}pm", moment)
    assert until is None or moment is None or until >= moment - 86_400 * 2
