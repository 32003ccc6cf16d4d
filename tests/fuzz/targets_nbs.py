"""The nbs tools' files, which any program may write: chats, cursors, events, registries, inboxes, standups, pid files."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from hypothesis import strategies as st

from nbs_fleet.model import Priority
from nbs_fleet.nbs import bus_format, chat_format, control, cursors, presence, pythia_files, standup_file
from nbs_fleet.nbs.bus import Bus
from nbs_fleet.nbs.chat import Chat
from nbs_fleet.nbs.chat_log import Log
from nbs_fleet.nbs.commands_in_text import find_commands
from nbs_fleet.nbs.control_commands import VERBS, Command
from nbs_fleet.nbs.mentions import mentions
from nbs_fleet.supervisor.calls import caller, shown
from tests.fuzz.inputs import of_bytes, of_json
from tests.fuzz.target import Target, told
from tests.support.cli_world import call

NAME = "1777627800000000-ana-chat-mention-41.event"
EVENT = bus_format.render("ana", "chat-mention", Priority.HIGH, "2026-05-01T09:30:00Z", "@bo from ana: look\nhere")
CONFIG = b"# c\nretention-max-bytes: 4096\ndedup-window: 30\nack-timeout: 60\n"


def chat_seed() -> bytes:
    """A chat with some messages."""
    lines = [
        chat_format.encode_line(h, 1_777_000_000 + n, t)
        for n, (h, t) in enumerate([("ana", "hi @bo"), ("bo", "é\n|x: y"), ("ana", "")])
    ]
    header = chat_format.Header("ana", "2026-05-01T09:30:00+0000", (("ana", 2), ("bo", 1)))
    body = b"".join(line + b"\n" for line in lines)
    return chat_format.head(header, len(body)) + body


def _in_root(read: Callable[[Path, bytes], None]) -> Callable[[bytes], None]:
    def tried(data: bytes) -> None:
        with tempfile.TemporaryDirectory(prefix="nbs-fleet-fuzz-") as folder:
            root = Path(folder)
            for name in ("chat", "events", "pids", "sessions", "scribe"):
                (root / ".nbs" / name).mkdir(parents=True)
            read(root, data)

    return tried


def _chat(root: Path, data: bytes) -> None:
    path = root / ".nbs" / "chat" / "live.chat"
    path.write_bytes(data)
    chat = Chat(str(path))
    before = chat.messages()
    told([(m.handle.encode("utf-8", "replace"), m.at) for m in before])
    chat.participants()
    chat.unread("ana")
    chat.read(unread="bo")
    list(chat.search("a", archives=True))
    for message in before:
        mentions(message.text)
    if len(before) < 400:
        sent = chat.send("ana", "one more")
        again = Chat(str(path)).messages()
        # What was there stays as it was.
        assert again[:-1] == before
        assert again[sent.index].text == "one more"


def _shown(root: Path, data: bytes) -> None:
    """What the commands print of a chat and its cursors, and of an event."""
    chat, events = root / ".nbs" / "chat" / "live.chat", root / ".nbs" / "events"
    chat.write_bytes(data)
    (events / NAME).write_bytes(data)
    for argv in (
        ("chat", "read", str(chat)),
        ("chat", "read", str(chat), "--json"),
        ("chat", "participants", str(chat)),
        ("bus", "check", str(events)),
        ("bus", "check", str(events), "--json"),
    ):
        said = call(*argv)
        assert "this is a bug" not in said.err, f"{argv}: {said.err}"
        assert not {c for c in said.out + said.err if c < " " and c not in "\n\t"}, argv


def _follow(data: bytes) -> None:
    """A log that grows by pieces ends as one that was read at once."""
    grown = Log()
    cut = len(data) // 2
    head = data[: data.rfind(b"\n", 0, cut) + 1]
    grown.follow(head, 0)
    grown.follow(data, 0)
    once = Log()
    once.follow(data, 0)
    assert grown.messages == once.messages
    assert grown.skipped == once.skipped


def _cursors(data: bytes) -> None:
    found = cursors.parse(data)
    again = cursors.parse(cursors.render(found))
    assert again == {handle: index or 0 for handle, index in found.items()}
    cursors.shifted(found, 900)


def _cursors_of_a_chat(root: Path, data: bytes) -> None:
    path = root / ".nbs" / "chat" / "live.chat"
    path.write_bytes(chat_seed())
    Path(f"{path}.cursors").write_bytes(data)
    chat = Chat(str(path))
    for handle in ("ana", "bo", "é"):
        waits = chat.unread(handle)
        assert 0 <= waits.count <= 3
        chat.mark_read(handle, chat.read(unread=handle))
        assert chat.unread(handle).count == 0


def _event(root: Path, data: bytes) -> None:
    (root / ".nbs" / "events" / NAME).write_bytes(data)
    bus = Bus(str(root / ".nbs" / "events"))
    pending = bus.pending()
    for event in pending.events:
        assert event.concerns("ana", ("ana",)) in (True, False)
        caller(event).encode("utf-8", "surrogateescape")
        assert event.order
        bus.ack(event.name)
    assert bus.status().events == ()


def _bus_config(root: Path, data: bytes) -> None:
    (root / ".nbs" / "events" / "config.yaml").write_bytes(data)
    bus = Bus(str(root / ".nbs" / "events"))
    name = bus.publish("ana", "done", Priority.LOW, "x")
    assert name is not None
    bus.publish("ana", "done", Priority.LOW, "x")
    bus.ack(name)
    bus.prune()
    bus.status()


def _event_name(root: Path, data: bytes) -> None:
    name = data.replace(b"/", b"").replace(b"\0", b"")[:240]
    if name in (b"", b".", b".."):
        return
    folder = os.fsencode(root / ".nbs" / "events")
    Path(os.fsdecode(os.path.join(folder, name + b".event"))).write_bytes(EVENT)
    bus = Bus(os.fsdecode(folder))
    for event in bus.pending().events:
        bus.ack(event.name)


def _inbox(root: Path, data: bytes) -> None:
    path = control.inbox_path(str(root), "ana")
    Path(path).write_bytes(data)
    registry = control.Registry(str(root), "ana")
    news = control.read_inbox(path, control.Position())
    told(news)
    for one in news.found:
        if isinstance(one, Command):
            with suppress(control.OutsideError):
                control.apply(str(root), registry, one)
    inside = os.path.realpath(root) + "/"
    assert all(path.startswith(inside) for _, path in registry.entries())


def _registry(root: Path, data: bytes) -> None:
    registry = control.Registry(str(root), "ana")
    Path(registry.path).write_bytes(data)
    before = registry.entries()
    registry.add("chat", str(root / "x.chat"))
    assert set(before) <= set(registry.entries())
    for kind, path in before:
        registry.remove(kind, path)


def _text(data: bytes) -> None:
    text = data.decode("utf-8", "surrogateescape")
    for one in find_commands(text):
        assert "\n" not in (one.argument if isinstance(one, Command) else one.line)
    mentions(text)
    shown("ana", tuple(text.split("\n")))


def _standup(root: Path, data: bytes) -> None:
    path = root / ".nbs" / "chat" / "live.chat"
    path.write_bytes(chat_seed())
    first, _, second = data.partition(b"\n\n")
    Path(standup_file.standup_path(str(path))).write_bytes(first)
    Path(standup_file.turn_path(str(path))).write_bytes(second)
    chat = Chat(str(path))
    standup_file.last_standup(chat, "sidecar", "standup")
    standup_file.hold(chat, "sidecar", "standup", 1_777_000_100.0, 900.0)
    assert not standup_file.hold(chat, "sidecar", "standup", 1_777_000_101.0, 900.0)


def _pythia(root: Path, data: bytes) -> None:
    Path(pythia_files.bucket_path(str(root))).write_bytes(data)
    Path(pythia_files.scribe_log(str(root), "live")).write_bytes(data)
    bus = Bus(str(root / ".nbs" / "events"))
    found = pythia_files.count_decisions(str(root), "live", bus.folder)
    pythia_files.advance(str(root), bus, lambda last: (found.count if last is None else last, "x"))


def _presence(root: Path, data: bytes) -> None:
    Path(presence.pid_path(str(root), "ana")).write_bytes(data)
    Path(presence.session_path(str(root), "ana")).write_bytes(data)
    presence.read_pid(presence.pid_path(str(root), "ana"))
    presence.read_session(str(root), "ana")
    presence.find_foreign(str(root), "ana")
    presence.release(str(root), "ana", sidecar=1, client=2)


SESSION = (
    b'{"session_id": "u", "handle": "ana", "model": "m", "started": "2026-01-01T00:00:00Z", "project_root": "/r", '
    b'"pid": 4, "initial_prompt_set": false, "tmux_session": "", "transport": "tmux"}'
)
LINES = b"register-chat .nbs/chat/a.chat\n\\nbs-register-bus events\n# c\nset-poll-interval 5\nunregister-hub x\n"
TEXT = (
    b'Done.\n\n\\nbs-register-chat a.chat\n\n```\n\\nbs-register-bus x\n```\n> q\n<pre>\nx</pre>\n- a `b` "c"\n@ana?\n'
)
VERB_WORDS = tuple(f"\n\\nbs-{verb} ".encode() for verb in VERBS)


def targets() -> tuple[Target, ...]:
    """The targets of this module."""
    chat = (chat_seed(), b"", chat_format.head(chat_format.Header("system", ""), 0))
    count = (b"# Read cursors\nana=3\nbo=-1\n\xc3\xa9=2\nx=y\n",)
    return (
        Target("chat", "a chat file, read and written to", lambda: of_bytes(chat), _in_root(_chat)),
        Target(
            "chat-shown", "a chat or an event that commands print", lambda: of_bytes((*chat, EVENT)), _in_root(_shown)
        ),
        Target("chat-growing", "a chat that grows while it is followed", lambda: of_bytes(chat), _follow),
        Target("cursors", "the bytes of a cursor file", lambda: of_bytes(count), _cursors),
        Target("cursors-of-chat", "the cursors beside a chat", lambda: of_bytes(count), _in_root(_cursors_of_a_chat)),
        Target("event", "the content of an event", lambda: of_bytes((EVENT,)), _in_root(_event)),
        Target("event-name", "the name of an event's file", lambda: of_bytes((NAME.encode(),)), _in_root(_event_name)),
        Target("bus-config", "a bus's configuration", lambda: of_bytes((CONFIG,)), _in_root(_bus_config)),
        Target("control-inbox", "lines of a control inbox", lambda: of_bytes((LINES,), VERB_WORDS), _in_root(_inbox)),
        Target(
            "control-registry",
            "a control registry",
            lambda: of_bytes((b"chat:/r/a.chat\nbus:/r/e\nhub:h\nx\n",)),
            _in_root(_registry),
        ),
        Target(
            "agent-text",
            "what an agent says: commands and mentions in it",
            lambda: of_bytes((TEXT,), VERB_WORDS),
            _text,
        ),
        Target(
            "standup",
            "the times of standups",
            lambda: of_bytes((b"1777000000\n\n1777000000 1776990000\n",)),
            _in_root(_standup),
        ),
        Target(
            "pythia",
            "Pythia's bucket and a scribe's log",
            lambda: of_bytes((b"20\n### D-1\n### D-2\n",)),
            _in_root(_pythia),
        ),
        Target(
            "presence",
            "pid files and session metadata",
            lambda: st.one_of(of_bytes((b"123\n", SESSION)), of_json((SESSION,))),
            _in_root(_presence),
        ),
    )
