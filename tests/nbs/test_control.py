"""The control inbox, the registry, and the paths an agent may name."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nbs_fleet.nbs import control
from nbs_fleet.nbs.control import OutsideError, Position, Registry, end_of, read_inbox, resolve, seed
from nbs_fleet.nbs.control_commands import VERBS, Command, Problem, parse_command


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "root" / ".nbs" / "chat").mkdir(parents=True)
    return tmp_path / "root"


def test_commands_with_and_without_their_prefix() -> None:
    for line in ("register-chat a.chat", "\\nbs-register-chat a.chat", "nbs-register-chat  a.chat  # note"):
        assert parse_command(line) == Command("register-chat", "a.chat")
    command = parse_command("unregister-hub x")
    assert isinstance(command, Command)
    assert (command.kind, command.registers) == ("hub", False)
    poll = parse_command("set-poll-interval 60")
    assert isinstance(poll, Command)
    assert (poll.kind, poll.seconds) == (None, 60)


@pytest.mark.parametrize("line", ["", "   ", "# a remark", "#register-chat x"])
def test_blank_lines_and_remarks_are_nothing(line: str) -> None:
    assert parse_command(line) is None


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("regster-chat x", "unknown verb 'regster-chat'; did you mean register-chat?"),
        ("dance", "unknown verb 'dance'"),
        ("register-chat", "register-chat needs a path"),
        ("set-poll-interval", "set-poll-interval needs seconds"),
        ("set-poll-interval soon", "'soon' is no number of seconds from 0 to 100000"),
        ("set-poll-interval 100001", "'100001' is no number of seconds from 0 to 100000"),
        ("register-chat " + "x" * 5000, "the line is longer than 4096 characters"),
    ],
)
def test_lines_that_are_no_command_say_why(line: str, why: str) -> None:
    found = parse_command(line)
    assert isinstance(found, Problem)
    assert found.why == why


def test_a_last_line_without_newline_waits(tmp_path: Path) -> None:
    path = tmp_path / "inbox"
    assert read_inbox(str(path), Position()).found == ()
    path.write_text("register-chat a.chat\nregister-ch")
    news = read_inbox(str(path), Position())
    assert news.found == (Command("register-chat", "a.chat"),)
    assert read_inbox(str(path), news.position).found == ()
    with path.open("a") as file:
        file.write("at b.chat\n# done\nfly away\n")
    news = read_inbox(str(path), news.position)
    assert news.found == (Command("register-chat", "b.chat"), Problem("fly away", "unknown verb 'fly'"))
    assert read_inbox(str(path), news.position).found == ()


def test_what_stands_there_from_an_earlier_life_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "inbox"
    assert end_of(str(path)) == Position()
    path.write_text("register-chat old.chat\n")
    position = end_of(str(path))
    with path.open("a") as file:
        file.write("register-chat new.chat\n")
    assert read_inbox(str(path), position).found == (Command("register-chat", "new.chat"),)


def test_an_inbox_that_was_cut_or_replaced_is_said_and_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "inbox"
    path.write_text("register-chat a.chat\nregister-chat b.chat\n")
    position = read_inbox(str(path), Position()).position
    path.write_text("register-bus c\n")
    problem, command = read_inbox(str(path), position).found
    assert isinstance(problem, Problem)
    assert "read from its beginning" in problem.why
    assert command == Command("register-bus", "c")
    position = read_inbox(str(path), Position()).position
    other = tmp_path / "other"
    other.write_text("register-bus c\nregister-bus d\n")
    os.replace(other, path)
    assert len(read_inbox(str(path), position).found) == 3


lines = st.lists(st.sampled_from((*(f"{verb} 5" for verb in VERBS), "# x", "", "nonsense here", "é ü")), max_size=20)


@settings(max_examples=50, deadline=None)
@given(lines, st.data())
def test_however_an_inbox_grows_each_line_counts_once(written: list[str], data: st.DataObject) -> None:
    content = "".join(f"{line}\n" for line in written).encode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=6)))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "inbox")
        position, found, place = Position(), list[Command | Problem](), 0
        for cut in [*cuts, len(content)]:
            with path.open("ab") as file:
                file.write(content[place:cut])
            place = cut
            news = read_inbox(str(path), position)
            position = news.position
            found += news.found
        assert found == [command for line in written if (command := parse_command(line)) is not None]
        assert position.offset == len(content)


def test_paths_inside_the_root_are_resolved(root: Path) -> None:
    assert resolve(str(root), ".nbs/chat/a.chat") == str(root / ".nbs/chat/a.chat")
    assert resolve(str(root), str(root / "x/../y")) == str(root / "y")
    (root / "link").symlink_to(".nbs")
    assert resolve(str(root), "link/chat/a.chat") == str(root / ".nbs/chat/a.chat")


@pytest.mark.parametrize("path", ["..", "../other/x", "/etc/passwd", ".", "", "a/../../x", "x\0y", "a\nb", "out/x"])
def test_paths_outside_of_the_root_are_refused(root: Path, path: str) -> None:
    (root.parent / "elsewhere").mkdir()
    (root / "out").symlink_to(root.parent / "elsewhere")
    with pytest.raises(OutsideError):
        resolve(str(root), path)


def test_a_root_whose_name_begins_another_s_is_not_that_other(root: Path) -> None:
    (root.parent / "root2").mkdir()
    with pytest.raises(OutsideError):
        resolve(str(root), "../root2/x")


def test_a_registry_keeps_order_and_each_entry_once(root: Path) -> None:
    registry = Registry(str(root), "ana")
    assert registry.entries() == ()
    assert registry.add("chat", "/x/live.chat")
    assert registry.add("bus", "/x/events")
    assert not registry.add("chat", "/x/live.chat")
    assert registry.add("chat", "/x/b.chat")
    assert Path(registry.path).read_text() == "chat:/x/live.chat\nbus:/x/events\nchat:/x/b.chat\n"
    assert registry.paths("chat") == ("/x/live.chat", "/x/b.chat")
    assert registry.remove("chat", "/x/live.chat")
    assert not registry.remove("chat", "/x/live.chat")
    assert registry.entries() == (("bus", "/x/events"), ("chat", "/x/b.chat"))
    assert stat.S_IMODE(os.stat(registry.path).st_mode) == 0o600
    assert os.listdir(root / ".nbs") == ["control-registry-ana", "chat"] or len(os.listdir(root / ".nbs")) == 2


def test_a_registry_that_holds_just_this_is_not_written_again(root: Path) -> None:
    registry = Registry(str(root), "ana")
    registry.write([("chat", "/a.chat")])
    before = os.stat(registry.path)
    registry.write([("chat", "/a.chat"), ("chat", "/a.chat")])
    assert os.stat(registry.path) == before
    registry.write([])
    assert Path(registry.path).read_bytes() == b""


def test_a_registry_written_by_the_nbs_tools_is_read(root: Path) -> None:
    registry = Registry(str(root), "ana")
    Path(registry.path).write_text("chat:/a.chat\nchat:/a.chat\r\nnonsense\nwhat:/x\nbus:\nhub:/h\n")
    assert registry.entries() == (("chat", "/a.chat"), ("hub", "/h"))


def test_a_registry_is_seeded_with_one_s_own_and_what_is_there(root: Path) -> None:
    folder = root / ".nbs" / "chat"
    for name in ("a", "live", "private", "live-20260501-090000-archive"):
        (folder / f"{name}.chat").touch()
    (root / ".nbs" / "events").mkdir()
    own = (str(folder / "live.chat"),)
    assert seed(str(root), own, ("other/events",), foreign=(str(folder / "private.chat"),)) == (
        ("chat", str(folder / "live.chat")),
        ("chat", str(folder / "a.chat")),
        ("bus", str(root / "other/events")),
        ("bus", str(root / ".nbs/events")),
    )


def test_registrations_are_carried_out_inside_the_root_only(root: Path) -> None:
    registry = Registry(str(root), "ana")
    assert control.apply(str(root), registry, Command("register-chat", ".nbs/chat/x.chat"))
    assert not control.apply(str(root), registry, Command("register-chat", str(root / ".nbs/chat/x.chat")))
    with pytest.raises(OutsideError):
        control.apply(str(root), registry, Command("register-chat", "/etc/passwd"))
    assert registry.paths("chat") == (str(root / ".nbs/chat/x.chat"),)
    assert not control.apply(str(root), registry, Command("set-poll-interval", "5"))
    assert control.apply(str(root), registry, Command("unregister-chat", ".nbs/chat/x.chat"))
    assert not control.apply(str(root), registry, Command("unregister-chat", ".nbs/chat/x.chat"))
    registry.add("chat", ".nbs/chat/y.chat")
    assert control.apply(str(root), registry, Command("unregister-chat", str(root / ".nbs/chat/y.chat")))
    assert registry.entries() == ()
