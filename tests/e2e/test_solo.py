"""`solo`: one agent in the terminal or pane that it was started in, with a sidecar, and nothing left of it."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.fleet import Fleet
from tests.support.servers import Person

QUICK = {"NBS_STARTUP_GRACE": "1", "NBS_NOTIFY_COOLDOWN": "1", "NBS_BUS_CHECK_INTERVAL": "0.5"}
PROGRAM = {"sim": "nbs-fleet sim", "claude": "claude"}


def command(fleet: Fleet) -> list[str]:
    """`solo` for a client that exits with 7 when it is left."""
    fleet.team = "solo-ana"
    fleet.env |= QUICK
    script = fleet.base / "wrapped"
    script.write_text(f'#!/bin/sh\n{PROGRAM[fleet.client.name]} "$@"\nexit 7\n', encoding="utf-8")
    script.chmod(0o755)
    solo = ["solo", "--handle", "ana", "--root", str(fleet.root), "--driver", fleet.client.name, "--", str(script)]
    return [sys.executable, "-m", "nbs_fleet", *solo]


def left_in_root(fleet: Fleet) -> list[str]:
    """What stands below `.nbs` but the team's own chats, events and cursors."""
    found = (str(path.relative_to(fleet.root / ".nbs")) for path in (fleet.root / ".nbs").rglob("*"))
    return [name for name in found if not name.startswith(("chat", "events"))]


@pytest.mark.clients("sim", "claude")
def test_a_mention_wakes_it_and_the_exit_code_of_its_client_is_kept(fleet: Fleet) -> None:
    argv = command(fleet)
    (fleet.root / ".nbs" / "events").mkdir()
    made = fleet.run("chat", "create", "live")
    assert made.code == 0, str(made)
    person = Person(argv, fleet.env)
    try:
        fleet.until(lambda: bool(list(Path(fleet.env["XDG_STATE_HOME"]).rglob("plan.json"))), what="it is up")
        fleet.all_idle()
        fleet.run("chat", "send", "live", "maria", "good morning @ana")
        fleet.until(lambda: bool(fleet.told("ana", "noticed")), within=60, what="ana is noticed")
        assert fleet.told("ana", "noticed")[0]["summary"].startswith("1 unread in live (maria)")
        fleet.wait(lambda ps: ps["agents"][0]["queued"] == 0 and ps["agents"][0]["state"] == "idle", within=60)
        second = fleet.run("solo", *argv[4:])
        assert (second.code, "by another solo (pid" in second.err) == (1, True), str(second)
        person.write(b"/exit")
        fleet.until(lambda: "/exit" in fleet.run("peek", "ana", "--team", fleet.team).out, what="it is typed")
        person.write(b"\r")
        assert person.process.wait(30) == 7, person.read().decode(errors="replace")
    finally:
        person.leave()
    assert not list(Path(fleet.env["XDG_STATE_HOME"]).rglob("solo-ana"))
    assert left_in_root(fleet) == []


@pytest.mark.clients("sim")
def test_it_shows_in_the_pane_that_it_was_started_in_and_ends_with_it(fleet: Fleet, short_path: Path) -> None:
    outer = ["tmux", "-S", str(short_path / "outer"), "-f", "/dev/null"]

    def tmux(*args: str) -> str:
        done = subprocess.run(
            [*outer, *args], env=fleet.env, cwd=fleet.root, capture_output=True, text=True, timeout=10, check=True
        )
        return done.stdout

    tmux("new-session", "-d", "-x", "120", "-y", "30", shlex.join(command(fleet)))
    try:
        fleet.until(lambda: "? for shortcuts" in tmux("capture-pane", "-p"), what="it shows")
    finally:
        tmux("kill-server")
        (short_path / "outer").unlink(missing_ok=True)
    fleet.until(lambda: not fleet.everything(), what="all of it ends with its terminal")
    assert left_in_root(fleet) == []


@pytest.mark.clients("sim")
def test_a_living_nbs_process_under_its_handle_is_named_and_nothing_is_made(fleet: Fleet) -> None:
    argv = command(fleet)
    pids = fleet.root / ".nbs" / "pids"
    pids.mkdir()
    foreign = subprocess.Popen([sys.executable, "-c", "input()", "nbs-sidecar", "--handle=ana"], stdin=subprocess.PIPE)
    try:
        (pids / "sidecar-ana.pid").write_text(f"{foreign.pid}\n")
        refused = fleet.run(*argv[3:])
        assert (refused.code, f"nbs-sidecar (pid {foreign.pid})" in refused.err) == (1, True), str(refused)
        assert not os.path.exists(fleet.env["XDG_STATE_HOME"])
    finally:
        foreign.kill()
        foreign.communicate()
