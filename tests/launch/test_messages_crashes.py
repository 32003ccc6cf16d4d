"""A mailbox: whatever dies between whichever two file operations, no message is lost, doubled or ended twice."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbs_fleet.launch.messages import Mailbox, Parcel
from nbs_fleet.model import Delivered, Outcome
from tests.support.mailbox import claim, finish, folders, message, where
from tests.support.waiting import eventually


@pytest.fixture
def box(tmp_path: Path) -> Mailbox:
    return Mailbox(folders(tmp_path))


class Crashed(BaseException):
    """The process is gone: nothing it would have done after this happens."""


CHANGES = ("open", "write", "fsync", "link", "rename", "replace", "unlink", "mkdir", "fchmod")


@contextmanager
def dying(after: int | None) -> Iterator[None]:
    """Let the process die before its file operation number `after`; a write that is cut off is half done.

    Waiting for the disk is only counted: a power failure is another matter.
    """
    left = [after]
    real = {name: getattr(os, name) for name in CHANGES}

    def wrap(name: str) -> Callable[..., Any]:
        def call(*args: Any, **more: Any) -> Any:
            if left[0] is not None:
                if left[0] <= 0:
                    if name == "write" and left[0] == 0:
                        real["write"](args[0], bytes(args[1])[: len(args[1]) // 2])
                    left[0] = -1
                    raise Crashed
                left[0] -= 1
            return None if name == "fsync" else real[name](*args, **more)

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in CHANGES:
            patch.setattr(os, name, wrap(name))
        yield


class Model:
    """What must be true of a mailbox, whatever happened to it."""

    def __init__(self, box: Mailbox) -> None:
        self.paths = box.paths
        self.box = box
        self.accepted: set[int] = set()
        self.ended: dict[int, Outcome] = {}
        self.claims: dict[int, int] = {}

    def perform(self, what: str, number: int, dies: int | None) -> bool:
        """Do one thing; whether it died in it."""
        one, identity = message(number), f"d-0-{number}"
        actions: dict[str, Callable[[], object]] = {
            "accept": lambda: self.box.accept(one),
            "mail": lambda: self.box.put_mail(one, f"text {number}"),
            "inbox": lambda: self.box.put_inbox(one, f"text {number}"),
            "take back": lambda: self.box.take_back(identity),
            "put back": lambda: self.box.put_back(identity),
            "deliver": lambda: finish(self.box, identity),
            "fail": lambda: finish(self.box, identity, Outcome.FAILED),
            "ring": self.box.ring,
            "probe": self.box.put_probe,
            "clear": self.box.clear_probe,
            "tidy": self.box.tidy,
        }
        if what == "claim":
            for text in claim(self.box) + claim(self.box, "inbox"):
                taken = int(text.removeprefix("text "))
                self.claims[taken] = self.claims.get(taken, 0) + 1
            return False
        crashed, answer = False, None
        with dying(dies):
            try:
                answer = actions[what]()
            except Crashed:
                crashed = True
        if crashed:
            self.box = Mailbox(self.paths)
        self.conclude(what, number, crashed=crashed, answer=answer)
        return crashed

    def conclude(self, what: str, number: int, *, crashed: bool, answer: object) -> None:
        now = self.box.find(f"d-0-{number}")
        if what == "accept" and (not crashed or now is not None):
            self.accepted.add(number)
        if what in ("deliver", "fail"):
            outcome = Outcome.DELIVERED if what == "deliver" else Outcome.FAILED
            if isinstance(now, Delivered):
                assert crashed or answer is (number not in self.ended)
                self.ended.setdefault(number, outcome)
            else:
                assert crashed or answer is False
        if what == "put back":
            self.claims[number] = 0
        if what in ("mail", "inbox", "take back") and not crashed:
            place = now.place if isinstance(now, Parcel) else "gone"
            assert answer is (place == {"take back": "queue"}.get(what, what))

    def check(self) -> None:
        reader = Mailbox(self.paths)
        waiting = where(reader)
        assert reader.damaged() == ()
        assert waiting.keys() == {f"d-0-{n}" for n in self.accepted - self.ended.keys()}
        archived = {e.message.id: e.outcome for e in reader.archived(99)}
        assert archived == {f"d-0-{n}": outcome for n, outcome in self.ended.items()}
        assert all(count <= 1 for count in self.claims.values())
        tokens = [
            (name[17:-4], place, Path(f"{self.paths.dir}/{place}/{name}").read_text(encoding="utf-8"))
            for place in ("mail", "inbox", "claimed")
            for name in os.listdir(f"{self.paths.dir}/{place}")
            if name.endswith(".msg")
        ]
        # A client's hook takes only what is registered: a token without record would lie there for ever.
        assert {name for name, _, _ in tokens} <= {n.removesuffix(".json") for n in os.listdir(self.paths.queue)}
        for identity, place in waiting.items():
            mine = [(where_, text) for name, where_, text in tokens if name == identity]
            assert mine == ([] if place == "queue" else [(place, f"text {identity[4:]}")])


STEPS = st.tuples(
    st.sampled_from(
        (
            *("accept", "accept", "mail", "mail", "inbox", "claim", "claim", "take back", "put back"),
            *("deliver", "fail", "ring", "probe", "clear", "tidy"),
        )
    ),
    st.integers(0, 2),
    st.none() | st.integers(0, 12),
)


@settings(max_examples=80, deadline=None)
@given(st.lists(STEPS, max_size=14))
def test_no_crash_between_two_file_operations_loses_or_doubles_a_message(
    steps: list[tuple[str, int, int | None]],
) -> None:
    with TemporaryDirectory() as base:
        model = Model(Mailbox(folders(Path(base))))
        for step in steps:
            model.perform(*step)
            model.check()
        model.box.tidy()
        model.check()
        assert {n[:-5] for n in os.listdir(model.paths.queue) if not n.startswith(".")} == where(model.box).keys()


@pytest.mark.parametrize("prepared", [("accept",), ("accept", "mail"), ("accept", "mail", "claim")])
@pytest.mark.parametrize("what", ["accept", "mail", "inbox", "take back", "put back", "deliver"])
def test_each_single_crash_point_of_each_step(what: str, prepared: tuple[str, ...]) -> None:
    for dies in count():
        with TemporaryDirectory() as base:
            model = Model(Mailbox(folders(Path(base))))
            for step in prepared if what != "accept" else ():
                model.perform(step, 1, None)
            crashed = model.perform(what, 1, dies)
            model.check()
            # What was cut off can be done again.
            model.perform(what, 1, None)
            model.check()
        if not crashed:
            break


WRITER = """
import secrets, sys, time
from nbs_fleet.launch.messages import Mailbox, new_id
from nbs_fleet.model import Message, MessageKind
from nbs_fleet.plan.paths import AgentPaths
box = Mailbox(AgentPaths(sys.argv[1], ""))
for number in range(25):
    now = time.time()
    one = new_id(MessageKind.DIRECTIVE, now, secrets.randbits(64))
    box.accept(Message(one, "ana", sys.argv[2], f"{number}", now))
    print(one)
"""


def test_eight_writers_and_a_reader_that_ends_messages_lose_none(box: Mailbox) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, box.paths.dir, f"w{n}"], stdout=subprocess.PIPE, text=True)
        for n in range(8)
    ]
    ended: set[str] = set()

    def work() -> bool:
        running = any(w.poll() is None for w in writers)
        for parcel in box.waiting()[::2]:
            assert parcel.message.id not in ended
            assert finish(box, parcel.message.id)
            ended.add(parcel.message.id)
        return not running

    eventually(work, 60)
    accepted = [one for w in writers for one in w.communicate(timeout=10)[0].split()]
    assert [w.returncode for w in writers] == [0] * 8
    assert len(set(accepted)) == len(accepted) == 8 * 25
    left = where(box).keys()
    assert ended | left == set(accepted)
    assert not ended & left
    assert box.damaged() == ()
    assert ended == {e.message.id for e in box.archived(1000)}


def raced(*works: Callable[[], object]) -> list[object]:
    """The answers of these works, begun together in threads."""
    gate = threading.Barrier(len(works))
    answers: list[object] = [None] * len(works)

    def run(place: int, work: Callable[[], object]) -> None:
        gate.wait(10)
        answers[place] = work()

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(works)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    return answers


def test_a_message_is_either_taken_or_taken_back(box: Mailbox) -> None:
    for number in range(25):
        box.accept(message(number))
        box.put_mail(message(number), "x")

        def take() -> bool:
            try:
                return bool(claim(box))
            except FileNotFoundError:
                return False

        back, taken = raced(partial(box.take_back, f"d-0-{number}"), take)
        assert back is not taken
        assert where(box)[f"d-0-{number}"] == ("claimed" if taken else "queue")
        finish(box, f"d-0-{number}")


def test_of_two_that_end_a_message_one_does(box: Mailbox) -> None:
    for number in range(20):
        box.accept(message(number))
        box.put_mail(message(number), "x")
        one, other = raced(
            partial(finish, Mailbox(box.paths), f"d-0-{number}"),
            partial(finish, Mailbox(box.paths), f"d-0-{number}", Outcome.WITHDRAWN),
        )
        assert one is not other
        ended = box.find(f"d-0-{number}")
        assert isinstance(ended, Delivered)
        assert ended.outcome is (Outcome.DELIVERED if one else Outcome.WITHDRAWN)
        assert box.waiting() == ()


def test_who_ends_a_message_while_it_is_put_into_the_mail_leaves_no_token(box: Mailbox) -> None:
    for number in range(20):
        box.accept(message(number))
        raced(
            partial(box.put_mail, message(number), "x"),
            partial(finish, Mailbox(box.paths), f"d-0-{number}"),
        )
        assert box.waiting() == ()
        assert os.listdir(box.paths.mail) == []
