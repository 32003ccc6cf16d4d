"""bus and control: as nbs-bus has it; what an agent tells its sidecar."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

from nbs_fleet.launch.processes import identify
from nbs_fleet.nbs.bus import Bus
from nbs_fleet.nbs.control import Registry
from nbs_fleet.plan.paths import RunPaths
from tests.support.cli_world import Said, agent, call, make_team, write_record

BUS = ".nbs/events"


@pytest.fixture
def root(here: Path) -> Path:
    """A folder with a bus and a chat, and no team."""
    for name in ("events", "chat"):
        (here / ".nbs" / name).mkdir(parents=True)
    return here


@pytest.fixture
def team(root: Path) -> RunPaths:
    return make_team(root, "review", (agent("ana"), agent("bo")))


@pytest.fixture
def in_bo(team: RunPaths) -> None:
    """This process descends from the client of bo."""
    write_record(team, "bo", proc=identify(os.getppid()))


def publish(*more: str, source: str = "ana", kind: str = "done", priority: str = "normal") -> str:
    said = call("bus", "publish", BUS, source, kind, priority, *more)
    assert (said.code, said.err) == (0, "")
    return said.out.strip()


def test_an_event_is_published_listed_read_and_acknowledged(root: Path) -> None:
    name = publish("the parser", "is done", kind="task-complete", priority="high")
    assert re.fullmatch(r"\d{16}-ana-task-complete-\d+\.event", name)
    assert call("bus", "check", BUS) == Said(0, f"[high] {name} (0s ago)\n", "")
    shown = call("bus", "read", BUS, name).out
    assert shown.startswith("source: ana\ntype: task-complete\npriority: high\ntimestamp: ")
    assert shown.endswith("payload: |\n  the parser is done\n")
    assert call("bus", "ack", BUS, name) == Said(0, "", "")
    assert call("bus", "check", BUS) == Said(0, "", "")
    assert os.listdir(".nbs/events/processed") == [name]


def test_the_most_urgent_come_first(root: Path) -> None:
    names = {priority: publish(priority=priority, kind=priority) for priority in ("low", "critical", "normal", "high")}
    lines = call("bus", "check", BUS).out.splitlines()
    assert [line.split()[1] for line in lines] == [names[p] for p in ("critical", "high", "normal", "low")]
    assert call("bus", "check", BUS, "--handle", "bo") == Said(0, "", "")


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["publish", "none", "ana", "x", "low"], 2),
        (["check", "none"], 2),
        (["status", "none"], 2),
        (["prune", "none"], 2),
        (["ack", "none", "1-x.event"], 2),
        (["read", BUS, "1-x.event"], 3),
        (["ack", BUS, "1-x.event"], 3),
        (["read", BUS, "../x.event"], 1),
        (["publish", BUS, "ana", "x", "soon"], 4),
        (["publish", BUS, "an a", "x", "low"], 4),
        (["publish", BUS, "ana"], 4),
        (["publish", BUS, "ana", "x", "low", "--dedup-window", "soon"], 4),
        (["prune", BUS, "--max-bytes", "0"], 4),
        (["ack", BUS], 4),
        (["ack", BUS, "1-x.event", "--all"], 4),
        (["ack", BUS, "1-x.event", "--to", "ana"], 4),
        ([], 4),
    ],
)
def test_exit_codes_are_those_of_nbs_bus(root: Path, argv: list[str], code: int) -> None:
    said = call("bus", *argv)
    assert (said.code, said.out) == (code, "")
    assert said.err.startswith("error: ")


def test_a_duplicate_is_dropped_with_exit_5(root: Path) -> None:
    publish("--dedup-window", "300")
    said = call("bus", "publish", BUS, "ana", "done", "low", "--dedup-window", "5m")
    assert said == Said(5, "", "Dedup: event ana:done dropped (duplicate within window)\n")
    publish("--dedup-window", "0")
    assert len(Bus(BUS).pending().events) == 2


def test_events_for_one_agent_and_for_its_team(root: Path, team: RunPaths) -> None:
    publish("@bo from ana: look", kind="a")
    publish("@bo2 from ana: look", kind="b")
    publish("@team from ana: look", kind="c")
    publish("mentions @bo only", kind="d")
    found = json.loads(call("bus", "check", BUS, "--to", "bo", "--json").out)["events"]
    assert [event["type"] for event in found] == ["a", "c"]
    assert found[0]["to"] == "bo"
    assert found[0]["payload"] == "@bo from ana: look"
    assert call("bus", "ack", BUS, "--all", "--to", "bo").out == "Acknowledged 1 event\n"
    assert call("bus", "ack", BUS, "--all").out == "Acknowledged 3 events\n"


def test_an_agent_publishes_as_itself_and_acknowledges_only_its_own(root: Path, team: RunPaths, in_bo: None) -> None:
    assert call("bus", "publish", BUS, "ana", "x", "low").code == 1
    bus = Bus(BUS)
    from nbs_fleet.model import Priority

    other = bus.publish("cy", "a", Priority.LOW, "@ana from cy: x")
    mine = bus.publish("cy", "b", Priority.LOW, "@bo from cy: x")
    free = bus.publish("cy", "c", Priority.LOW, "no one in particular")
    assert other
    assert mine
    assert free
    said = call("bus", "ack", BUS, free, other)
    assert (said.code, said.err) == (1, f"error: {other} is for ana, not for bo\n")
    assert len(bus.pending().events) == 3
    assert call("bus", "ack", BUS, "--all", "--to", "ana").code == 1
    assert call("bus", "ack", BUS, "--all").out == "Acknowledged 1 event\n"
    assert {event.name for event in bus.pending().events} == {other, free}
    assert call("bus", "ack", BUS, free).code == 0
    publish(source="bo")


def test_the_status_is_worded_as_nbs_bus_words_it(root: Path) -> None:
    assert call("bus", "status", BUS).out == "Pending: 0 total\nProcessed: 0 events (0.0 KB)\n"
    Path(BUS, "config.yaml").write_text("ack-timeout: 1\npythia-interval: 10\n")
    Path(BUS, "1777626000000000-ana-x-1.event").write_text("source: ana\ntype: x\npriority: high\n")
    name = publish(kind="y")
    call("bus", "ack", BUS, name)
    size = os.path.getsize(f"{BUS}/processed/{name}") / 1024
    assert call("bus", "status", BUS).out == (
        "Pending: 1 total (critical=0, high=1, normal=0, low=0)\n"
        "Oldest pending: 2026-05-01T09:00:00Z\n"
        f"Processed: 1 events ({size:.1f} KB)\n"
        "WARNING: 1 stale event (unacked > 1s)\n"
    )
    facts = json.loads(call("bus", "status", BUS, "--json").out)
    assert (facts["pending"], facts["by_priority"]["high"], facts["stale"]) == (1, 1, 1)


def test_pruning_is_worded_as_nbs_bus_words_it(root: Path) -> None:
    assert call("bus", "prune", BUS).out == "Pruned 0 events (no processed directory)\n"
    for kind in ("a", "b", "c"):
        call("bus", "ack", BUS, publish(kind=kind))
    assert re.fullmatch(r"Pruned 0 events \(0\.\d KB / 16384\.0 KB limit\)\n", call("bus", "prune", BUS).out)
    one = call("bus", "prune", BUS, "--max-bytes", "250").out
    assert re.fullmatch(r"Pruned 1 event \(0\.\d KB remaining, 0\.2 KB limit\)\n", one)
    assert call("bus", "prune", BUS, "--max-bytes", "1").out.startswith("Pruned 2 events (0.0 KB remaining")


def test_damaged_files_are_named_beside_the_list(root: Path) -> None:
    Path(BUS, "nonsense.event").write_text("x")
    said = call("bus", "check", BUS)
    assert said == Said(0, "", "Warning: skipping nonsense.event: its name does not begin with a time\n")


def test_a_bus_is_found_from_the_root_too(root: Path, team: RunPaths) -> None:
    publish()
    os.chdir("/")
    assert call("bus", "check", BUS, "--team", "review").out.startswith("[normal] ")


def inbox(root: Path, handle: str) -> str:
    return (root / ".nbs" / f"control-inbox-{handle}").read_text()


def test_an_agent_tells_its_sidecar_what_to_watch(root: Path, team: RunPaths, in_bo: None) -> None:
    said = call("control", "register-chat", ".nbs/chat/debug.chat")
    assert said == Said(0, "bo: register-chat .nbs/chat/debug.chat\n", "")
    assert call("control", "\\nbs-register-bus", f"{root}/.nbs/events").code == 0
    assert call("control", "set-poll-interval", "60").code == 0
    assert inbox(root, "bo") == "register-chat .nbs/chat/debug.chat\nregister-bus .nbs/events\nset-poll-interval 60\n"
    assert call("control", "register-chat", "x", "--as", "ana").code == 1


def test_a_half_written_line_before_is_closed(root: Path, team: RunPaths) -> None:
    (root / ".nbs" / "control-inbox-ana").write_text("register-ch")
    assert call("control", "register-chat", "a.chat", "--as", "ana").code == 0
    assert inbox(root, "ana") == "register-ch\nregister-chat a.chat\n"


@pytest.mark.parametrize(
    ("argv", "code", "why"),
    [
        (["register-chat", "x", "--as", "cy"], 4, 'no agent "cy" in review'),
        (["register-chat", "x"], 2, "whose sidecar?"),
        (["regster-chat", "x", "--as", "ana"], 2, "did you mean register-chat?"),
        (["register-chat", "--as", "ana"], 2, "register-chat needs a path"),
        (["set-poll-interval", "soon", "--as", "ana"], 2, "'soon' is no number"),
        (["register-chat", "../x", "--as", "ana"], 1, "is not inside"),
        (["register-chat", "/etc/passwd", "--as", "ana"], 1, "is not inside"),
        (["register-chat", "a b.chat", "--as", "ana"], 2, "with blanks"),
    ],
)
def test_what_can_t_be_registered_is_said_at_once(
    root: Path, team: RunPaths, argv: list[str], code: int, why: str
) -> None:
    said = call("control", *argv)
    assert said.code == code
    assert why in said.err
    assert not (root / ".nbs" / "control-inbox-ana").exists()


def test_the_registry_is_listed(root: Path, team: RunPaths) -> None:
    assert call("control", "--as", "ana") == Said(0, "", "nothing is registered for ana\n")
    registry = Registry(str(root), "ana")
    registry.write([("chat", "/x/live.chat"), ("bus", "/x/events")])
    assert call("control", "--as", "ana").out == "chat:/x/live.chat\nbus:/x/events\n"
    entries = json.loads(call("control", "--as", "ana", "--json").out)["entries"]
    assert entries == [{"kind": "chat", "path": "/x/live.chat"}, {"kind": "bus", "path": "/x/events"}]
