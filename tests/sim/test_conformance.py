"""The simulator and the real client, driven by the same keys: the same states, hooks, payloads and transcript."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.clients.install import CLAUDE
from tests.conformance.seen import after_parents
from tests.support import clients
from tests.support.sim_client import SimClient

pytestmark = pytest.mark.real
Json = dict[str, Any]
U = "11111111-2222-4333-8444-555555555501"
EVENTS = (
    "SessionStart",
    "UserPromptSubmit",
    "PreToolUse",
    "PostToolUse",
    "PostToolUseFailure",
    "PostToolBatch",
    "PermissionRequest",
    "Stop",
    "StopFailure",
    "SessionEnd",
)
# Lines that follow from what only the real client has: its tools' and skills' lists, file backups, titles.
NOISE = {"file-history-snapshot", "last-prompt", "ai-title", "summary"}
ATTACHED_NOISE = {
    "date_change",
    "agent_listing_delta",
    "skill_listing",
    "task_reminder",
    "plan_mode_exit",
    "plan_mode_reentry",
}


@pytest.fixture
def both(tmp_path: Path) -> Iterator[Callable[..., list[SimClient]]]:
    """Start the same command line with the simulator and with the real client."""
    clients.need("claude")
    begun: list[SimClient] = []
    with clients.running("claude", tmp_path / "claude/home", trusted=(str(tmp_path / "claude/project"),)) as real:

        def start(*args: str) -> list[SimClient]:
            for name in ("sim", "claude"):
                base = tmp_path / name
                program = {"program": (str(CLAUDE.executable),)} if name == "claude" else {}
                env = dict(real.environment) if name == "claude" else {}
                log = base / "hooks.log"
                base.mkdir(exist_ok=True)
                hook = {"type": "command", "command": f"cat >> {log}; echo >> {log}"}
                settings = {"hooks": {event: [{"hooks": [hook]}] for event in EVENTS}}
                env["CLAUDE_CODE_MAX_RETRIES"] = "0"
                if name == "claude":
                    (base / "home/.claude").mkdir(parents=True, exist_ok=True)
                    env["CLAUDE_CONFIG_DIR"] = str(base / "home/.claude")
                    trusted = clients.onboarded((str(base / "project"),))
                    (base / "home/.claude/.claude.json").write_text(json.dumps(trusted))
                client = SimClient(base / "home", base / "project", *args, settings=settings, env=env, **program)  # type: ignore[arg-type]
                begun.append(client)
                client.until_status("idle")
            return begun

        yield start
        for client in begun:
            client.close()


def payloads(client: SimClient) -> list[Json]:
    log = client.project.parent / "hooks.log"
    return [json.loads(line) for line in log.read_text().splitlines() if line] if log.exists() else []


def shapes(client: SimClient) -> list[tuple[str, tuple[str, ...]]]:
    """Event and keys of each payload, in order."""
    return [(p["hook_event_name"], tuple(p)) for p in payloads(client)]


def story(client: SimClient) -> list[str]:
    """The transcript in short: kind and content of each line, ids and times left out."""
    found = []
    for line in after_parents(client.lines()):
        attached = (line.get("attachment") or {}).get("type")
        if line["type"] in NOISE or attached in ATTACHED_NOISE:
            continue
        content = (line.get("message") or {}).get("content")
        blocks = content if isinstance(content, list) else [{"type": "text", "text": content}] if content else []
        words = [f"{b['type']}:{b.get('text') or b.get('name') or b.get('content')}" for b in blocks]
        tail = [line.get("subtype"), line.get("operation"), attached, (line.get("message") or {}).get("stop_reason")]
        found.append(" ".join([line["type"], *(str(t) for t in tail if t), *words]))
    return found


def same(found: list[SimClient], look: Callable[[SimClient], Any]) -> None:
    sim, real = found
    assert look(sim) == look(real)


def test_a_turn_with_tools(both: Callable[..., list[SimClient]]) -> None:
    found = both("--session-id", U, "--name", "ana", "--dangerously-skip-permissions")
    for client in found:
        client.turn('[[bash echo hi]] [[saytool now || Bash {"command": "exit 3"}]] [[say done]]')
        client.turn("[[say again]]")
    same(found, story)
    same(found, shapes)
    for client in found:
        client.send("\x04")
        client.until_text("Press Ctrl-D again to exit")
        client.send("\x04")
    same(found, lambda client: client.wait())
    same(found, lambda client: 'claude --resume "ana"' in client.text())
    same(found, lambda client: payloads(client)[-1]["reason"])


def test_a_prompt_in_mid_turn_and_one_behind_it(both: Callable[..., list[SimClient]]) -> None:
    found = both("--session-id", U, "--dangerously-skip-permissions")
    for client in found:
        client.say("[[bash sleep 2]] [[say over]]")
        client.until_text("Running…")
        client.say("by the way")
        client.until(lambda c=client: c.ended() == 1)  # type: ignore[misc]
        client.say("[[wait 2 slow]]")
        client.until_status("busy")
        client.say("one more")
        client.until(lambda c=client: c.ended() == 3)  # type: ignore[misc]
    same(found, lambda client: sorted(story(client)))
    same(found, shapes)


def test_a_permission_dialog_accepted_by_a_misplaced_enter_and_one_refused(
    both: Callable[..., list[SimClient]],
) -> None:
    found = both("--session-id", U)
    for client in found:
        client.say("[[bash touch made]] [[say did]]")
        assert client.until_status("waiting")["waitingFor"] == "permission prompt"
        client.until_text("Do you want to proceed?")
        client.paste("a message for nobody")
        client.send("\r")
        client.until(lambda c=client: c.ended() == 1)  # type: ignore[misc]
        client.say("[[bash touch other]] [[say did]]")
        client.until_status("waiting")
        client.send("3")
        client.until_status("idle")
        client.until(lambda c=client: "[Request interrupted" in story(c)[-1])  # type: ignore[misc]
    same(found, story)
    same(found, shapes)
    same(found, lambda client: sorted(path.name for path in client.project.iterdir()))


def test_an_api_error(both: Callable[..., list[SimClient]]) -> None:
    found = both("--session-id", U)
    for client in found:
        client.turn("[[err 401 9]]")
        client.turn("[[say well]]")
    same(found, story)
    same(found, shapes)


def test_a_killed_client_is_resumed(both: Callable[..., list[SimClient]]) -> None:
    found = both("--session-id", U, "--name", "ana")
    for client in found:
        client.turn("[[say remembered]]")
        client.signal(9)
        assert client.wait() == 137
    found.clear()
    again = both("--resume", U)
    for client in again:
        client.turn("[[say on]]")
    same(again, lambda client: [line for line in story(client) if line.startswith(("user", "assistant"))])
    same(again, lambda client: [p["source"] for p in payloads(client) if "source" in p])
    same(again, lambda client: client.state()["name"])
