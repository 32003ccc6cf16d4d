"""Mail: a file in the inbox wakes the client through its FileChanged hooks, as measured on the real one."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.sim.conftest import Begin

Json = dict[str, Any]
BYPASS = "--dangerously-skip-permissions"


def armed(inbox: Path) -> Json:
    """The settings of the file inbox: watch, and drain in the background."""
    script = inbox.parent / "drain.sh"
    script.write_text(
        "#!/bin/sh\ncat >/dev/null\nfound=0\n"
        f'for f in {inbox}/*.msg; do [ -e "$f" ] || continue; mv "$f" {inbox.parent}/claimed/ && '
        f'cat {inbox.parent}/claimed/$(basename "$f") >&2 && found=1; done\n[ $found = 1 ] && exit 2\nexit 0\n'
    )
    script.chmod(0o755)
    (inbox.parent / "claimed").mkdir()
    inbox.mkdir()
    drain = {"type": "command", "command": str(script), "asyncRewake": True, "timeout": 300}
    mail = {**drain, "rewakeMessage": "Message:", "rewakeSummary": "fleet mail"}
    watch = {"matcher": str(inbox), "hooks": [{"type": "command", "command": "true"}]}
    return {"hooks": {"FileChanged": [watch, {"hooks": [mail]}], "SessionStart": [{"hooks": [mail]}]}}


def drop(inbox: Path, name: str, text: str) -> None:
    (inbox / f"{name}.tmp").write_text(text)
    (inbox / f"{name}.tmp").rename(inbox / f"{name}.msg")


def test_mail_wakes_an_idle_client_and_leaves_a_draft_alone(begin: Begin, tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    client = begin(settings=armed(inbox))
    client.send("half typed")
    client.until_text("half typed")
    drop(inbox, "1", "[[say got it]] id-1")
    client.until(lambda: client.ended() == 1)
    client.until_text("● fleet mail")
    client.until_text("● got it")
    wanted = (
        "<task-notification>\\n<summary>fleet mail</summary>\\n</task-notification>\\n<system-reminder>\\n"
        "Message: [[say got it]] id-1\\n</system-reminder>"
    )
    assert wanted in client.heard()
    user = next(line for line in client.lines() if line["type"] == "user")
    assert (user["origin"], user["promptSource"]) == ({"kind": "task-notification"}, "system")
    client.send("\r")
    client.until(lambda: client.ended() == 2)
    client.until_text("● ok: half typed")


def test_mail_to_a_busy_client_joins_at_the_tool_boundary(begin: Begin, tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    client = begin(BYPASS, settings=armed(inbox))
    client.say("[[bash sleep 1.5]] [[say over]]")
    client.until_text("Running…")
    drop(inbox, "1", "id-1")
    client.until(lambda: client.ended() == 1)
    assert "[SYSTEM NOTIFICATION - NOT USER INPUT]" in client.heard()
    queued = next(line["attachment"] for line in client.lines() if line.get("attachment"))
    assert (queued["type"], queued["commandMode"]) == ("queued_command", "task-notification")
    assert "id-1" in queued["prompt"]


def test_mail_waits_behind_a_dialog_and_does_not_touch_it(begin: Begin, tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    client = begin(settings=armed(inbox))
    client.say("[[bash touch made]] [[say over]]")
    client.until_status("waiting")
    drop(inbox, "1", "id-1")
    client.until((tmp_path / "claimed/1.msg").exists)
    client.until(lambda: [line for line in client.lines() if line.get("operation") == "enqueue"])
    assert client.state()["status"] == "waiting"
    client.send("3")
    client.until(lambda: client.ended() == 1)
    assert "id-1" in client.heard()
    assert not (client.project / "made").exists()


def test_mail_that_waits_at_the_start_is_delivered_once(begin: Begin, tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    settings = armed(inbox)
    drop(inbox, "0", "id-0")
    client = begin(settings=settings, ready=False)
    client.until(lambda: client.ended() == 1)
    assert client.heard().count("id-0") == 1


def test_thirty_messages_arrive_once_each(begin: Begin, tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    client = begin(settings=armed(inbox))
    for i in range(30):
        drop(inbox, f"{i:02}", f"id-{i:02};")
        os.sched_yield()
    client.until(lambda: client.requests() and all(f"id-{i:02};" in client.heard() for i in range(30)), patience=60)
    users = [m for m in client.requests()[-1] if m["role"] in {"user", "system"}]
    told = json.dumps(users)
    assert all(told.count(f"id-{i:02};") == 1 for i in range(30))


def test_a_deleted_inbox_is_deaf_from_then_on(begin: Begin, tmp_path: Path) -> None:
    inbox = tmp_path / "inbox"
    settings = armed(inbox)
    del settings["hooks"]["SessionStart"]
    client = begin(settings=settings)
    # The watch is known to be there once it has brought something; what lay there before it began, it never brings.
    numbers = iter(range(10_000))

    def brought() -> bool:
        drop(inbox, f"try-{next(numbers):04}", "x")
        return client.ended() > 0

    client.until(brought)
    shutil.rmtree(inbox)
    inbox.mkdir()
    drop(inbox, "1", "id-1")
    client.turn("[[bash sleep 1]] [[say x]]")
    assert (inbox / "1.msg").exists()
