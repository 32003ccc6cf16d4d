"""Six sidecars over a week of virtual time, on real files: one standup per interval, one checkpoint per bucket."""

from __future__ import annotations

import multiprocessing
import os
import random
from itertools import pairwise
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import cast
from unittest import mock

import pytest

from nbs_fleet.launch.watch import Watcher
from nbs_fleet.model import Moment, Priority
from nbs_fleet.nbs import chat_file, pythia_files
from nbs_fleet.nbs.bus import Bus
from nbs_fleet.nbs.chat import Chat
from nbs_fleet.nbs.files import NbsFileError
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import Plan
from nbs_fleet.sidecar import standup
from nbs_fleet.spec.team import Chat as ChatOfTeam
from nbs_fleet.spec.team import Layout, Pythia, Standup
from nbs_fleet.supervisor import clockwork
from nbs_fleet.supervisor.clockwork import Clockwork

EVERY = 900.0
BUCKET = 10
BEGAN = 1_700_000_000.0
WEEK = 7 * 86_400.0
DAY = 86_400.0
SIDECARS = 6


class World:
    """Chat, bus and decision log of one team, and a clock that only the test moves."""

    def __init__(self, root: Path) -> None:
        self.root, self.now = root, BEGAN
        for name in (".nbs/chat", ".nbs/events/processed", ".nbs/scribe", "run"):
            (root / name).mkdir(parents=True, exist_ok=True)
        path = str(root / ".nbs" / "chat" / "live.chat")
        self.bus = Bus(str(root / ".nbs" / "events"))
        self.chat = Chat(path, clock=lambda: self.now)
        self.log = Path(pythia_files.scribe_log(str(root), "live"))
        self.plan = Plan(
            "week",
            "week.yaml",
            str(root),
            "",
            RunPaths(str(root / "run"), "", "", ""),
            Layout(),
            (),
            chats=(ChatOfTeam("live", path, ()),),
            standup=Standup(EVERY, "live"),
            pythia=Pythia(BUCKET, self.bus.folder),
        )

    def sidecar(self) -> tuple[Clockwork, list[str]]:
        """A new one, and what it tells."""
        told: list[str] = []
        made = Clockwork(cast("Watcher", None), lambda: False, lambda what, **_: told.append(what))
        made.begin(self.plan)
        return made, told


@pytest.fixture
def world(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> World:
    made = World(tmp_path)
    made.chat.create()
    monkeypatch.setattr(clockwork, "moment", lambda: Moment(made.now, made.now))
    return made


def week(world: World, seed: int, length: float) -> list[float]:
    """Run six sidecars that die and come back, with clocks some seconds apart; the times of their standups."""
    rand = random.Random(seed)
    sidecars = [world.sidecar() for _ in range(SIDECARS)]
    posts: list[float] = []
    at, end = BEGAN, BEGAN + length
    while at < end:
        at += rand.uniform(20.0, 60.0)
        if rand.random() < 0.03:
            sidecars[rand.randrange(SIDECARS)] = world.sidecar()
        if rand.random() < 0.1:
            world.now = at
            world.chat.send("ana", "news")
        for made, told in rand.sample(sidecars, SIDECARS):
            world.now = at + rand.choice((-3.0, -1.0, 0.0, 0.0, 2.0))
            due = made.next_look()
            assert due is not None
            if due <= world.now:
                made.stand_up()
            posts += [world.now] * told.count("standup")
            told.clear()
    return posts


def assert_one_per_interval(posts: list[float], length: float) -> None:
    longest = EVERY * (1 + standup.JITTER) + 130.0
    gaps = [after - before for before, after in pairwise([BEGAN, *posts])]
    assert min(gaps) >= EVERY - 1.0
    assert max(gaps) <= longest
    assert len(posts) >= length / longest - 1


@pytest.mark.parametrize("seed", range(3))
def test_six_sidecars_that_die_and_return_post_one_standup_per_interval(
    world: World, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(chat_file, "ARCHIVE_ABOVE", 40)
    monkeypatch.setattr(chat_file, "ARCHIVE_COUNT", 20)
    posts = week(world, seed, DAY)
    assert_one_per_interval(posts, DAY)
    assert list(Path(world.chat.path).parent.glob("*-archive.chat"))


@pytest.mark.long
def test_a_whole_week_of_standups_with_archives_at_the_nbs_tools_limit(world: World) -> None:
    for n in range(1900):
        world.chat.send("bo", str(n))
    posts = week(world, 7, WEEK)
    assert_one_per_interval(posts, WEEK)
    assert list(Path(world.chat.path).parent.glob("*-archive.chat"))


def test_a_clock_put_right_by_seconds_makes_no_second_standup_and_one_set_back_by_hours_silences_none(
    world: World,
) -> None:
    made, told = world.sidecar()
    world.now += EVERY * 1.2
    made.stand_up()
    world.now -= 5.0
    made.stand_up()
    assert told == ["standup"]
    world.now -= 6 * 3600.0
    made.stand_up()
    assert told == ["standup"] * 2


def test_with_nothing_to_ask_about_the_next_look_is_a_whole_interval_away(world: World) -> None:
    made, told = world.sidecar()
    made._all_idle = lambda: True
    for _ in range(3):
        world.now += EVERY * 1.2
        made.stand_up()
        due = made.next_look()
        assert due is not None
        assert due >= world.now + EVERY
    assert told == []


def decide(world: World, source: str, number: int) -> None:
    """The team decides something."""
    if source == "log":
        with world.log.open("a") as file:
            file.write(f"### D-{number} so it is\n")
    else:
        name = world.bus.publish("scribe", pythia_files.DECISION, Priority.NORMAL, str(number), dedup_window=0)
        assert name is not None
        if number % 2:
            world.bus.ack(name)


def shrink(world: World, source: str) -> None:
    """The log is archived; what was processed is pruned."""
    if source == "log":
        world.log.rename(world.log.with_suffix(".archive"))
        world.log.write_text("### D-1 what is left\n")
    else:
        for file in (world.root / ".nbs" / "events" / "processed").iterdir():
            file.unlink()


@pytest.mark.parametrize("source", ["log", "events"])
@pytest.mark.parametrize("seed", range(2))
def test_one_checkpoint_per_bucket_across_restarts_archives_and_prunings(world: World, source: str, seed: int) -> None:
    rand = random.Random(seed)
    sidecars = [world.sidecar() for _ in range(SIDECARS)]
    seen: list[int] = []
    fired = 0
    if source == "log":
        world.log.touch()
    for number in range(600):
        if rand.random() < 0.3:
            decide(world, source, number)
        if rand.random() < 0.01:
            shrink(world, source)
        if rand.random() < 0.05:
            sidecars[rand.randrange(SIDECARS)] = world.sidecar()
        count = pythia_files.count_decisions(str(world.root), "live", world.bus.folder).count
        seen.append(count // BUCKET)
        for made, told in rand.sample(sidecars, rand.randrange(1, SIDECARS)):
            made.count()
            fired += told.count("pythia checkpoint")
            told.clear()
    rises = sum(1 for before, after in pairwise(seen) if after > before)
    assert fired == rises > 2
    assert any(after < before for before, after in pairwise(seen))


@pytest.mark.parametrize("what", ["prepare", "release"])
def test_a_checkpoint_that_can_not_be_published_is_published_at_the_next_look(
    world: World, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    made, told = world.sidecar()
    world.log.touch()
    made.count()
    world.log.write_text("### D-1\n" * BUCKET)

    def full(*_: object, **__: object) -> str:
        raise NbsFileError("no space")

    with monkeypatch.context() as patch:
        patch.setattr(Bus, what, full)
        with pytest.raises(NbsFileError):
            made.count()
    assert told == []
    made.count()
    made.count()
    assert told == ["pythia checkpoint"]


ROUNDS = 8


def _race(root: str, number: int, barrier: Barrier) -> None:
    world = World(Path(root))

    def now() -> Moment:
        return Moment(world.now, world.now)

    with mock.patch.object(clockwork, "moment", now):
        made, _ = world.sidecar()
        for turn in range(1, ROUNDS + 1):
            if number == 0:
                world.log.write_text("### D-1\n" * (BUCKET * turn))
            world.now = BEGAN + turn * EVERY * 1.2
            barrier.wait(30)
            made.stand_up()
            made.count()
            barrier.wait(30)


def test_processes_that_race_post_one_standup_per_interval_and_one_checkpoint_per_bucket(world: World) -> None:
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(SIDECARS)
    world.log.touch()
    world.sidecar()[0].count()
    racers = [context.Process(target=_race, args=(str(world.root), n, barrier)) for n in range(SIDECARS)]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(60)
    assert [racer.exitcode for racer in racers] == [0] * SIDECARS
    assert sum(m.handle == "sidecar" for m in world.chat.messages()) == ROUNDS
    checkpoints = [name for name in os.listdir(world.bus.folder) if pythia_files.CHECKPOINT in name]
    assert len(checkpoints) == ROUNDS
