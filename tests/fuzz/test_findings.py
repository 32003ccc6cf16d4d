"""What fuzzing found, each with the value that is right."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from nbs_fleet import jsontext
from nbs_fleet.drivers import claude_usage
from nbs_fleet.drivers.base import Driver, able, numbers
from nbs_fleet.drivers.claude import Claude
from nbs_fleet.drivers.codex import Codex
from nbs_fleet.drivers.copilot import Copilot
from nbs_fleet.drivers.deployment import EditError, SetKey
from nbs_fleet.drivers.qwen import Qwen
from nbs_fleet.drivers.usage import Tally
from nbs_fleet.errors import FleetError
from nbs_fleet.hooks import program
from nbs_fleet.launch import rundir
from nbs_fleet.model import AgentState, Message
from nbs_fleet.nbs import chat_format, cursors, presence
from nbs_fleet.plan import edits
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.sidecar import sources
from nbs_fleet.sim import scenario
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.client import Connection
from nbs_fleet.supervisor.protocol import Request
from nbs_fleet.supervisor.story import Story
from tests.support.cli_world import agent, call, make_team, write_record
from tests.support.hooked import Hooked

DEEP = "[" * 20_000
LONG = "9" * 5_000
CUT = "\\ud83d"


def test_a_number_of_more_digits_than_python_reads_is_none() -> None:
    assert cursors.parse(f"ana={LONG}\nbo=3\n".encode()) == {"ana": None, "bo": 3}
    # What Python counts as a blank, and neither its numbers nor the nbs tools do.
    assert cursors.parse("ana=\x1d3\nbo=\u20073\ncy= \t3\n".encode()) == {"ana": None, "bo": None, "cy": 3}
    assert chat_format.parse_participants(f"ana({LONG}), bo(2)") == (("ana", 0), ("bo", 2))
    file = Claude().read_state_file(f'{{"pid": 7, "status": "idle", "procStart": "{LONG}", "updatedAt": {"9" * 400}}}')
    assert file is not None
    assert (file.pid, file.start, file.at, file.reading.state) == (7, None, None, AgentState.IDLE)
    assert Claude().parse_version(f"{LONG}.1.1 (Claude Code)") is None
    assert numbers("2.1.²") == (2, 1)
    assert able(Codex(), "0.1.²") == able(Codex(), "0.1")


def test_a_time_that_no_clock_shows_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    paths = make_team(tmp_path / "r", "crew", (agent("ana"),))
    monkeypatch.chdir(tmp_path / "r")
    write_record(paths, "ana", state=AgentState.BLOCKED, blocked="no dialog", since=1e300, until=-1e300)
    Path(paths.agent("ana").story).write_text(
        '{"at": 1%s, "what": "died"}\n{"at": 1e300, "what": "died"}\n' % ("0" * 400)
    )
    line = chat_format.encode_line("ana", 9_999_999_999_999_999_999, "hi")
    chat = tmp_path / "live.chat"
    chat.write_bytes(chat_format.head(chat_format.Header("ana", ""), len(line) + 1) + line + b"\n")
    message = Message("d-0-1", "ana", "bo", "hi", 1e12)
    Path(paths.agent("ana").queue, "d-0-1.json").write_bytes(jsontext.encode(message))
    for argv in (
        ("inbox", "show", "d-0-1", "--json"),
        ("inbox", "list", "ana"),
        ("ps", "--json"),
        ("why", "ana"),
        ("why", "ana", "--json"),
        ("logs",),
        ("chat", "read", str(chat)),
    ):
        said = call(*argv)
        assert said.code == 0, said
    assert said.out == "[1970-01-01T00:00:00Z] ana: hi\n"
    assert [jsontext.seconds(value) for value in (1.5, 10**30, True, "1", float("nan"), -1)] == [1.5, 0, 0, 0, 0, 0]


def test_what_nests_too_deep_is_no_value(tmp_path: Path) -> None:
    for driver in (Claude(), Codex(), Qwen(), Copilot()):
        assert driver.read_transcript(DEEP, DEEP).prompts == 0
        assert driver.proofs(f"[nbs:d-1]{DEEP}") == ()
        assert driver.read_hook(DEEP) is None
    assert Claude().read_state_file(DEEP) is None
    assert claude_usage.count(Tally(), f'{{"usage": {DEEP}') == Tally()
    (tmp_path / "signal.json").write_text(DEEP)
    assert sources.read_signal(str(tmp_path / "signal.json")) == (None, "")
    (tmp_path / ".nbs" / "sessions").mkdir(parents=True)
    Path(presence.session_path(str(tmp_path), "ana")).write_text(DEEP)
    assert presence.read_session(str(tmp_path), "ana") is None
    (tmp_path / "s.json").write_text(DEEP)
    with pytest.raises(scenario.ScenarioError, match="recursion"):
        scenario.load(str(tmp_path / "s.json"))


@pytest.mark.parametrize("content", [b"\xff", b'{"handle": "\xff"}', DEEP.encode(), b'{"x": ' * 20_000], ids=range(4))
def test_a_damaged_record_is_as_none_and_a_damaged_plan_is_told(
    tmp_path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    paths = make_team(tmp_path / "r", "crew", (agent("ana"),))
    monkeypatch.chdir(tmp_path / "r")
    write_record(paths, "ana")
    Path(paths.agent("ana").state).write_bytes(content)
    Path(paths.attention).write_bytes(content)
    assert store.read_record(paths, "ana") is None
    assert call("queue").code == 0
    Path(paths.team).write_bytes(content)
    assert rundir.known_teams({"XDG_STATE_HOME": str(tmp_path / "state")}) == []
    Path(paths.plan).write_bytes(content)
    with pytest.raises(FleetError, match="can't be read"):
        store.read_plan(paths)


@pytest.mark.parametrize(
    "about",
    ['"team": "\\u0000", "root": "/r"', '"team": "crew", "root": "/r\\u0000"', '"team": "../crew", "root": "/r"'],
)
def test_an_index_that_names_no_team_and_no_folder_is_none(
    tmp_path: Path, about: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    paths = make_team(tmp_path / "r", "crew", (agent("ana"),))
    assert call("ls").out.count("crew") >= 1
    Path(paths.team).write_text(f"{{{about}}}")
    said = call("ls")
    assert (said.code, "crew" in said.out) == (0, False)


def test_half_of_a_surrogate_pair_ends_no_story(tmp_path: Path) -> None:
    """JavaScript writes it where a text is cut in the middle of an emoji; the sidecar died of each such payload."""
    news = Claude().read_hook(f'{{"hook_event_name": "UserPromptSubmit", "prompt": "cut {CUT}"}}')
    assert news is not None
    assert news.prompt == "cut \ufffd"
    story = Story(str(tmp_path / "story.jsonl"))
    story.tell(1.0, "seen", event=news, sender="of a chat \udcff")
    assert json.loads(Path(story.path).read_text())["sender"] == "of a chat \ufffd"
    assert story.dropped == 0


PROMPTS: tuple[tuple[Driver, dict[str, object]], ...] = (
    (Claude(), {"type": "user", "uuid": "1", "message": {"content": "[nbs:d-1] a TEXT b"}}),
    (Qwen(), {"type": "user", "uuid": "1", "message": {"parts": [{"text": "[nbs:d-1] a TEXT b"}]}}),
    (Copilot(), {"type": "user.message", "id": "1", "data": {"content": "[nbs:d-1] a TEXT b"}}),
)


@pytest.mark.parametrize(("driver", "entry"), PROMPTS, ids=lambda one: getattr(one, "name", ""))
@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\x0b"])
def test_a_line_of_a_transcript_ends_at_a_newline_only(driver: Driver, entry: dict[str, object], mark: str) -> None:
    """JSON may hold U+2028 as it is: a prompt with it was no prompt, and no proof that a message had arrived."""
    line = json.dumps(entry, ensure_ascii=False).replace("TEXT", mark if mark != "\x0b" else "\\u000b")
    assert driver.read_transcript(line + "\n", "").prompts == 1
    assert driver.proofs(line) == ("d-1",)


def test_a_transcript_of_many_short_lines_is_read_at_once() -> None:
    text = "\n".join(map(str, range(12_000)))
    begun = time.process_time()
    assert Codex().read_transcript(text, text + "\nx").prompts == 0
    assert time.process_time() - begun < 1.0


def test_settings_nested_without_end_are_refused_at_once() -> None:
    begun = time.process_time()
    with pytest.raises(EditError, match="too deep"):
        edits.put("a: " + DEEP, "yaml", SetKey(("b",), 1))
    assert time.process_time() - begun < 1.0


def test_a_version_is_found_or_not_in_any_output_at_once() -> None:
    begun = time.process_time()
    assert Claude().parse_version("2" + "\r\n" * 20_000) is None
    assert time.process_time() - begun < 1.0
    assert Claude().parse_version("warning\n  v2.1.197 (Claude Code)\n") == "2.1.197"


def test_an_answer_that_makes_no_sense_is_told_in_words(short_path: Path) -> None:
    import socket

    paths = RunPaths(str(short_path), str(short_path), str(short_path / "s"), str(short_path / "t"))
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(paths.socket)
        server.listen(1)
        link = Connection(paths)
        other, _ = server.accept()
        with other:
            other.sendall(b"nonsense\n")
            with pytest.raises(FleetError, match="can't be read"):
                link.ask(Request("ping"))
        link.close()


def test_a_hook_whose_payload_nests_deep_is_still_answered(tmp_path: Path) -> None:
    """What Python's reader takes, its writer may not: the message that the hook had claimed was lost with it."""
    ana = Hooked(tmp_path / "run", policy={"stop": "free"})
    ana.put("inbox", "hello")
    deep = '{"x": ' * 600 + "1" + "}" * 600
    done = ana.call("Stop", payload=f'{{"hook_event_name": "Stop", "tool_input": {deep}}}'.encode())
    assert json.loads(done.stdout)["decision"] == "block"
    assert "hello" in json.loads(done.stdout)["reason"]
    assert program.write(str(tmp_path / "new.json"), {"a": 1})
