from __future__ import annotations

import asyncio
import errno
import os
import shutil
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from nbs_fleet.errors import FleetError
from nbs_fleet.launch import inotify
from nbs_fleet.launch.watch import Watcher


class Heard:
    """What the callbacks of one watcher were told, as (label, name)."""

    def __init__(self, watcher: Watcher) -> None:
        self.watcher = watcher
        self.news: asyncio.Queue[tuple[str, str]] = asyncio.Queue()

    def listen(self, directory: Path, label: str = "d", *, writes: bool = True) -> Callable[[str], None]:
        def callback(name: str) -> None:
            self.news.put_nowait((label, name))

        self.watcher.add(str(directory), callback, writes=writes)
        return callback

    async def until(self, *wanted: tuple[str, str]) -> list[tuple[str, str]]:
        """All news up to the last of those that are waited for."""
        missing, got = set(wanted), []
        async with asyncio.timeout(20):
            while missing:
                got.append(await self.news.get())
                missing.discard(got[-1])
        return got


@pytest.fixture(params=[False, True], ids=["inotify", "watchdog"])
async def heard(request: pytest.FixtureRequest) -> AsyncIterator[Heard]:
    watcher = Watcher(portable=request.param)
    yield Heard(watcher)
    watcher.close()
    watcher.close()


async def test_names_of_what_changes_are_told(heard: Heard, tmp_path: Path) -> None:
    heard.listen(tmp_path)
    (tmp_path / "ünï x").write_text("1")
    await heard.until(("d", "ünï x"))
    (tmp_path / "ünï x").rename(tmp_path / "b")
    await heard.until(("d", "ünï x"), ("d", "b"))
    with (tmp_path / "b").open("a") as file:
        file.write("2")
        file.flush()
        await heard.until(("d", "b"))
    (tmp_path / "b").unlink()
    await heard.until(("d", "b"))
    (tmp_path / "folder").mkdir()
    await heard.until(("d", "folder"))


async def test_who_needs_not_each_write_is_told_when_a_file_is_whole(tmp_path: Path) -> None:
    heard = Heard(Watcher(portable=False))
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "folder")
    (tmp_path / "folder").mkdir()
    heard.listen(tmp_path / "folder", writes=False)
    try:
        with (tmp_path / "folder" / "open").open("a") as file:
            await heard.until(("d", "open"))
            file.write("1")
            file.flush()
            (tmp_path / "folder" / "whole").write_text("2")
            assert ("d", "open") not in await heard.until(("d", "whole"))
            # Another one that wants to hear of each write does, whichever way it goes.
            heard.listen(link, "writes")
            file.write("3")
            file.flush()
            await heard.until(("writes", "open"))
        await heard.until(("d", "open"))
        heard.listen(tmp_path / "folder", "both")
        with (tmp_path / "folder" / "open").open("a") as file:
            file.write("4")
            file.flush()
            await heard.until(("both", "open"))
    finally:
        heard.watcher.close()


async def test_an_atomic_replacement_is_told_by_its_name(heard: Heard, tmp_path: Path) -> None:
    (tmp_path / "state.json").touch()
    heard.listen(tmp_path)
    (tmp_path / ".state.tmp").write_text("new")
    (tmp_path / ".state.tmp").rename(tmp_path / "state.json")
    await heard.until(("d", "state.json"))


async def test_a_directory_that_is_yet_to_come_is_told_when_it_does(heard: Heard, tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b" / "c"
    heard.listen(deep)
    deep.mkdir(parents=True)
    (deep / "early").touch()
    await heard.until(("d", ""))
    (deep / "late").touch()
    await heard.until(("d", "late"))


async def test_a_directory_that_comes_step_by_step_is_found(heard: Heard, tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    heard.listen(deep)
    heard.listen(tmp_path, "top")
    (tmp_path / "a").mkdir()
    await heard.until(("top", "a"))
    deep.mkdir()
    await heard.until(("d", ""))
    (deep / "x").touch()
    await heard.until(("d", "x"))


async def test_a_directory_that_vanishes_and_comes_again_is_watched_again(heard: Heard, tmp_path: Path) -> None:
    folder = tmp_path / "a" / "b"
    folder.mkdir(parents=True)
    heard.listen(folder)
    for _ in range(3):
        shutil.rmtree(tmp_path / "a")
        await heard.until(("d", ""))
        folder.mkdir(parents=True)
        await heard.until(("d", ""))
        (folder / "x").touch()
        await heard.until(("d", "x"))


async def test_a_directory_that_was_moved_away_is_no_longer_meant(heard: Heard, tmp_path: Path) -> None:
    folder = tmp_path / "a"
    folder.mkdir()
    heard.listen(folder)
    folder.rename(tmp_path / "elsewhere")
    await heard.until(("d", ""))
    folder.mkdir()
    await heard.until(("d", ""))
    (tmp_path / "elsewhere" / "old").touch()
    (folder / "new").touch()
    assert ("d", "old") not in await heard.until(("d", "new"))


async def test_several_may_watch_one_directory_and_leave_it(heard: Heard, tmp_path: Path) -> None:
    first = heard.listen(tmp_path, "first")
    heard.listen(tmp_path, "second")
    (tmp_path / "x").touch()
    await heard.until(("first", "x"), ("second", "x"))
    heard.watcher.remove(str(tmp_path), first)
    (tmp_path / "y").touch()
    assert ("first", "y") not in await heard.until(("second", "y"))
    heard.watcher.remove(str(tmp_path))
    other = tmp_path / "other"
    other.mkdir()
    heard.listen(other, "other")
    (tmp_path / "z").touch()
    (other / "z").touch()
    assert ("second", "z") not in await heard.until(("other", "z"))


async def test_two_paths_to_one_directory_are_both_told(heard: Heard, tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    heard.listen(tmp_path / "real", "real")
    heard.listen(tmp_path / "link", "link")
    (tmp_path / "real" / "x").touch()
    await heard.until(("real", "x"), ("link", "x"))
    heard.watcher.remove(str(tmp_path / "link"))
    (tmp_path / "real" / "y").touch()
    await heard.until(("real", "y"))


async def test_what_is_removed_may_be_added_again_at_once(heard: Heard, tmp_path: Path) -> None:
    callback = heard.listen(tmp_path)
    heard.watcher.remove(str(tmp_path), callback)
    heard.watcher.remove(str(tmp_path), callback)
    heard.listen(tmp_path)
    (tmp_path / "x").touch()
    await heard.until(("d", "x"))


async def test_removing_while_told_is_borne(heard: Heard, tmp_path: Path) -> None:
    def leave(name: str) -> None:
        heard.watcher.remove(str(tmp_path))
        heard.news.put_nowait(("left", name))

    heard.watcher.add(str(tmp_path), leave)
    (tmp_path / "x").touch()
    await heard.until(("left", "x"))


async def test_a_burst_is_told_with_every_name(heard: Heard, tmp_path: Path) -> None:
    heard.listen(tmp_path)
    for number in range(500):
        (tmp_path / str(number)).touch()
    await heard.until(*(("d", str(number)) for number in range(500)))


async def test_lost_events_are_told_as_look_at_everything(tmp_path: Path) -> None:
    watcher = Watcher(portable=False)
    heard = Heard(watcher)
    (tmp_path / "there").mkdir()
    heard.listen(tmp_path / "there")
    heard.listen(tmp_path / "missing", "m")
    watcher._lost("")
    await heard.until(("d", ""), ("m", ""))
    watcher.close()


async def test_the_limit_of_watches_is_an_error_that_says_what_to_raise(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    watcher = Watcher(portable=False)

    def full(self: inotify.Inotify, directory: str, *, writes: bool) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(inotify.Inotify, "watch", full)
    with pytest.raises(FleetError, match="limit is reached") as caught:
        watcher.add(str(tmp_path), lambda _: None)
    assert caught.value.hint is not None
    assert "max_user_watches" in caught.value.hint
    watcher.close()


async def test_watching_costs_nothing_while_nothing_happens(tmp_path: Path) -> None:
    watcher = Watcher()
    for number in range(50):
        (tmp_path / str(number)).mkdir()
        watcher.add(str(tmp_path / str(number)), lambda _: None)
    loop = asyncio.get_running_loop()
    waked = 0
    real = loop._run_once  # type: ignore[attr-defined]

    def counted() -> None:
        nonlocal waked
        waked += 1
        real()

    loop._run_once = counted  # type: ignore[attr-defined]
    began, spent = time.monotonic(), time.process_time()
    over = loop.create_future()
    loop.call_later(0.2, over.set_result, None)
    await over
    assert time.monotonic() - began >= 0.19
    assert waked <= 5
    assert time.process_time() - spent < 0.05
    watcher.close()


async def test_no_descriptor_stays_open(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    watcher = Watcher(portable=False)
    watcher.add(str(tmp_path), lambda _: None)
    watcher.close()
    assert os.listdir("/proc/self/fd") == before


async def test_only_what_notifies_surely_is_said_to_tell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    local, portable, remote = Watcher(portable=False), Watcher(portable=True), Watcher(portable=False)
    try:
        for watcher in (local, portable):
            watcher.add(str(tmp_path), lambda _name: None)
        assert (local.tells, portable.tells) == (True, False)
        monkeypatch.setattr("nbs_fleet.launch.watch.file_system", lambda _path: "nfs4")
        remote.add(str(tmp_path), lambda _name: None)
        assert not remote.tells
    finally:
        for watcher in (local, portable, remote):
            watcher.close()


async def test_a_directory_beyond_the_limit_of_watches_is_not_said_to_tell(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_self: inotify.Inotify, directory: str, *, writes: bool) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), directory)

    watcher = Watcher(portable=False)
    try:
        assert watcher.tells
        monkeypatch.setattr(inotify.Inotify, "watch", full)
        with pytest.raises(FleetError, match="limit"):
            watcher.add(str(tmp_path), lambda _name: None)
        assert not watcher.tells
    finally:
        watcher.close()
