from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.errors import FleetError
from nbs_fleet.launch.files import append_line, read_text, write_atomic


def test_a_file_is_replaced_with_the_mode_asked_for(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    before = os.umask(0o077)
    try:
        write_atomic(str(path), "old", 0o755)
        write_atomic(str(path), b"new \xff", 0o640, durable=True)
    finally:
        os.umask(before)
    assert path.read_bytes() == b"new \xff"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(tmp_path) == ["state.json"]


def test_text_that_came_from_strange_bytes_is_written_as_those(tmp_path: Path) -> None:
    write_atomic(str(tmp_path / "x"), os.fsdecode(b"\xff\xfe"))
    assert (tmp_path / "x").read_bytes() == b"\xff\xfe"


def test_a_full_disk_loses_nothing_that_was_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "state.json"
    path.write_text("old")

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(FleetError, match="No space left") as caught:
        write_atomic(str(path), "new")
    assert caught.value.hint is not None
    assert "unharmed" in caught.value.hint
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["state.json"]


def test_short_writes_are_carried_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data)[:3]))
    write_atomic(str(tmp_path / "x"), "a longer text")
    assert (tmp_path / "x").read_text() == "a longer text"


def test_a_link_at_the_place_is_replaced_not_followed(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("safe")
    (tmp_path / "state.json").symlink_to(tmp_path / "victim")
    write_atomic(str(tmp_path / "state.json"), "new")
    assert (tmp_path / "victim").read_text() == "safe"
    assert not (tmp_path / "state.json").is_symlink()


def test_a_missing_folder_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    with pytest.raises(FleetError, match=r"can't write .*nowhere/x: No such file"):
        write_atomic(str(tmp_path / "nowhere" / "x"), "")
    with pytest.raises(FleetError, match="can't append to"):
        append_line(str(tmp_path / "nowhere" / "x"), b"")


@given(st.lists(st.binary().filter(lambda line: b"\n" not in line)))
def test_lines_are_appended_as_they_are(tmp_path_factory: pytest.TempPathFactory, lines: list[bytes]) -> None:
    path = tmp_path_factory.mktemp("append") / "story.jsonl"
    for line in lines:
        append_line(str(path), line)
    assert (path.read_bytes() if lines else b"") == b"".join(line + b"\n" for line in lines)


def test_a_record_that_was_cut_off_spoils_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "story.jsonl"
    path.write_bytes(b'{"a": 1}\n{"b": ')
    append_line(str(path), b'{"c": 3}\n')
    assert path.read_bytes() == b'{"a": 1}\n{"b": \n{"c": 3}\n'
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(path.stat().st_mode)


def test_reading_is_bounded_and_never_hangs(tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes("é\n".encode() + b"\xff")
    os.mkfifo(tmp_path / "pipe")
    assert read_text(str(tmp_path / "text"), 4) == "é\n\ufffd"
    assert read_text(str(tmp_path / "none"), 4) is None
    assert read_text(str(tmp_path / "text" / "below"), 4) is None
    with pytest.raises(FleetError, match="has 4 bytes, 3 are allowed"):
        read_text(str(tmp_path / "text"), 3)
    for strange in (tmp_path / "pipe", tmp_path):
        with pytest.raises(FleetError, match="no regular file"):
            read_text(str(strange), 100)
