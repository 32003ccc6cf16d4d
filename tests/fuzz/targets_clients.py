"""What clients show and write: screens, titles, hook payloads, transcripts, state files, last words; driver by driver."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

from hypothesis import strategies as st

from nbs_fleet.drivers import claude_hooks
from nbs_fleet.drivers.base import Capabilities, Driver, Reading, Screen, able
from nbs_fleet.drivers.generic import Generic
from nbs_fleet.drivers.plain import Plain
from nbs_fleet.drivers.usage import Tally
from nbs_fleet.hooks import program
from nbs_fleet.launch import registry
from nbs_fleet.launch.tmux_text import parse_panes, rows
from nbs_fleet.launch.versions import below
from nbs_fleet.model import AgentState, Moment, ProcId
from nbs_fleet.sidecar import sources
from nbs_fleet.sidecar.actions import Event, HookSeen, ScreenSeen, StateFileSeen, TitleSeen
from nbs_fleet.sidecar.decide import decide
from nbs_fleet.sidecar.mind import Mind, Watching
from nbs_fleet.spec.team import Client, Dialogs
from tests.fuzz.inputs import of_bytes, of_json
from tests.fuzz.target import Target, told
from tests.fuzz.targets_team import seeds

AT = 1_777_000_000.0
WIDEST, TALLEST = 1_000, 500
"""Columns and rows of the largest pane that is tried."""
DESCRIBED = Client(
    ready="^> ", busy=r"^Thinking", blocked={"permission": r"\[y/N\]", "question": r"^\? "}, placeholder="^Type"
)
STATE = (
    b'{"pid": 1234, "sessionId": "6d0b9c1e-3f6a-4f0e-9a35-0c5f3f6d7a10", "cwd": "/r", "startedAt": 1777000000000, '
    b'"procStart": "12345", "version": "2.1.197", "kind": "interactive", "status": "waiting", '
    b'"waitingFor": "permission prompt", "statusUpdatedAt": 1777000001000, "name": "ana", "updatedAt": 1777000001000}'
)


def drivers() -> dict[str, Driver]:
    """All drivers of ours, the described one with a description; the simulator's reads as Claude Code's does."""
    found = {name: registry.get(name) for name in registry.names() if name != "sim"}
    return {**found, "generic": Generic(DESCRIBED)}


def _follow(*events: Event) -> None:
    """A sidecar that sees these decides on each, and what it decided can be written down."""
    mind = Mind(Watching(Capabilities(hooks=True, state_file=True, title=True), expects_prompt=True))
    for number, event in enumerate(events):
        mind, actions = decide(mind, event, Moment(AT + number, 100.0 + number))
        told((event, actions))
    told(mind)


def _screen(driver: Driver) -> Callable[[bytes], None]:
    def tried(data: bytes) -> None:
        shown = tuple(row[:WIDEST] for row in rows(data.decode("utf-8", "replace"))[:TALLEST])
        screen = Screen(shown, max((len(row) for row in shown), default=0), len(shown), title="x")
        reading = driver.read_screen(screen)
        _is_whole(reading)
        keys = None
        if reading.dialog is not None:
            assert reading.dialog.mark
            keys = driver.answer(reading.dialog, Dialogs())
            for index in range(len(reading.dialog.options)):
                driver.pick(reading.dialog, index)
        driver.read_exit(1, None, shown)
        _follow(ScreenSeen(reading, keys))

    return tried


def _is_whole(reading: Reading) -> None:
    """A dialog stands with a blocked agent only, and its cursor is on one of its options."""
    if reading.dialog is not None:
        assert reading.state is AgentState.BLOCKED
        cursor = reading.dialog.cursor
        assert cursor is None or 0 <= cursor < len(reading.dialog.options)


def _hook(driver: Driver) -> Callable[[bytes], None]:
    def tried(data: bytes) -> None:
        with tempfile.TemporaryDirectory(prefix="nbs-fleet-fuzz-") as folder:
            path = Path(folder) / "1.json"
            path.write_bytes(data)
            os.utime(path, (AT, AT))
            odd: list[str] = []
            seen = sources.read_spool(driver, folder, odd.append)
            assert odd in ([], ["1.json"])
            assert not (odd and seen)
            assert not list(Path(folder).iterdir())
        _follow(*seen)
        for one in seen:
            assert isinstance(one, HookSeen)

    return tried


def _transcript(driver: Driver) -> Callable[[bytes], None]:
    def tried(data: bytes) -> None:
        with tempfile.TemporaryDirectory(prefix="nbs-fleet-fuzz-") as folder:
            path = Path(folder) / "t.jsonl"
            path.write_bytes(data)
            seen = sources.read_transcript(driver, str(path))
        assert seen.turns.prompts >= 0
        text = data.decode("utf-8", "replace")
        tally = driver.count_usage(Tally(), text)
        assert tally.spent.total >= 0
        told(tally)
        driver.proofs(text)
        _follow(seen)

    return tried


def _state(driver: Driver) -> Callable[[bytes], None]:
    def tried(data: bytes) -> None:
        pid = os.getpid()
        with tempfile.TemporaryDirectory(prefix="nbs-fleet-fuzz-") as folder:
            Path(folder, f"{pid}.json").write_bytes(data.replace(b"1234", b"%d" % pid))
            files = sources.StateFiles(folder, ProcId(pid, 1), driver)
            _, found = files.find()
            _follow(StateFileSeen(found))
        text = data.decode("utf-8", "replace")
        _follow(StateFileSeen(driver.read_state_file(text)))

    return tried


def _title(data: bytes) -> None:
    text = data.decode("utf-8", "replace")
    for driver in drivers().values():
        _follow(TitleSeen(text, driver.read_title(text)))
        version = driver.parse_version(text)
        if version is not None:
            assert version in text
            able(driver, version)
            below(version, (1, 2, 3))
    told(parse_panes(text.split("\n")))


def _program(data: bytes) -> None:
    """The hook program, told by a client what happens: one JSON object or nothing, and the event is kept."""
    with tempfile.TemporaryDirectory(prefix="nbs-fleet-fuzz-") as folder:
        own = Path(folder) / "agents" / "ana"
        for name in ("queue", "inbox", "claimed", "spool"):
            (own / name).mkdir(parents=True)
        (own / "queue" / "d-1.json").write_text("{}")
        (own / "inbox" / "0001-d-1.msg").write_text("hello")
        policy = {"shapes": claude_hooks.CLAUDE.shapes(), "stop": "signal", "permission": "deny", "question": "deny"}
        (own / "hooks.json").write_text(json.dumps(policy))
        new, kept = own / "spool" / ".new", own / "spool" / "1.json"
        event, _, payload = data.partition(b"\n")
        payload = payload.replace(b"/TRANSCRIPT", os.fsencode(own / "t.jsonl"))
        (own / "t.jsonl").write_bytes(payload)
        new.write_bytes(payload)
        os.environ.update(NBS_FLEET_RUN=folder, NBS_HANDLE="ana")
        try:
            _call_program(event.decode("utf-8", "replace"), str(new), str(kept))
        finally:
            del os.environ["NBS_FLEET_RUN"], os.environ["NBS_HANDLE"]
        assert kept.exists()


def _call_program(event: str, new: str, kept: str) -> None:
    out = StringIO()
    with redirect_stdout(out):
        program.main(event, new, kept)
    if out.getvalue():
        assert isinstance(json.loads(out.getvalue()), dict)
        out.getvalue().encode()


def _has(driver: Driver, method: str) -> bool:
    """Whether a driver says something of its own there."""
    return not isinstance(driver, Plain) or getattr(type(driver), method) is not getattr(Plain, method)


def targets() -> tuple[Target, ...]:
    """The targets of this module."""
    payloads = seeds("tests/hooks/payloads/**/*.json", "tests/sim/payloads/*.json")
    transcripts = tuple(text[:20_000] for text in seeds("tests/drivers/transcripts/**/*.jsonl"))
    program_seeds = tuple(
        name + b"\n" + text for text in payloads[:12] for name in (b"Stop", b"PermissionRequest", b"PreToolUse")
    )
    found = []
    for name, driver in drivers().items():
        patterns = ("claude", "claude_more") if name == "claude" else (name,)
        own = seeds(
            *(f"tests/drivers/screens/{p}/*.txt" for p in patterns), f"tests/drivers/screens/others/{name}-*.txt"
        )
        screens = own or seeds("tests/drivers/screens/others/aider-*.txt")
        found.append(
            Target(f"screen-{name}", f"a screen of {name}", lambda s=screens: of_bytes(s), _screen(driver))  # type: ignore[misc]
        )
        if _has(driver, "read_hook") or driver.dialect is not None:
            found.append(
                Target(
                    f"hook-{name}",
                    f"the payload of a hook of {name}",
                    lambda: st.one_of(of_json(payloads), of_json(payloads), of_bytes(payloads)),
                    _hook(driver),
                )
            )
        if _has(driver, "read_transcript"):
            found.append(
                Target(
                    f"transcript-{name}",
                    f"a session's file of {name}",
                    lambda: st.one_of(of_json(transcripts, lines=True), of_bytes(transcripts)),
                    _transcript(driver),
                )
            )
        if driver.capabilities.state_file:
            found.append(
                Target(
                    f"state-{name}",
                    f"the state file of {name}",
                    lambda: st.one_of(of_json((STATE,)), of_bytes((STATE,))),
                    _state(driver),
                )
            )
    found.append(
        Target("title", "a pane's title, and what a client says of its version", lambda: of_bytes(TITLES), _title)
    )
    found.append(
        Target("hook-program", "what a client tells the hook program", lambda: of_bytes(program_seeds), _program)
    )
    return tuple(found)


TITLES = (
    "✳ ana".encode(),
    "⠂ ana works".encode(),
    b"2.1.197 (Claude Code)",
    b"codex-cli 0.171.0",
    rb"%1 ana t @1 22 0 \  80 24",
)
