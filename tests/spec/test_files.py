"""What a team file may be on disk: text of moderate size, in a regular file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from nbs_fleet.errors import TeamFileError
from nbs_fleet.spec import read
from nbs_fleet.spec.include import source_digest
from nbs_fleet.spec.load import load_team
from nbs_fleet.spec.loaded import Loaded

GOOD = "version: 1\nteam: t\nagents: [{handle: ana}]\n"


def refused(path: str) -> str:
    with pytest.raises(TeamFileError) as caught:
        load_team(path, {})
    return caught.value.message


def test_a_missing_file_is_named_as_it_was_given(root: Path) -> None:
    assert refused("./teams/../x.yaml") == "./teams/../x.yaml: no such file; check the path"


def test_a_misspelt_file_name_is_recognised(root: Path) -> None:
    (root / "review.yaml").write_text(GOOD)
    assert refused("reveiw.yaml") == 'reveiw.yaml: no such file; did you mean "review.yaml"?'


def test_a_directory_is_refused_and_a_file_in_it_proposed(root: Path) -> None:
    (root / "teams").mkdir()
    assert refused("teams") == "teams: is a directory; name a file"
    (root / "teams" / "review.yaml").write_text(GOOD)
    assert refused("teams") == "teams: is a directory; name a file in it, such as review.yaml"


def test_a_pipe_is_refused_without_waiting_for_a_writer(root: Path) -> None:
    os.mkfifo("team.yaml")
    assert refused("team.yaml") == ("team.yaml: is not a regular file; a team file can't be a pipe, device or socket")


def test_a_device_is_refused() -> None:
    assert "is not a regular file" in refused("/dev/zero")


def test_a_file_of_fifty_megabytes_is_refused_unread(root: Path) -> None:
    with (root / "team.yaml").open("wb") as stream:
        stream.truncate(50 * 1024 * 1024)
    assert refused("team.yaml") == "team.yaml: is larger than 1048576 bytes; a team file is a few kB"


def test_a_file_that_grows_while_it_is_read_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "team.yaml").write_text(GOOD)
    monkeypatch.setattr(read, "_check_kind", lambda path, info: None)
    monkeypatch.setattr(read, "MAX_BYTES", 10)
    assert "is larger than 10 bytes" in refused("team.yaml")


def test_a_file_without_read_permission_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "team.yaml").write_text(GOOD)

    def deny(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("nbs_fleet.spec.read.os.open", deny)
    assert refused("team.yaml") == "team.yaml: can't be read (permission denied); check its owner and mode"


def test_a_link_to_itself_is_refused(root: Path) -> None:
    os.symlink("team.yaml", "team.yaml")
    assert refused("team.yaml") == "team.yaml: can't be read (too many levels of symbolic links); check the path"


@pytest.mark.parametrize("name", ["a\0b", "x" * 5000, "", "no/such/folder/team.yaml", "\ud800.yaml"])
def test_a_name_that_can_not_be_a_file_is_refused(name: str, root: Path) -> None:
    refused(name).encode()


def test_a_byte_order_mark_and_foreign_line_ends_do_no_harm(load: Callable[..., Loaded]) -> None:
    text = "\ufeff" + GOOD.replace("\n", "\r\n")
    assert load(text).team.agents[0].handle == "ana"
    with pytest.raises(TeamFileError) as caught:
        load(text + "colour: red\r\n")
    assert caught.value.problems[0].startswith("team.yaml:4:1: colour:")


def test_the_file_may_be_a_symbolic_link(root: Path) -> None:
    (root / "real").mkdir()
    (root / "real" / "t.yaml").write_text(GOOD + "root: .\n")
    os.symlink("real/t.yaml", "team.yaml")
    team = load_team("team.yaml", {}).team
    assert (team.file, team.root) == (str(root / "real" / "t.yaml"), str(root / "real"))


def test_many_problems_are_counted_rather_than_listed(load: Callable[..., Loaded]) -> None:
    with pytest.raises(TeamFileError) as caught:
        load(GOOD + "".join(f"key{n}: 1\n" for n in range(1000)))
    assert len(caught.value.problems) == 101
    assert caught.value.problems[-1] == "... and 900 more problems"


def test_the_digest_changes_with_the_text_of_the_file_or_an_included_one(
    root: Path, load: Callable[..., Loaded]
) -> None:
    (root / "base.yaml").write_text("model: opus\n")
    loaded = load("include: [base.yaml]\n" + GOOD)
    assert loaded.files == (str(root / "team.yaml"), str(root / "base.yaml"))
    assert source_digest("team.yaml", {}) == loaded.source
    (root / "base.yaml").write_text("model: sonnet\n")
    assert source_digest("team.yaml", {}) not in (loaded.source, None)
    (root / "base.yaml").unlink()
    assert source_digest("nothing.yaml", {}) is None
