"""Answers by keys: nothing is confirmed before the screen shows what would be."""

from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from nbs_fleet.drivers.base import Dialog, Option, Reading
from nbs_fleet.drivers.claude import Claude
from nbs_fleet.model import AgentState, BlockedKind
from nbs_fleet.sidecar import answering
from nbs_fleet.sidecar.answering import CHANGED, STRAYED, Wish, answer, press

QUESTION = Dialog(
    BlockedKind.QUESTION,
    "Which library?",
    (Option("aiohttp", "1"), Option("requests", "2"), Option("Type something.", "3")),
    0,
)
MENU = Dialog(BlockedKind.BYPASS, "Go on?", (Option("No, exit"), Option("Yes, I accept"), Option("Never")), 0)


class Client:
    """A dialog that drops the first `deaf` keys; `chosen` is what was answered, if anything."""

    def __init__(self, dialog: Dialog, deaf: int = 0, *, shows_text: bool = True) -> None:
        self.dialog: Dialog | None = dialog
        self.deaf, self.shows_text = deaf, shows_text
        self.chosen: list[str] = []

    async def read(self) -> Reading:
        if self.dialog is None:
            return Reading(AgentState.BUSY)
        return Reading(AgentState.BLOCKED, blocked=self.dialog.kind, dialog=self.dialog)

    async def press(self, *keys: str) -> None:
        for key in keys:
            if self.deaf:
                self.deaf -= 1
            elif self.dialog is not None:
                self._key(self.dialog, key)

    def _key(self, dialog: Dialog, key: str) -> None:
        cursor = dialog.cursor or 0
        if key in ("Down", "Up"):
            self.dialog = replace(dialog, cursor=cursor + (1 if key == "Down" else -1))
        elif key.isdigit():
            self.dialog = replace(dialog, cursor=int(key) - 1)
            if not dialog.options[int(key) - 1].label.startswith("Type"):
                self._choose(dialog.options[int(key) - 1].label)
        elif key == "Enter":
            self._choose(dialog.options[cursor].label)

    def _choose(self, label: str) -> None:
        self.chosen.append(label)
        self.dialog = None

    async def write(self, text: str) -> None:
        dialog = self.dialog
        if self.shows_text and dialog is not None and dialog.cursor is not None:
            options = list(dialog.options)
            options[dialog.cursor] = replace(options[dialog.cursor], label=text)
            self.dialog = replace(dialog, options=tuple(options))


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answering, "SEEN_SECONDS", 0.1)
    monkeypatch.setattr(answering, "GONE_SECONDS", 0.1)


def answered(client: Client, choice: str, text: str = "") -> str:
    return asyncio.run(answer(Wish(QUESTION.mark, choice, text), Claude(), client))


@pytest.mark.parametrize("deaf", [0, 1])
def test_a_text_goes_into_its_line_though_a_key_was_dropped(deaf: int) -> None:
    client = Client(QUESTION, deaf)
    assert answered(client, "3", "trio") == ""
    assert client.chosen == ["trio"]


def test_a_cursor_that_never_comes_to_the_line_confirms_nothing() -> None:
    client = Client(QUESTION, deaf=2)
    assert answered(client, "3", "trio") == STRAYED
    assert client.chosen == []


def test_a_text_that_does_not_show_is_not_confirmed() -> None:
    client = Client(QUESTION, shows_text=False)
    assert "does not show" in answered(client, "3", "trio")
    assert client.chosen == []


def test_another_dialog_gets_no_key() -> None:
    client = Client(replace(QUESTION, text="Delete everything?"))
    assert answered(client, "1") == CHANGED
    assert client.chosen == []


def test_a_dropped_digit_is_told_and_chooses_nothing() -> None:
    client = Client(QUESTION, deaf=1)
    assert "still there" in answered(client, "2")
    assert client.chosen == []


def test_a_line_that_arrows_lead_to_is_confirmed_only_there() -> None:
    keys = ("Down", "Enter")
    client = Client(MENU)
    assert asyncio.run(press(MENU, keys, client)) == ""
    assert client.chosen == ["Yes, I accept"]
    deaf = Client(MENU, deaf=1)
    assert asyncio.run(press(MENU, keys, deaf)) == STRAYED
    assert deaf.chosen == []
