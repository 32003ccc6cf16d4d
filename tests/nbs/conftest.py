"""A chat file in a folder of its own, and a clock that the test moves."""

from __future__ import annotations

from pathlib import Path

import pytest

from nbs_fleet.nbs import chat_file
from nbs_fleet.nbs.chat import Chat


class Clock:
    """A time that stands still."""

    def __init__(self) -> None:
        self.now = 1_777_626_000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def chat(tmp_path: Path, clock: Clock) -> Chat:
    """An empty chat."""
    made = Chat(str(tmp_path / "live.chat"), clock=clock)
    made.create()
    return made


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chats are archived above 20 messages, ten at once."""
    monkeypatch.setattr(chat_file, "ARCHIVE_ABOVE", 20)
    monkeypatch.setattr(chat_file, "ARCHIVE_COUNT", 10)
