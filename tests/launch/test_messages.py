"""A mailbox: where messages lie, how they move, and what is refused."""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.errors import FleetError
from nbs_fleet.launch import messages
from nbs_fleet.launch.messages import ID, Mailbox, Parcel, new_id, token_name
from nbs_fleet.model import Delivered, MessageKind, Outcome
from nbs_fleet.plan.paths import AgentPaths
from tests.support.mailbox import NOW, claim, finish, folders, message, where


@pytest.fixture
def box(tmp_path: Path) -> Mailbox:
    return Mailbox(folders(tmp_path))


def test_an_id_has_its_kind_s_letter_and_sorts_by_time() -> None:
    ids = [new_id(kind, NOW, 7) for kind in MessageKind]
    assert [i[0] for i in ids] == ["d", "n", "g", "c"]
    assert all(ID.fullmatch(i) for i in ids)
    times = [0.0, 1.5, NOW, NOW + 0.001, NOW + 1, 1.5 * NOW]
    made = [new_id(MessageKind.NOTICE, at, 3) for at in times]
    assert made == sorted(made)
    assert new_id(MessageKind.NOTICE, NOW, 1) != new_id(MessageKind.NOTICE, NOW, 2)


@given(st.floats(0, 2e9), st.integers(0, 2**80))
def test_every_id_can_be_an_id(now: float, rand: int) -> None:
    assert ID.fullmatch(new_id(MessageKind.DIRECTIVE, now, rand))


def test_tokens_sort_by_time() -> None:
    assert token_name(message(1, created=12.5)) == "0000000012500000-d-0-1.msg"
    names = [token_name(message(n, created=at)) for n, at in ((1, -3.0), (5, 2.0), (2, NOW), (3, NOW + 0.00001))]
    assert names == sorted(names)


def test_what_was_accepted_waits_oldest_first(box: Mailbox) -> None:
    for number in (3, 1, 2):
        box.accept(message(number))
    assert [p.message.id for p in box.waiting()] == ["d-0-1", "d-0-2", "d-0-3"]
    assert box.waiting()[0] == Parcel(message(1), "queue")
    assert box.find("d-0-2") == Parcel(message(2), "queue")
    assert box.find("d-0-9") is None
    assert box.find("../../etc") is None


def test_a_message_is_on_the_disk_before_it_counts_as_accepted(box: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def spy(name: str, told: Callable[..., str]) -> None:
        real = getattr(os, name)

        def call(*args: Any) -> Any:
            done.append(told(*args))
            return real(*args)

        monkeypatch.setattr(os, name, call)

    spy("fsync", lambda fd: "sync " + os.path.basename(os.readlink(f"/proc/self/fd/{fd}"))[-4:])
    spy("link", lambda _, name: f"name {os.path.basename(name)}")
    box.accept(message())
    assert done == ["sync .tmp", "name d-0-1.json", "sync ueue"]
    done.clear()
    spy("unlink", lambda path: f"gone {os.path.basename(path)}")
    finish(box, "d-0-1")
    assert [d for d in done if not d.endswith(".tmp")] == ["name d-0-1.json", "sync hive", "gone d-0-1.json"]


def test_the_same_message_again_changes_nothing_and_another_is_refused(box: Mailbox) -> None:
    box.accept(message())
    box.accept(message())
    with pytest.raises(FleetError, match="taken by another message"):
        box.accept(message(text="other"))
    finish(box, "d-0-1")
    box.accept(message())
    assert box.waiting() == ()
    with pytest.raises(FleetError, match="taken by another message"):
        box.accept(message(text="other"))


@pytest.mark.parametrize("identity", ["", "d-1", "../x", "d-A-1", "d-1-1\n"])
def test_an_id_that_is_none_is_refused(box: Mailbox, identity: str) -> None:
    with pytest.raises(FleetError, match="no id of a message"):
        box.accept(message(id=identity))


def test_a_text_that_is_no_text_is_refused(box: Mailbox) -> None:
    with pytest.raises(FleetError, match="can't be written as UTF-8"):
        box.accept(message(text="\udcff"))


def test_mail_is_taken_once(box: Mailbox) -> None:
    box.accept(message())
    assert box.put_mail(message(), "spoken é")
    assert box.put_mail(message(), "spoken again")
    assert where(box) == {"d-0-1": "mail"}
    assert claim(box) == ["spoken é"]
    assert where(box) == {"d-0-1": "claimed"}
    assert not box.put_mail(message(), "spoken")
    assert not box.put_inbox(message(), "spoken")
    assert not box.take_back("d-0-1")
    assert os.listdir(box.paths.mail) == []


def test_a_token_can_move_and_be_taken_back(box: Mailbox) -> None:
    box.accept(message())
    assert box.put_inbox(message(), "x")
    assert where(box) == {"d-0-1": "inbox"}
    assert box.put_mail(message(), "y")
    assert where(box) == {"d-0-1": "mail"}
    assert box.take_back("d-0-1")
    assert box.take_back("d-0-1")
    assert where(box) == {"d-0-1": "queue"}
    assert claim(box) == []
    assert not box.take_back("d-0-9")


def test_what_a_dead_client_had_taken_waits_again(box: Mailbox) -> None:
    box.accept(message())
    assert not box.put_back("d-0-1")
    box.put_mail(message(), "x")
    claim(box)
    assert box.put_back("d-0-1")
    assert where(box) == {"d-0-1": "queue"}
    assert box.put_mail(message(), "x")
    assert claim(box) == ["x"]


@pytest.mark.parametrize("place", ["queue", "mail", "inbox", "claimed"])
def test_a_message_ends_once_wherever_it_lies(box: Mailbox, place: str) -> None:
    box.accept(message())
    if place == "inbox":
        box.put_inbox(message(), "x")
    elif place != "queue":
        box.put_mail(message(), "x")
    if place == "claimed":
        claim(box)
    assert finish(box, "d-0-1")
    assert not finish(box, "d-0-1", Outcome.FAILED)
    ended = Delivered(message(), Outcome.DELIVERED, NOW + 9, "mail", "seen")
    assert box.find("d-0-1") == ended
    assert box.archived(5) == (ended,)
    assert box.waiting() == ()
    assert not box.put_mail(message(), "x")
    assert not box.take_back("d-0-1")
    left = [p for f in ("queue", "mail", "inbox", "claimed") for p in os.listdir(f"{box.paths.dir}/{f}")]
    assert left == []


def test_ending_what_is_not_there_does_nothing(box: Mailbox) -> None:
    assert not finish(box, "d-0-1")
    assert not finish(box, "../x")
    assert box.archived(5) == ()


def test_a_record_that_is_removed_before_its_message_ended_is_told_once(box: Mailbox) -> None:
    for number in (1, 2, 3):
        box.accept(message(number))
    box.waiting()
    os.unlink(os.path.join(box.paths.queue, "d-0-1.json"))
    assert finish(box, "d-0-2")
    assert where(box) == {"d-0-3": "queue"}
    assert box.damaged() == ("queue/d-0-1.json",)
    box.waiting()
    assert box.damaged() == ()


def test_damaged_records_are_told_once_and_harm_nothing(box: Mailbox) -> None:
    box.accept(message())
    queue = Path(box.paths.queue)
    (queue / "d-0-2.json").write_text('{"id": "d-0-2", "to"')
    (queue / "d-0-3.json").write_bytes((queue / "d-0-1.json").read_bytes())
    (queue / "d-0-4.json").mkdir()
    (queue / "note.txt").write_text("not ours")
    assert where(box) == {"d-0-1": "queue"}
    assert box.damaged() == ("queue/d-0-2.json", "queue/d-0-3.json", "queue/d-0-4.json")
    box.waiting()
    assert box.damaged() == ()
    assert not finish(box, "d-0-2")
    assert (queue / "d-0-2.json").exists()
    (queue / "d-0-2.json").unlink()
    box.waiting()
    (queue / "d-0-2.json").write_text("again")
    box.waiting()
    assert box.damaged() == ("queue/d-0-2.json",)


def test_the_newest_stay_in_the_archive(box: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(messages, "KEPT", 3)
    monkeypatch.setattr(messages, "_SLACK", 1)
    for number in range(9):
        box.accept(message(number))
        finish(box, f"d-0-{number}")
        os.utime(f"{box.paths.archive}/d-0-{number}.json", (number, number))
    # The oldest that is still half in the queue is the only witness that it has ended.
    assert [e.message.id for e in box.archived(50)] == ["d-0-8", "d-0-7", "d-0-6"]
    Path(f"{box.paths.queue}/d-0-6.json").write_bytes(b"{}")
    for number in range(9, 20):
        box.accept(message(number))
        finish(box, f"d-0-{number}")
    assert os.path.exists(f"{box.paths.archive}/d-0-6.json")
    assert len(os.listdir(box.paths.archive)) <= 3 + 1 + 1


def test_the_bell_rings_by_going_away_once_it_is_old_enough(box: Mailbox) -> None:
    bell = Path(box.paths.mail) / "tok"
    assert not box.ring()
    assert bell.exists()
    assert not box.ring()
    assert bell.exists()
    for age in (2, -3600):
        os.utime(bell, (time.time() - age,) * 2)
        assert box.ring()
        assert not bell.exists()
        bell.touch()
    assert box.waiting() == ()


def test_the_probe_is_taken_or_not(box: Mailbox) -> None:
    box.put_probe()
    box.put_probe()
    assert not box.probe_taken()
    os.rename(f"{box.paths.mail}/probe", f"{box.paths.claimed}/probe")
    assert box.probe_taken()
    assert box.waiting() == ()
    box.put_probe()
    assert not box.probe_taken()
    box.clear_probe()
    box.clear_probe()
    assert os.listdir(box.paths.mail) == os.listdir(box.paths.claimed) == []


def test_folders_that_vanished_are_made_again(tmp_path: Path) -> None:
    box = Mailbox(AgentPaths(str(tmp_path / "a"), ""))
    assert box.waiting() == ()
    assert not box.probe_taken()
    box.accept(message())
    assert box.put_mail(message(), "x")
    box.put_probe()
    assert finish(box, "d-0-1")


def test_tidy_removes_what_no_message_has(box: Mailbox) -> None:
    box.accept(message())
    box.put_mail(message(), "x")
    Path(f"{box.paths.claimed}/0000000000000001-d-0-7.msg").touch()
    old, young = Path(f"{box.paths.queue}/.d-0-1.json.ab.tmp"), Path(f"{box.paths.archive}/.x.tmp")
    old.touch()
    young.touch()
    os.utime(old, (1, 1))
    assert box.tidy() == ("claimed/0000000000000001-d-0-7.msg",)
    assert where(box) == {"d-0-1": "mail"}
    assert not old.exists()
    assert young.exists()


def full(*_: Any) -> Any:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_loses_nothing_that_was_accepted(box: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    box.accept(message(1))
    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        for refused in (
            lambda: box.accept(message(2)),
            lambda: box.put_mail(message(1), "x"),
            lambda: finish(box, "d-0-1"),
        ):
            with pytest.raises(FleetError, match="No space left"):
                refused()
            assert where(box) == {"d-0-1": "queue"}
            assert box.damaged() == ()
    for name in ("rename", "link"):
        with monkeypatch.context() as patch:
            patch.setattr(os, name, full)
            with pytest.raises(FleetError, match="No space left"):
                box.put_mail(message(1), "x") if name == "rename" else finish(box, "d-0-1")
        assert where(box) == {"d-0-1": "queue"}
    assert box.put_mail(message(1), "x")
    assert finish(box, "d-0-1")


def test_a_file_system_without_hard_links_will_do(box: Mailbox, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(errno.EPERM, os.strerror(errno.EPERM))

    monkeypatch.setattr(os, "link", refuse)
    box.accept(message())
    with pytest.raises(FleetError, match="taken"):
        box.accept(message(text="other"))
    assert finish(box, "d-0-1")
    assert not finish(box, "d-0-1")
    assert os.listdir(box.paths.queue) == []
