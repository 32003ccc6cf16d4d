"""Files of secret variables: who may read them, and what stands in them."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.errors import TeamFileError
from nbs_fleet.spec.envfile import looks_secret, parse, read
from nbs_fleet.spec.loaded import Loaded

TEXT = "version: 1\nteam: t\nagents: [{handle: ana, env_file: secrets.env}]\n"


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("A=x", "x"),
        ("  export A = x y  ", "x y"),
        ("A=", ""),
        ("A=a=b#c", "a=b#c"),
        ("A='a b' # note", "a b"),
        ("A='$B\\n'", "$B\\n"),
        ('A="a\\n\\"b\\" \\$c \\q"', 'a\n"b" $c \\q'),
        ("A=${B}", "${B}"),
        ("\ufeffA=x\r", "x"),
    ],
)
def test_a_line_gives_one_variable(line: str, value: str) -> None:
    assert parse(f"{line}\n# note\n\n") == {"A": value}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A=1\nsecret stuff\n", "e:2: is not KEY=VALUE; comments begin with #"),
        ("1A=secret\n", "e:1: is not KEY=VALUE; comments begin with #"),
        ("A=1\nA=secret\n", "e:2: A is set twice; keep one"),
        ("NBS_HANDLE=secret\n", "e:1: NBS_HANDLE is set by nbs-fleet in each pane; remove it"),
        (
            'A="secret\n',
            "e:1: the value of A has a quote that does not end the line; close it, or quote the whole value",
        ),
        (
            "A='secret' more\n",
            "e:1: the value of A has a quote that does not end the line; close it, or quote the whole value",
        ),
    ],
)
def test_a_faulty_line_is_named_by_number_and_never_shown(text: str, message: str) -> None:
    with pytest.raises(TeamFileError) as caught:
        parse(text, "e")
    assert caught.value.problems == (message,)
    assert "secret" not in caught.value.message


@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    try:
        values = parse(text)
    except TeamFileError:
        return
    assert all(name.isidentifier() for name in values)


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_a_file_closed_to_others_is_read(mode: int, root: Path, load: Callable[..., Loaded]) -> None:
    (root / "secrets.env").write_text("TOKEN=abc\n")
    (root / "secrets.env").chmod(mode)
    assert load(TEXT).team.agents[0].env_file == str(root / "secrets.env")
    assert read(str(root / "secrets.env")) == {"TOKEN": "abc"}


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o644, 0o666, 0o620])
def test_a_file_open_to_others_is_refused(mode: int, root: Path, load: Callable[..., Loaded]) -> None:
    (root / "secrets.env").write_text("TOKEN=abc\n")
    (root / "secrets.env").chmod(mode)
    with pytest.raises(TeamFileError) as caught:
        load(TEXT)
    assert caught.value.problems == (
        (
            f'team.yaml:3:34: agents[0].env_file: "secrets.env": has mode {mode:04o}, so others can read it; '
            "run chmod 600 on it"
        ),
    )


def test_a_file_of_another_user_is_refused(
    root: Path, load: Callable[..., Loaded], monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "secrets.env").write_text("TOKEN=abc\n")
    (root / "secrets.env").chmod(0o600)
    monkeypatch.setattr("nbs_fleet.spec.envfile.os.geteuid", lambda: os.getuid() + 1)
    with pytest.raises(TeamFileError, match="belongs to another user"):
        load(TEXT)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_what_is_no_regular_file_is_refused_without_blocking(
    make: Callable[[str], None], root: Path, load: Callable[..., Loaded]
) -> None:
    make("secrets.env")
    with pytest.raises(TeamFileError, match="is not a regular file"):
        load(TEXT)


@pytest.mark.parametrize(
    ("data", "why"), [(b"A=\xff\n", "is not UTF-8"), (b"A=\0\n", "a NUL byte"), (b"A=" + b"x" * 2**20, "larger")]
)
def test_what_is_no_short_text_is_refused(data: bytes, why: str, root: Path, load: Callable[..., Loaded]) -> None:
    (root / "secrets.env").write_bytes(data)
    (root / "secrets.env").chmod(stat.S_IRUSR)
    with pytest.raises(TeamFileError, match=why):
        load(TEXT)


def test_faulty_lines_are_said_when_the_team_file_is_checked(root: Path, load: Callable[..., Loaded]) -> None:
    (root / "secrets.env").write_text("A=1\nhunter2\n")
    (root / "secrets.env").chmod(0o600)
    with pytest.raises(TeamFileError) as caught:
        load(TEXT)
    assert caught.value.problems == (
        "team.yaml:3:34: agents[0].env_file: secrets.env:2: is not KEY=VALUE; comments begin with #",
    )


def test_secret_names_are_recognised() -> None:
    assert [n for n in ("API_KEY", "my_token", "PASSWORD", "CLIENT_SECRET", "LOG", "HOME") if looks_secret(n)] == [
        "API_KEY",
        "my_token",
        "PASSWORD",
        "CLIENT_SECRET",
    ]
