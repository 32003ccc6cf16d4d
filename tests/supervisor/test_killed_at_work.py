"""Sidecars killed at each single effect of a standup and of a checkpoint: it happens once all the same, on real files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from nbs_fleet.model import Moment
from nbs_fleet.nbs import chat_file, standup_file
from nbs_fleet.nbs.files import NbsFileError
from nbs_fleet.spec.team import Standup
from nbs_fleet.supervisor import clockwork
from nbs_fleet.supervisor.board import SIDECAR
from nbs_fleet.supervisor.clockwork import Clockwork
from tests.supervisor.test_virtual_week import BUCKET, EVERY, World
from tests.support.nbs_reading import read_chat

CHANGING = ("write", "replace", "rename", "unlink", "link", "mkdir")
WAYS = ("before", "half", "after")


class Killed(BaseException):
    """SIGKILL: no handler runs, and whatever a `finally` still tries comes to nothing."""


class Death:
    """Lets a process make `number` effects on the disk, and kills it before, half way through or after the next."""

    def __init__(self, number: int, way: str) -> None:
        self.left, self.way, self.dead = number, way, False
        self.done: list[str] = []

    @contextmanager
    def strike(self) -> Iterator[None]:
        real = {name: getattr(os, name) for name in (*CHANGING, "open")}

        def wrapped(name: str) -> Callable[..., Any]:
            def call(*args: Any, **more: Any) -> Any:
                return self._effect(name, real[name], args, more)

            return call

        def opened(path: Any, flags: int, *args: Any, **more: Any) -> Any:
            if not flags & (os.O_CREAT | os.O_TRUNC):
                return real["open"](path, flags, *args, **more)
            return self._effect("open", real["open"], (path, flags, *args), more)

        false: dict[str, Any] = {"open": opened, **{name: wrapped(name) for name in CHANGING}}
        with mock.patch.multiple(os, **false), suppress(Killed):
            yield

    def _effect(self, name: str, real: Callable[..., Any], args: tuple[Any, ...], more: dict[str, Any]) -> Any:
        if self.dead:
            raise Killed
        if self.left > 0:
            self.left -= 1
            self.done.append(name)
            return real(*args, **more)
        self.dead = True
        if self.way == "half" and name == "write":
            fd, data = args
            real(fd, bytes(data)[: len(data) // 2])
        elif self.way == "after":
            done = real(*args, **more)
            if name == "open":
                os.close(done)
        raise Killed


def deaths_in(work: Callable[[], None]) -> list[tuple[int, str]]:
    """Every place at which a piece of work can be killed: number of the effect, and the way."""
    never = Death(10_000, "before")
    with never.strike():
        work()
    return [(n, way) for n, name in enumerate(never.done) for way in WAYS if way != "half" or name == "write"]


@pytest.fixture(autouse=True, scope="module")
def small_chats() -> Iterator[None]:
    with mock.patch.multiple(chat_file, ARCHIVE_ABOVE=20, ARCHIVE_COUNT=10):
        yield


class Team:
    """One world, whose sidecars die and are followed by others."""

    def __init__(self, root: Path) -> None:
        self.world = World(root)
        self.world.chat.create()
        self.said = 0

    def sidecar(self) -> Clockwork:
        return self.world.sidecar()[0]

    def killed(self, work: Callable[[Clockwork], None], number: int, way: str) -> bool:
        """Whether a new sidecar was killed at its work."""
        victim, death = self.sidecar(), Death(number, way)
        with death.strike():
            work(victim)
        return death.dead

    def posts(self) -> list[tuple[str, int, str]]:
        """Everything that stands in the chat and its archives, by an independent reading of the files."""
        files = [*map(Path, self.world.chat.archives()), Path(self.world.chat.path)]
        return [message for file in files for message in read_chat(file).messages]

    def standups(self) -> list[int]:
        """The times of all standups. Between a death and the next writer, archived messages stand in the chat, too."""
        return sorted({at for handle, at, _ in self.posts() if handle == SIDECAR})

    def announced(self) -> int:
        """The time in the file that the nbs tools' own sidecars go by."""
        path = Path(standup_file.standup_path(self.world.chat.path))
        return int(path.read_text()) if path.exists() else 0


@contextmanager
def team() -> Iterator[Team]:
    """A team in a time of its own; at the end its first interval is just over."""
    with tempfile.TemporaryDirectory() as root:
        made = Team(Path(root))

        def now() -> Moment:
            return Moment(made.world.now, made.world.now)

        with mock.patch.object(clockwork, "moment", now):
            made.sidecar()
            yield made


def say(made: Team, number: int) -> None:
    """Others say something new."""
    for _ in range(number):
        made.said += 1
        made.world.chat.send("ana", f"news {made.said}")


def assert_one_more(made: Team, before: list[int]) -> None:
    """Within the rest of the interval the next one who looks posts, if the dead one has not, and only that one."""
    posted = made.standups()
    assert len(posted) <= len(before) + 1
    if posted:
        assert made.announced() >= posted[-1], "who goes by the file alone would post a second one"
    survivor = made.sidecar()
    due = survivor.next_look()
    assert due is not None
    assert (due <= made.world.now) == (posted == before), "the turn of the dead is not seen to be free"
    for _ in range(3):
        made.world.now += 5.0
        survivor.stand_up()
        made.sidecar().stand_up()
    after = made.standups()
    assert len(after) == len(before) + 1
    assert after[:-1] == before
    assert made.announced() == after[-1]
    say(made, 1)
    posts = made.posts()
    assert len(set(posts)) == len(posts) == made.said + len(after)


@pytest.mark.parametrize("said", [3, 20])
def test_a_standup_is_posted_once_wherever_its_poster_is_killed(said: int) -> None:
    """With 20 messages the standup itself makes an archive; as many more move it into one before anybody looks."""
    with team() as made:
        say(made, said)
        made.world.now += EVERY * 1.2
        deaths = deaths_in(made.sidecar().stand_up)
        assert len(made.standups()) == 1
    assert len(deaths) > 24
    for effect, way in deaths:
        with team() as made:
            say(made, said)
            made.world.now += EVERY * 1.2
            assert made.killed(Clockwork.stand_up, effect, way)
            say(made, said if effect % 2 else 0)
            assert_one_more(made, [])
            say(made, 1)
            made.world.now += EVERY * 1.2
            assert_one_more(made, made.standups()[:1])


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.integers(0, 40), st.sampled_from(WAYS), st.integers(0, 12)), max_size=5),
    st.integers(1, 22),
)
def test_standups_are_one_per_interval_however_many_die_one_after_the_other(
    deaths: list[tuple[int, str, int]], said: int
) -> None:
    with team() as made:
        for round_ in range(2):
            say(made, said)
            made.world.now += EVERY * 1.2
            before = made.standups()
            assert len(before) == round_
            for effect, way, more in deaths:
                made.killed(Clockwork.stand_up, effect, way)
                say(made, more)
                made.world.now += 1.0
            assert_one_more(made, before)


def test_a_turn_that_could_not_be_used_is_free_again(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> str:
        raise NbsFileError("no space")

    with team() as made:
        say(made, 1)
        made.world.now += EVERY * 1.2
        sidecar = made.sidecar()
        with monkeypatch.context() as patch:
            patch.setattr(chat_file.ChatFile, "write", full)
            with pytest.raises(NbsFileError):
                sidecar.stand_up()
        assert made.announced() == 0
        assert_one_more(made, [])


def test_the_turn_of_a_standup_that_the_nbs_tools_posted_meanwhile_is_over() -> None:
    with team() as made:
        say(made, 1)
        made.world.now += EVERY * 1.2
        assert made.killed(Clockwork.stand_up, 4, "after")
        assert Path(standup_file.turn_path(made.world.chat.path)).exists()
        made.world.now += 7.0
        made.world.chat.send(SIDECAR, "Check-in: in other words")
        Path(standup_file.standup_path(made.world.chat.path)).write_text(f"{int(made.world.now)}")
        made.sidecar().stand_up()
        assert len(made.standups()) == 1


def test_a_supervisor_that_starts_again_and_again_does_not_begin_the_first_interval_anew() -> None:
    with team() as made:
        for _ in range(40):
            say(made, 1)
            made.world.now += EVERY / 20
            made.sidecar().stand_up()
        assert len(made.standups()) == 1


def test_another_interval_or_another_start_of_the_team_begins_anew() -> None:
    with team() as made:
        say(made, 1)
        made.world.now += EVERY * 5
        os.unlink(made.world.plan.paths.began)
        first = made.sidecar().next_look()
        assert first is not None
        assert first >= made.world.now + EVERY
        made.world.now += EVERY * 1.2
        made.world.plan = replace(made.world.plan, standup=Standup(2 * EVERY, "live"))
        longer = made.sidecar()
        later = longer.next_look()
        assert later is not None
        assert later >= made.world.now + 2 * EVERY
        longer.stand_up()
        assert made.standups() == []


class Decisions(Team):
    """A team that decides; its checkpoints are remembered though they are acknowledged and pruned."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.seen: set[str] = set()

    def decide(self, number: int) -> None:
        self.world.log.parent.mkdir(parents=True, exist_ok=True)
        with self.world.log.open("a") as file:
            file.writelines(f"### D-{n} so it is\n" for n in range(number))

    def clear(self) -> None:
        """Whoever they are for deals with them, and what is done is pruned."""
        self.look()
        for event in self.world.bus.pending().events:
            self.world.bus.ack(event.name)
        self.world.bus.prune(0)

    def look(self) -> int:
        """How many checkpoints were ever published; each is an event that the nbs tools can read."""
        pending = self.world.bus.pending()
        assert pending.problems == ()
        for event in pending.events:
            assert (event.source, event.type) == ("sidecar", "pythia-checkpoint")
            assert event.payload.startswith("Decision count: ")
        self.seen |= {event.name for event in pending.events}
        return len(self.seen)


@contextmanager
def deciding() -> Iterator[Decisions]:
    with tempfile.TemporaryDirectory() as root:
        made = Decisions(Path(root))
        made.decide(1)
        made.sidecar().count()
        yield made


@pytest.mark.parametrize("cleared", [False, True], ids=["kept", "acknowledged and pruned"])
def test_a_checkpoint_is_published_once_wherever_its_publisher_is_killed(*, cleared: bool) -> None:
    with deciding() as made:
        made.decide(BUCKET)
        deaths = deaths_in(made.sidecar().count)
        assert made.look() == 1
    assert len(deaths) > 12
    for effect, way in deaths:
        with deciding() as made:
            for bucket in (1, 2):
                made.decide(BUCKET)
                assert made.killed(Clockwork.count, effect, way)
                assert made.look() <= bucket
                if cleared:
                    made.clear()
                for _ in range(3):
                    made.sidecar().count()
                assert made.look() == bucket
                assert made.world.bus.prepared() == ()


@settings(max_examples=60)
@given(
    st.lists(
        st.one_of(
            st.tuples(st.integers(0, 12), st.sampled_from(WAYS)), st.sampled_from(["decide", "clear", "shrink", "look"])
        ),
        max_size=30,
    )
)
def test_checkpoints_are_one_per_bucket_over_any_history_of_deaths(steps: list[tuple[int, str] | str]) -> None:
    with deciding() as made:
        bucket = wanted = 0
        decisions = 1
        for step in steps:
            if step == "decide":
                made.decide(BUCKET)
                decisions += BUCKET
            elif step == "clear":
                made.clear()
            elif step == "shrink":
                # What is due is dealt with before, as a count that is never taken is no bucket.
                made.sidecar().count()
                wanted += decisions // BUCKET > bucket
                made.world.log.write_text("### D-1 what is left\n")
                decisions = 1
                made.sidecar().count()
                bucket = 0
            elif step == "look":
                made.sidecar().count()
                wanted += decisions // BUCKET > bucket
                bucket = decisions // BUCKET
            else:
                made.killed(Clockwork.count, *step)
                # Killed before or after it was done, it is the same once somebody has looked.
                made.sidecar().count()
                wanted += decisions // BUCKET > bucket
                bucket = decisions // BUCKET
            assert made.look() <= wanted + (decisions // BUCKET > bucket)
        made.sidecar().count()
        assert made.look() == wanted + (decisions // BUCKET > bucket)
