"""Whatever breaks on the way (supervisor, client, pane, control client, a client that hangs), a message arrives once."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

from nbs_fleet.launch.terminals import unread
from nbs_fleet.model import ExitKind
from tests.e2e.delivery.crew import PATIENCE, Crew, token
from tests.support.waiting import eventually

pytest_plugins = ("tests.e2e.delivery.fixtures",)
pytestmark = pytest.mark.clients("sim", "claude")

KEYS = {"delivery": "keys"}
TEXTS = (
    pytest.param("short", id="short", marks=pytest.mark.long),
    pytest.param("a line of a long message\n" * 800, id="long"),  # shown as a placeholder
)


def declare(crew: Crew) -> None:
    """By mail: mia, fay; by keys: kay, fred. The clients of fay and fred are children of a wrapper, so they can hang."""
    wrapper = crew.fleet.root / "wrapped"
    program = "nbs-fleet sim" if crew.client.name == "sim" else "claude"
    wrapper.write_text(f'#!/bin/sh\n{program} "$@"\nexit $?\n', encoding="utf-8")
    wrapper.chmod(0o755)
    make = crew.client.agent
    crew.write(
        [
            make("mia"),
            make("kay", sidecar=KEYS),
            make("fay", command=[str(wrapper)]),
            make("fred", command=[str(wrapper)], sidecar=KEYS),
        ],
        restart={"max": 1000, "backoff": {"first": "200ms", "max": "1s"}},
    )


def pid(crew: Crew, handle: str) -> int:
    """The agent's process."""
    proc = crew.record(handle).proc
    assert proc is not None
    return proc.pid


@contextmanager
def hung(crew: Crew, handle: str) -> Iterator[None]:
    """The client stands still; tmux wakes only the pane's own process, which is the wrapper around it."""
    crew.until(lambda: crew.record(handle).rung is not None, "it is known how to reach it")
    (child,) = psutil.Process(pid(crew, handle)).children()
    child.suspend()
    try:
        yield
    finally:
        child.resume()


def supervisor(crew: Crew) -> psutil.Process | None:
    """The supervisor's process, if one runs."""
    try:
        found = psutil.Process(int(crew.fleet.ps()["supervisor"]["pid"]))
    except (psutil.NoSuchProcess, TypeError):
        return None
    return found if found.is_running() and found.status() != psutil.STATUS_ZOMBIE else None


def tries(crew: Crew, message_id: str) -> list[str]:
    """What came of each try to type a message."""
    decided = crew.fleet.told(crew.sent[message_id].to, "decided")
    typed = [r["event"] for r in decided if r["event"]["type"] == "Typed"]
    return [event["result"] for event in typed if event["id"] == message_id]


def once(crew: Crew, message_id: str) -> None:
    """It arrives, and no copy of it comes later."""
    crew.arrives(message_id)
    crew.becomes(crew.sent[message_id].to, "idle")
    assert crew.count(message_id) == 1


def test_mail_for_a_client_that_hangs_for_a_moment_arrives_once(crew: Crew) -> None:
    with hung(crew, "fay"):
        message_id = crew.drop("fay", token())
        crew.until(lambda: crew.in_mail("fay"), "it is in the mail")
    once(crew, message_id)
    assert crew.record("fay").rung == "mail"


@pytest.mark.long
def test_a_client_that_hangs_for_long_loses_its_mail_and_gets_it_back(crew: Crew) -> None:
    with hung(crew, "fay"):
        message_id = crew.drop("fay", token())
        crew.until(lambda: crew.record("fay").rung == "keys", "its mail counts as not armed")
        crew.until(lambda: "the client does not read its keyboard" in tries(crew, message_id), "it was typed")
    once(crew, message_id)
    crew.until(lambda: crew.record("fay").rung == "mail", "its mail counts as armed again")


@pytest.mark.parametrize("text", TEXTS)
def test_text_typed_into_a_client_that_hangs_is_not_typed_twice(crew: Crew, text: str) -> None:
    with hung(crew, "fred"):
        message_id = crew.drop("fred", f"{token()} {text}")
        crew.until(lambda: len(tries(crew, message_id)) > 1, "it was tried twice")
        assert unread(pid(crew, "fred")) > 0
    once(crew, message_id)


@pytest.mark.parametrize("handle", ["mia", "kay"])
def test_a_message_for_a_pane_that_vanishes_arrives_in_the_next_one(crew: Crew, handle: str) -> None:
    before = crew.record(handle)
    crew.tmux("kill-pane", "-t", str(before.pane))
    message_id = crew.drop(handle, token())
    crew.until(lambda: crew.record(handle).proc not in (None, before.proc), "it runs again")
    end = crew.record(handle).last_exit
    assert end is not None
    assert end.kind is ExitKind.PANE_CLOSED
    once(crew, message_id)


@pytest.mark.parametrize("handle", ["mia", "kay"])
def test_messages_go_on_when_the_control_client_is_killed(crew: Crew, handle: str) -> None:
    controls = [p for p in crew.fleet.everything() if "-C" in p.cmdline()[:8] and p.cmdline()[0].startswith("tmux")]
    assert len(controls) == 1
    controls[0].kill()
    once(crew, crew.drop(handle, token()))


def test_agents_work_and_hooks_keep_quiet_while_the_supervisor_is_dead(crew: Crew) -> None:
    with crew.fleet.without_supervisor():
        ids = {}
        for handle in ("mia", "kay"):
            words = token()
            crew.type(handle, f"[[say {words}-said]]")
            crew.until(lambda h=handle, w=words: crew.shows(h, f"{w}-said"), "the agent works")  # type: ignore[misc]
            crew.until(lambda h=handle: {"UserPromptSubmit", "Stop"} <= kept(crew, h), "hooks keep")  # type: ignore[misc]
            assert not crew.shows(handle, "hook error")
            ids[handle] = crew.send(handle, token())
            assert "not running" in crew.fleet.said[-1].err
            assert crew.waiting(handle) == [ids[handle]]
    for handle, message_id in ids.items():
        once(crew, message_id)
        assert not crew.spool(handle)


def kept(crew: Crew, handle: str) -> set[str]:
    """The hook events in the spool."""
    return {path.name.partition(".")[0] for path in crew.spool(handle)}


@pytest.mark.parametrize("text", TEXTS)
def test_a_supervisor_killed_while_it_types_types_it_once(crew: Crew, text: str) -> None:
    running = supervisor(crew)
    assert running is not None
    note = Path(crew.paths("kay").dir) / "typing"
    message = crew.make("kay", f"{token()} {text}")
    crew.accept(message)
    eventually(lambda: note.exists() and note.read_text(encoding="utf-8").startswith(message.id), PATIENCE)
    running.kill()
    once(crew, message.id)


def test_a_supervisor_killed_over_a_claimed_message_leaves_it_to_its_client(crew: Crew) -> None:
    running = supervisor(crew)
    assert running is not None
    message_id = crew.drop("mia", token())
    eventually(lambda: any(message_id in name for name in os.listdir(crew.paths("mia").claimed)), PATIENCE)
    running.kill()
    once(crew, message_id)


def test_a_client_killed_over_a_message_it_took_gets_it_again_under_the_same_id(crew: Crew) -> None:
    old = crew.record("mia").proc
    message_id = crew.drop("mia", token())
    crew.repeats.add(message_id)
    eventually(lambda: any(message_id in name for name in os.listdir(crew.paths("mia").claimed)), PATIENCE)
    os.kill(pid(crew, "mia"), signal.SIGKILL)
    crew.until(lambda: crew.record("mia").proc not in (None, old), "it runs again")
    crew.arrives(message_id)
    crew.becomes("mia", "idle")


def test_a_client_killed_over_a_typed_message_gets_it_again_under_the_same_id(crew: Crew) -> None:
    old = crew.record("kay").proc
    message_id = crew.drop("kay", token())
    crew.repeats.add(message_id)
    eventually(lambda: tries(crew, message_id) == ["sent"] or bool(crew.ended(message_id)), PATIENCE)
    os.kill(pid(crew, "kay"), signal.SIGKILL)
    crew.until(lambda: crew.record("kay").proc not in (None, old), "it runs again")
    crew.arrives(message_id)
    crew.becomes("kay", "idle")
