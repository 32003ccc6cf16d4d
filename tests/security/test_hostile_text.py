"""Text of agents, files and other programs does nothing where it arrives: terminals, prompts, file names, YAML."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from nbs_fleet.attention.keeper import Keeper
from nbs_fleet.attention.queue import Item, Need, Queue
from nbs_fleet.drivers.claude import Claude
from nbs_fleet.errors import FleetError, TeamFileError
from nbs_fleet.launch.messages import Mailbox
from nbs_fleet.model import AgentState, Evidence, Exit, ExitKind, Priority, Source
from nbs_fleet.nbs.bus import Bus
from nbs_fleet.nbs.chat import Chat
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.templates import Renderer, Template
from nbs_fleet.sidecar import sources
from nbs_fleet.spec.load import load_team
from nbs_fleet.supervisor import store
from tests.support.cli_world import agent, call, make_team, write_record
from tests.support.mailbox import message

EVIL = "\x1b[2J\x1b]0;owned\x07\x9b31m\x90q\x1b\\\u202eright\u2066\r<b>{{ 7*7 }}#(id)$(id)`id`%n\\nbs-register-bus /etc"
COMMANDS = (
    ("ps",),
    ("ps", "--json"),
    ("why", "ana"),
    ("why", "ana", "--json"),
    ("queue",),
    ("queue", "--json"),
    ("logs",),
    ("logs", "ana", "--json"),
    ("inbox", "list", "ana"),
    ("inbox", "show", "d-0-1"),
    ("inbox", "show", "d-0-1", "--json"),
    ("peek", "ana"),
    ("peek", "ana", "--json"),
    ("metrics",),
    ("ls",),
    ("chat", "read", "live"),
    ("chat", "read", "live", "--json"),
    ("chat", "list"),
    ("chat", "participants", "live"),
    ("chat", "search", "live", "owned"),
    ("bus", "check", ".nbs/events"),
    ("bus", "check", ".nbs/events", "--json"),
    ("bus", "status", ".nbs/events"),
    ("control", "--as", "ana"),
)
"""All that shows a person what agents, files and other programs said."""


@pytest.fixture
def evil(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RunPaths:
    """A team of which every text that is not ours is hostile."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    root = tmp_path / "root"
    paths = make_team(root, "crew", (agent("ana"), agent("bo")))
    monkeypatch.chdir(root)
    write_record(
        paths,
        "ana",
        state=AgentState.BLOCKED,
        blocked="permission",
        detail=EVIL,
        since=time.time(),
        evidence=(Evidence(Source.HOOK, EVIL, time.time(), EVIL),),
        pending=EVIL,
        last_exit=Exit(ExitKind.CRASH, time.time(), code=1, lines=(EVIL, EVIL)),
    )
    own = paths.agent("ana")
    Mailbox(own).accept(message(1, text=EVIL, sender=EVIL, type=EVIL))
    store.keep_capture(paths, "ana", time.time(), (EVIL, EVIL))
    store.story(paths, "ana").tell(time.time(), "died", text=EVIL, lines=[EVIL])
    need = Need("permission", time.time(), EVIL, EVIL, (("1", EVIL), ("2", EVIL)), EVIL, "m")
    Keeper(paths.attention).change(Queue((Item("a1", "ana", need, time.time(), 1.0),), 1))
    for folder in ("chat", "events"):
        (root / ".nbs" / folder).mkdir(parents=True, exist_ok=True)
    chat = Chat(str(root / ".nbs" / "chat" / "live.chat"))
    chat.create()
    chat.send("x\x9b31m\u202e", EVIL)
    Bus(str(root / ".nbs" / "events")).publish("ana", "done", Priority.HIGH, EVIL)
    (root / ".nbs" / "chat" / "odd\x1b[2J\udcff.chat").write_bytes(Path(chat.path).read_bytes())
    (root / ".nbs" / "events" / "1-odd\x1b[2J\udcff.event").write_bytes(b"no event")
    (root / ".nbs" / "control-registry-ana").write_bytes(f"chat:{EVIL}\n".encode())
    return paths


@pytest.mark.usefixtures("evil")
@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_nothing_that_a_terminal_obeys_is_printed(argv: tuple[str, ...]) -> None:
    said = call(*argv)
    assert "this is a bug" not in said.err, said.err
    assert said.code in (0, 1, 3, 5), said
    text = said.out + said.err
    assert text
    obeyed = {c for c in text if (ord(c) < 32 and c not in "\n\t") or 127 <= ord(c) < 160}
    assert obeyed == set()
    if "--json" not in argv:
        assert not {"\u202e", "\u2066"} & set(text)
    text.encode()


@pytest.mark.usefixtures("evil")
@pytest.mark.parametrize(
    "argv",
    [
        ("peek", "../ana"),
        ("why", "../../state"),
        ("logs", "ana/../../x"),
        ("inbox", "list", ".."),
        ("inbox", "show", "../../../plan"),
        ("inbox", "show", "d-0-1/../d-0-1"),
        ("restart", "../ana"),
        ("send", "..", "x"),
        ("ps", "--team", "../crew"),
        ("ps", "--team", "/"),
        ("bus", "ack", ".nbs/events", "../../secret.event"),
        ("bus", "read", ".nbs/events", "..%2f.event"),
        ("bus", "read", ".nbs/events", "../chat/live.chat"),
        ("answer", "../a1", "1"),
        ("chat", "read", "\udcff"),
        ("replay", "../ana"),
        ("send", "ana\x1b[2J", "x"),
    ],
    ids=repr,
)
def test_a_name_that_leads_elsewhere_leads_nowhere(argv: tuple[str, ...]) -> None:
    said = call(*argv)
    assert said.code in (1, 2, 3, 4), said
    assert "this is a bug" not in said.err, said.err
    assert "\x1b" not in said.out + said.err


@pytest.mark.parametrize(
    "value",
    [
        "!!python/object/apply:os.system [touch evil]",
        "!!python/name:os.system",
        "!<tag:yaml.org,2002:python/module:os>",
        "!!binary aGk=",
        "!include /etc/passwd",
    ],
)
def test_a_tag_in_a_team_file_makes_nothing(tmp_path: Path, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "team.yaml").write_text(f"version: 1\nteam: t\nvars:\n  x: {value}\nagents: [{{handle: ana}}]\n")
    with pytest.raises(TeamFileError, match="tags"):
        load_team("team.yaml", {})
    assert not (tmp_path / "evil").exists()


@pytest.mark.parametrize("name", ["../x", "a/b", "a b", "x\x1b", "-n", "#(id)", "$(id)", "é", "a" * 64, "team", "."])
def test_no_handle_is_a_path_a_format_or_a_flag(tmp_path: Path, name: str) -> None:
    (tmp_path / "team.yaml").write_text(
        f"version: 1\nteam: t\nagents: [{{handle: {name!r}}}]\n".replace("\\x1b", "\x1b")
    )
    with pytest.raises(FleetError):
        load_team(str(tmp_path / "team.yaml"), {})


def test_a_value_is_never_read_as_a_template() -> None:
    values = {"vars": {"x": "{{ 7*7 }}{% include '/etc/passwd' %}"}, "handle": "ana"}
    text = Renderer({}).render(Template("/r/p", "say {{ vars.x }} to {{ handle }}"), values)
    assert text == "say {{ 7*7 }}{% include '/etc/passwd' %} to ana"


def test_the_payload_of_a_hook_is_read_as_text_only(tmp_path: Path) -> None:
    payload = (
        '{"hook_event_name": "PermissionRequest", "session_id": "../../x", "transcript_path": "/dev/zero",'
        ' "tool_name": "Bash", "tool_input": {"command": "\\u001b[2J cut \\ud83d $(id)"}}'
    )
    (tmp_path / "1.json").write_text(payload)
    (seen,) = sources.read_spool(Claude(), str(tmp_path), lambda _name: None)
    assert seen.news.reading.detail == "Bash: \x1b[2J cut \ufffd $(id)"
    assert seen.news.request.encode()
