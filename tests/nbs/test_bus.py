"""The bus: publishing, order, acknowledging, duplicates, pruning, damage, and many events."""

from __future__ import annotations

import errno
import os
import re
import tempfile
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbs_fleet.model import Priority
from nbs_fleet.nbs import bus_format
from nbs_fleet.nbs.bus import Bus, BusArgumentError, BusMissingError, EventMissingError
from nbs_fleet.nbs.bus_format import BusConfig, Event
from nbs_fleet.nbs.files import NbsFileError
from tests.nbs.conftest import Clock

EXAMPLE = b"""source: ana
type: build-done
priority: high
timestamp: 2026-05-01T09:30:00Z
dedup-key: ana:build-done
payload: |
  first line
  second line
"""
words = st.from_regex(r"[A-Za-z0-9_.-]{1,30}", fullmatch=True)
payloads = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=80)


@pytest.fixture
def bus(tmp_path: Path, clock: Clock) -> Bus:
    (tmp_path / "events").mkdir()
    return Bus(str(tmp_path / "events"), clock=clock)


def publish(
    bus: Bus, source: str = "ana", kind: str = "done", priority: Priority = Priority.NORMAL, text: str = ""
) -> str:
    name = bus.publish(source, kind, priority, text, dedup_window=0)
    assert name is not None
    return name


def names(bus: Bus) -> list[str]:
    return [event.name for event in bus.pending().events]


def test_the_known_event_is_read_and_written_byte_for_byte() -> None:
    name = "1777627800000000-ana-build-done-41.event"
    event = bus_format.parse(name, EXAMPLE)
    assert event == Event(
        name,
        1777627800000000,
        "ana",
        "build-done",
        Priority.HIGH,
        "2026-05-01T09:30:00Z",
        "ana:build-done",
        "first line\nsecond line",
    )
    assert bus_format.render("ana", "build-done", Priority.HIGH, event.timestamp, event.payload) == EXAMPLE
    assert bus_format.file_name(1777627800000000, "ana", "build-done", 41) == name


@given(words, words, st.sampled_from(Priority), payloads)
def test_any_event_comes_back(source: str, kind: str, priority: Priority, payload: str) -> None:
    data = bus_format.render(source, kind, priority, "2026-05-01T09:30:00Z", payload)
    event = bus_format.parse("5-x.event", data)
    assert (event.source, event.type, event.priority) == (source, kind, priority)
    assert event.payload == payload.rstrip("\n")


def test_a_published_event_is_whole_and_named_by_its_time(bus: Bus) -> None:
    name = publish(bus, kind="task-complete", priority=Priority.HIGH, text="@bo look\n at this")
    assert re.fullmatch(rf"1777626\d+-ana-task-complete-{os.getpid()}\.event", name)
    assert bus.read(name).endswith(b"payload: |\n  @bo look\n   at this\n")
    event = bus.event(name)
    assert (event.timestamp, event.key, event.addressee) == ("2026-05-01T09:00:00Z", "ana:task-complete", "bo")
    assert sorted(os.listdir(bus.folder)) == [name, "processed"]


def test_events_of_one_microsecond_are_different_files(bus: Bus) -> None:
    assert len({publish(bus) for _ in range(50)}) == 50
    assert len(names(bus)) == 50


def test_urgent_events_come_first_then_older_ones(bus: Bus, clock: Clock) -> None:
    order = [Priority.LOW, Priority.CRITICAL, Priority.NORMAL, Priority.HIGH, Priority.CRITICAL]
    made = {}
    for number, priority in enumerate(order):
        clock.now += 1
        made[number] = publish(bus, priority=priority)
    assert names(bus) == [made[n] for n in (1, 4, 3, 2, 0)]


def test_there_is_no_limit_of_256_events(bus: Bus) -> None:
    for n in range(300):
        publish(bus, kind=f"k{n}")
    urgent = publish(bus, priority=Priority.CRITICAL)
    assert len(names(bus)) == 301
    assert names(bus)[0] == urgent
    assert len(bus.status().events) == 301


def test_an_acknowledged_event_moves_and_can_be_acknowledged_once(bus: Bus) -> None:
    name = publish(bus)
    bus.ack(name)
    assert names(bus) == []
    assert os.listdir(bus.processed_folder) == [name]
    for act in (bus.ack, bus.read, bus.event):
        with pytest.raises(EventMissingError) as caught:
            act(name)
        assert caught.value.exit_code == 3


def test_of_several_who_acknowledge_one_succeeds(bus: Bus) -> None:
    name = publish(bus)
    done: list[bool] = []

    def take() -> None:
        try:
            Bus(bus.folder).ack(name)
            done.append(True)
        except EventMissingError:
            done.append(False)

    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert sorted(done) == [False] * 7 + [True]


@pytest.mark.parametrize("name", ["", "..", "../x.event", "a/b.event", ".event", "x.txt", "..x.event", "a\0.event"])
def test_names_that_lead_elsewhere_are_refused(bus: Bus, name: str) -> None:
    for act in (bus.ack, bus.read):
        with pytest.raises(NbsFileError, match="invalid event filename") as caught:
            act(name)
        assert caught.value.exit_code == 1


def test_a_missing_folder_is_an_error_of_its_own(tmp_path: Path) -> None:
    bus = Bus(str(tmp_path / "none"))
    for act in (bus.pending, bus.status, bus.prune, lambda: publish(bus), lambda: bus.ack("1-a.event")):
        with pytest.raises(BusMissingError) as caught:
            act()
        assert caught.value.exit_code == 2
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    ("source", "kind"), [("", "x"), ("x", ""), ("a b", "x"), ("x", "a\tb"), ("../x", "y"), ("x" * 200, "y" * 90)]
)
def test_what_is_no_source_or_type_is_refused(bus: Bus, source: str, kind: str) -> None:
    with pytest.raises(BusArgumentError) as caught:
        publish(bus, source, kind)
    assert caught.value.exit_code == 4
    assert names(bus) == []


def test_a_duplicate_is_dropped_while_one_like_it_is_pending_and_young(bus: Bus, clock: Clock) -> None:
    first = bus.publish("ana", "done", Priority.LOW, "a", dedup_window=10)
    assert first is not None
    assert bus.publish("ana", "done", Priority.HIGH, "b", dedup_window=10) is None
    assert bus.publish("ana", "other", Priority.LOW, dedup_window=10) is not None
    assert bus.publish("bo", "done", Priority.LOW, dedup_window=10) is not None
    assert bus.publish("ana", "done", Priority.LOW, dedup_window=0) is not None
    clock.now += 11
    assert bus.publish("ana", "done", Priority.LOW, dedup_window=10) is not None
    for name in names(bus):
        bus.ack(name)
    assert bus.publish("ana", "done", Priority.LOW, dedup_window=10) is not None


def test_the_window_for_duplicates_comes_from_the_configuration(bus: Bus) -> None:
    Path(bus.folder, "config.yaml").write_text("# nbs\ndedup-window: 300\npythia-interval: 10\n")
    assert bus.publish("ana", "done", Priority.LOW) is not None
    assert bus.publish("ana", "done", Priority.LOW) is None
    assert bus.config() == BusConfig(16_777_216, 300, 0, {"pythia-interval": "10"})


def test_a_configuration_with_nonsense_leaves_the_defaults(bus: Bus) -> None:
    Path(bus.folder, "config.yaml").write_text("dedup-window: soon\nretention-max-bytes: 0\nack-timeout: -1\nx\ny:\n")
    assert bus.config() == BusConfig()


def test_damaged_files_are_named_once_and_harm_nothing(bus: Bus) -> None:
    folder = Path(bus.folder)
    good = publish(bus)
    (folder / "nonsense.event").write_text("x")
    (folder / "5-half.event").write_text("source: ana\ntype: x\n")
    (folder / "6-folder.event").mkdir()
    (folder / ".tmp-7-1.event").write_text("source: a")
    (folder / "8-ana-x-1.ack").write_text("by hand")
    found = bus.pending()
    assert [event.name for event in found.events] == [good]
    assert sorted(found.problems) == [
        "5-half.event: it has no priority",
        "6-folder.event: it is no regular file",
        "nonsense.event: its name does not begin with a time",
    ]
    assert bus.pending().problems == ()
    assert bus.status().processed == 0
    assert len(bus.pending().events) == 1


def test_a_problem_found_on_the_way_is_still_reported(bus: Bus) -> None:
    Path(bus.folder, "nonsense.event").write_text("x")
    bus.publish("ana", "x", Priority.LOW, dedup_window=9)
    assert len(bus.pending().problems) == 1


def test_an_event_written_bit_by_bit_counts_once_it_is_whole(bus: Bus) -> None:
    path = Path(bus.folder, "5-ana-x-1.event")
    path.write_bytes(b"source: ana\n")
    assert len(bus.pending().problems) == 1
    path.write_bytes(EXAMPLE)
    assert names(bus) == [path.name]
    assert bus.pending().problems == ()


def test_an_event_is_read_once_however_often_one_looks(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    name = publish(bus)
    assert names(bus) == [name]
    monkeypatch.setattr(bus_format, "parse", None)
    assert names(bus) == [name]
    bus.ack(name)
    assert names(bus) == []


def test_pruning_removes_the_oldest_processed_events_first(bus: Bus, clock: Clock) -> None:
    assert not bus.prune(1).folder
    made = []
    for _ in range(5):
        clock.now += 1
        made.append(publish(bus))
    for name in made[:4]:
        bus.ack(name)
    size = Path(bus.processed_folder, made[0]).stat().st_size
    done = bus.prune(size * 2)
    assert (done.removed, done.left, done.limit) == (2, size * 2, size * 2)
    assert sorted(os.listdir(bus.processed_folder)) == sorted(made[2:4])
    assert names(bus) == [made[4]]
    assert bus.prune().removed == 0
    assert bus.prune().limit == 16_777_216


def test_the_status_counts_what_waits_too_long(bus: Bus, clock: Clock) -> None:
    Path(bus.folder, "config.yaml").write_text("ack-timeout: 120\n")
    bus.ack(publish(bus))
    publish(bus)
    clock.now += 121
    publish(bus)
    found = bus.status()
    assert (len(found.events), found.processed, found.stale, found.ack_timeout) == (2, 1, 1, 120)
    assert found.processed_bytes == Path(bus.processed_folder, os.listdir(bus.processed_folder)[0]).stat().st_size


def test_a_full_disk_publishes_nothing_and_leaves_nothing(bus: Bus, monkeypatch: pytest.MonkeyPatch) -> None:
    def write(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patched:
        patched.setattr(os, "write", write)
        with pytest.raises(NbsFileError, match="No space left"):
            publish(bus)
    assert os.listdir(bus.folder) == ["processed"]


@pytest.mark.parametrize(
    ("payload", "whose"),
    [
        ("@ana from bo: look", "ana"),
        ("@ana from bo: @cy is busy", "ana"),
        ("bo: @ana look", None),
        ("please ask @ana", None),
        ("@ana", "ana"),
        ("@ana: look", "ana"),
        ("@ana! now", "ana"),
        ("@anatole from bo: x", "anatole"),
        ("@ana@example.org wrote", None),
        ("@team from bo: all", "team"),
        ("", None),
        ("@ from bo", None),
    ],
)
def test_the_addressee_is_the_token_at_the_beginning(payload: str, whose: str | None) -> None:
    assert Event("1-x.event", 1, "nbs-chat", "chat-mention", payload=payload).addressee == whose


class Step:
    """What may happen to a bus, drawn by Hypothesis."""

    publish = st.tuples(st.just("publish"), st.sampled_from(("ana", "bo")), st.sampled_from(Priority))
    ack = st.tuples(st.just("ack"), st.integers(0, 30), st.none())
    prune = st.tuples(st.just("prune"), st.integers(1, 600), st.none())


@settings(max_examples=40, deadline=None)
@given(st.lists(st.one_of(Step.publish, Step.publish, Step.ack, Step.prune), max_size=40))
def test_any_history_of_a_bus_keeps_every_event_in_one_place(
    history: list[tuple[str, str | int, Priority | None]],
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        clock = Clock()
        bus = Bus(folder, clock=clock)
        pending: list[tuple[int, int, str]] = []
        processed: list[str] = []
        for what, value, priority in history:
            clock.now += 1
            if what == "publish":
                assert isinstance(value, str)
                assert priority is not None
                name = publish(bus, value, "x", priority)
                pending.append((tuple(Priority).index(priority), len(pending), name))
            elif what == "ack" and pending:
                assert isinstance(value, int)
                name = pending.pop(value % len(pending))[2]
                bus.ack(name)
                processed.append(name)
            elif what == "prune":
                assert isinstance(value, int)
                bus.prune(value)
                processed.sort()
                while sum(Path(bus.processed_folder, n).stat().st_size for n in processed if n in left(bus)) > value:
                    raise AssertionError("too much is left")
                processed = [name for name in processed if name in left(bus)]
            assert names(bus) == [name for *_, name in sorted(pending, key=lambda p: (p[0], p[2]))]
            assert sorted(left(bus)) == sorted(processed)


def left(bus: Bus) -> list[str]:
    return os.listdir(bus.processed_folder) if os.path.isdir(bus.processed_folder) else []
