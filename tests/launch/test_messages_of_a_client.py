"""What a mailbox knows of the client that runs now: what an earlier one had taken, and what was typed last."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nbs_fleet.launch.messages import Mailbox
from tests.support.mailbox import claim, folders, message


@pytest.fixture
def box(tmp_path: Path) -> Mailbox:
    return Mailbox(folders(tmp_path))


def start(box: Mailbox, at: float | None = None) -> None:
    """A client starts: its script is written anew. `at`: seconds from the last change of any file."""
    Path(box.paths.launch).write_text("exec client\n", encoding="utf-8")
    if at is not None:
        now = os.stat(box.paths.launch).st_mtime + at
        os.utime(box.paths.launch, (now, now))


def test_what_was_claimed_before_the_present_client_started_is_an_orphan(box: Mailbox) -> None:
    first, second = message(1), message(2)
    start(box, -10)
    box.accept(first)
    box.put_mail(first, "x")
    assert box.orphans() == ()
    claim(box)
    assert box.orphans() == ()
    start(box, +10)
    assert box.orphans() == (first.id,)
    start(box, -10)
    box.accept(second)
    box.put_mail(second, "y")
    claim(box)
    assert box.orphans() == ()


def test_what_was_typed_last_is_remembered_for_the_client_it_was_typed_into(box: Mailbox) -> None:
    assert box.typed_last() == ("", False)
    start(box, -10)
    box.note_typing("d-0-1")
    assert box.typed_last() == ("d-0-1", False)
    box.note_typing("d-0-1", entered=True)
    assert box.typed_last() == ("d-0-1", True)
    start(box, +10)
    assert box.typed_last() == ("", False)
