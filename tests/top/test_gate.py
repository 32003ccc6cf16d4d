"""Who is let in to the dashboard's page: the one browser that came with the ticket, from our own page, to our own name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nbs_fleet.top.gate import Asked, Gate, Verdict
from nbs_fleet.top.web import cells, new_gate

HOST, ORIGIN = "127.0.0.1:8123", "http://127.0.0.1:8123"


def gate() -> Gate:
    return Gate(8123, "folder", "the-ticket", "the-session")


PAGE = Asked("GET", "/folder/", host=HOST, site="none", cookie="the-session")
FILE = replace(PAGE, path="/folder/static/js/textual.js", site="same-origin")
SOCKET = replace(FILE, path="/folder/ws", origin=ORIGIN, upgrade=True)
FIRST = replace(PAGE, cookie=None, ticket="the-ticket")
GOOD = {"page": PAGE, "file": FILE, "socket": SOCKET, "first": FIRST}


def test_the_url_has_the_ticket_and_not_the_session() -> None:
    assert gate().url == f"{ORIGIN}/folder/?ticket=the-ticket"
    one, other = new_gate(1), new_gate(1)
    assert len({one.folder, one.ticket, one.session, other.folder, other.ticket, other.session}) == 6
    assert min(len(one.ticket), len(one.session)) >= 43


def test_the_ticket_works_once_and_then_the_cookie_does() -> None:
    opened = gate()
    assert opened.judge(FIRST) is Verdict.ADMIT
    assert opened.judge(FIRST) is Verdict.REFUSE
    assert [opened.judge(good) for good in (PAGE, FILE, SOCKET)] == [Verdict.ENTER] * 3
    assert opened.judge(replace(FIRST, cookie="the-session")) is Verdict.ENTER  # the same address, loaded again


@pytest.mark.parametrize("kind", GOOD)
@pytest.mark.parametrize(
    "wrong",
    [
        {"host": None},
        {"host": "localhost:8123"},
        {"host": "127.0.0.1"},
        {"host": "127.0.0.1:8124"},
        {"host": "evil.example:8123"},
        {"host": f"{HOST}, evil.example"},
        {"origin": "http://evil.example"},
        {"origin": "null"},
        {"origin": "http://127.0.0.1:9999"},
        {"origin": "https://127.0.0.1:8123"},
        {"method": "POST"},
        {"method": "HEAD"},
        {"path": "/"},
        {"path": "/other/"},
        {"cookie": None, "ticket": None},
        {"cookie": "", "ticket": ""},
        {"cookie": "the-ticket", "ticket": "the-session"},
        {"cookie": "the-sessio", "ticket": "the-ticke"},
        {"cookie": "the-session\udcff", "ticket": "the-ticket\udcff"},
    ],
    ids=str,
)
def test_one_wrong_thing_is_enough_to_be_refused(kind: str, wrong: dict[str, str | None]) -> None:
    opened = gate()
    good = GOOD[kind]
    assert opened.judge(replace(good, **wrong)) is Verdict.REFUSE
    assert opened.judge(good) is not Verdict.REFUSE


def test_another_site_of_the_same_machine_may_not_use_the_cookie() -> None:
    opened = gate()
    for site in ("same-site", "cross-site", "anything"):
        assert opened.judge(replace(PAGE, site=site)) is Verdict.REFUSE
    assert opened.judge(replace(SOCKET, origin=None)) is Verdict.REFUSE
    assert opened.judge(replace(FIRST, path="/folder/ws")) is Verdict.REFUSE


@given(cookie=st.none() | st.text(max_size=50), ticket=st.none() | st.text(max_size=50))
def test_nobody_gets_in_by_guessing(cookie: str | None, ticket: str | None) -> None:
    if "the-session" not in (cookie, ticket) and "the-ticket" not in (cookie, ticket):
        assert gate().judge(replace(PAGE, cookie=cookie, ticket=ticket)) is Verdict.REFUSE


@pytest.mark.parametrize(
    ("asked", "given"), [("80", 80), (200, 200), ("0", 20), (-5, 20), ("99999", 500), ("x", 80), (None, 80), ("²", 80)]
)
def test_a_window_has_a_size_within_reason(asked: object, given: int) -> None:
    assert cells(asked) == given
