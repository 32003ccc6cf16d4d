"""What was typed into a terminal and not read."""

from __future__ import annotations

import os
import pty
import subprocess
import tty

from nbs_fleet.launch.terminals import unread
from tests.support.waiting import eventually


def test_what_nobody_reads_is_counted_until_it_is_read() -> None:
    person, side = pty.openpty()
    tty.setraw(side)
    client = subprocess.Popen(["sleep", "1000"], stdin=side)
    try:
        assert unread(client.pid) == 0
        os.write(person, b"hello")
        assert eventually(lambda: unread(client.pid)) == 5
        os.read(side, 100)
        assert unread(client.pid) == 0
    finally:
        client.kill()
        client.wait()
        os.close(person)
        os.close(side)


def test_a_process_without_a_terminal_or_none_at_all_has_read_everything() -> None:
    client = subprocess.Popen(["sleep", "1000"], stdin=subprocess.DEVNULL)
    try:
        assert unread(client.pid) == 0
    finally:
        client.kill()
        client.wait()
    assert unread(client.pid) == 0
