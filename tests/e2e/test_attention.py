"""What waits for a person is one queue: right items with right context, answers that hit what was meant, no ghosts."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.support.fleet import Fleet, Result

Item = dict[str, Any]
QUESTION = {
    "questions": [
        {
            "question": "Which library should we use?",
            "header": "Library",
            "multiSelect": False,
            "options": [{"label": "aiohttp", "description": "async"}, {"label": "requests", "description": "sync"}],
        }
    ]
}


def write(name: str) -> str:
    """A prompt after which the model writes a file, which needs a permission."""
    return f"[[tool Write {json.dumps({'file_path': name, 'content': 'x'})}]]"


def queue(fleet: Fleet) -> list[Item]:
    result = fleet.run("queue", "--team", fleet.team, "--json")
    assert result.code == 0, str(result)
    items = result.json()["items"]
    assert isinstance(items, list)
    return items


def waits(fleet: Fleet, *expected: tuple[str, str], within: float = 20) -> dict[str, Item]:
    """Wait until the queue holds exactly these (handle, kind), in this order; returns them by handle."""
    seen: list[Item] = []

    def right() -> bool:
        seen[:] = queue(fleet)
        return [(item["handle"], item["kind"]) for item in seen] == list(expected)

    try:
        fleet.until(right, within=within)
    except AssertionError:
        raise AssertionError(f"the queue is not {expected}: {json.dumps(seen, indent=1)}") from None
    return {item["handle"]: item for item in seen}


def do(fleet: Fleet, *args: str) -> Result:
    return fleet.run(*args, "--team", fleet.team)


def say(fleet: Fleet, handle: str, text: str, *expected: tuple[str, str]) -> dict[str, Item]:
    """Type a prompt into an idle agent's pane, and wait for what then waits."""
    pane = str(fleet.agent(handle)["pane"])
    fleet.tmux("send-keys", "-l", "-t", pane, text)
    fleet.until(lambda: text[:20] in fleet.tmux("capture-pane", "-p", "-t", pane), what="the prompt is in the box")
    fleet.tmux("send-keys", "-t", pane, "Enter")
    return waits(fleet, *expected)


@pytest.mark.clients("sim", "claude")
def test_dialogs_wait_in_order_and_are_answered_by_the_queue(fleet: Fleet) -> None:
    path = fleet.root / "written"
    ask, plan = f"[[tool AskUserQuestion {json.dumps(QUESTION)}]]", "[[plan # The plan]] [[tool ExitPlanMode {}]]"
    make = fleet.client.agent
    fleet.write_team([make("cy", permission_mode="plan"), make("bo"), make("ana")])
    fleet.up()
    fleet.all_idle()
    say(fleet, "ana", write(str(path)), ("ana", "permission"))
    say(fleet, "bo", ask, ("ana", "permission"), ("bo", "question"))
    items = say(fleet, "cy", plan, ("ana", "permission"), ("bo", "question"), ("cy", "plan"))
    assert "file_path: " in items["ana"]["text"]
    assert [o["label"] for o in items["bo"]["options"]][:2] == ["aiohttp", "requests"]
    assert "aiohttp: async" in items["bo"]["text"]
    assert "The plan" in items["cy"]["text"]
    refused = do(fleet, "answer", items["bo"]["id"], "sanic")
    assert refused.code == 1, str(refused)
    assert "none of its options" in refused.err

    assert do(fleet, "approve", items["ana"]["id"]).code == 0
    fleet.until(path.exists, what="the file is written after the approval")
    assert do(fleet, "answer", items["bo"]["id"], "req").code == 0
    assert do(fleet, "deny", items["cy"]["id"]).code == 0
    waits(fleet)
    again = do(fleet, "approve", items["ana"]["id"])
    assert again.code == 1, str(again)
    assert "is closed" in again.err


@pytest.mark.clients("sim", "claude")
def test_an_item_closes_when_its_dialog_is_answered_in_the_pane_and_a_replaced_one_is_refused(fleet: Fleet) -> None:
    one, two = fleet.root / "one", fleet.root / "two"
    fleet.write_team([fleet.client.agent("ana", prompt_text=f"{write(str(one))} {write(str(two))}")])
    fleet.up()
    first = waits(fleet, ("ana", "permission"))["ana"]
    fleet.tmux("send-keys", "-t", fleet.agent("ana")["pane"], "1")
    fleet.until(one.exists, what="the first file is written")
    fleet.until(
        lambda: [i["id"] for i in queue(fleet)] not in ([], [first["id"]]), what="the second dialog has its own id"
    )
    late = do(fleet, "approve", first["id"])
    assert late.code == 1, str(late)
    assert "nothing was pressed" in late.err
    assert not two.exists()
    second = waits(fleet, ("ana", "permission"))["ana"]
    assert "two" in second["text"]
    fleet.tmux("send-keys", "-t", fleet.agent("ana")["pane"], "1")
    fleet.until(two.exists, what="the second file is written")
    waits(fleet)


@pytest.mark.clients("sim")
def test_a_crash_and_a_limit_are_one_item_each(fleet: Fleet) -> None:
    limit = {"responses": [{"pattern": {"type": "any"}, "failure": {"type": "rate_limit", "retry_after": 600}}]}
    fleet.write_team(
        [
            fleet.client.agent("ana", restart={"max": 1, "within": "10m"}),
            fleet.client.agent("bo", scenario=limit, prompt_text="hello"),
        ]
    )
    fleet.up()
    waits(fleet, ("bo", "limit"))
    fleet.kill("ana")
    items = waits(fleet, ("bo", "limit"), ("ana", "failed"))
    assert "signal 9" in items["ana"]["title"]
    assert do(fleet, "skip", items["bo"]["id"]).code == 0
    assert "1 skipped or snoozed" in do(fleet, "queue").out
    waits(fleet, ("ana", "failed"), ("bo", "limit"))
    assert do(fleet, "restart", "ana").code == 0
    waits(fleet, ("bo", "limit"))


@pytest.mark.clients("sim")
def test_the_queue_survives_the_supervisor_and_has_no_ghosts_afterwards(fleet: Fleet) -> None:
    path = fleet.root / "written"
    make = fleet.client.agent
    fleet.write_team([make("ana"), make("bo")])
    fleet.up()
    fleet.all_idle()
    say(fleet, "bo", write(str(fleet.root / "other")), ("bo", "permission"))
    say(fleet, "ana", write(str(path)), ("bo", "permission"), ("ana", "permission"))
    before = queue(fleet)
    fleet.kill_supervisor()
    fleet.wait(lambda ps: ps["supervisor"]["state"] == "running")
    assert queue(fleet) == before
    with fleet.without_supervisor():
        refused = do(fleet, "approve", before[1]["id"])
        assert refused.code == 1, str(refused)
        assert "supervisor is not running" in refused.err
        pane = fleet.tmux("list-panes", "-a", "-F", "#{@nbs_handle} #{pane_id}").split("ana ")[1].split()[0]
        fleet.tmux("send-keys", "-t", pane, "1")
        fleet.until(path.exists, what="ana goes on without a supervisor")
    left = waits(fleet, ("bo", "permission"))
    assert left["bo"] == before[0]


@contextmanager
def at_the_screen(fleet: Fleet) -> Iterator[Callable[..., str]]:
    """A person in front of the team's tmux, in a terminal that is a pane of another server."""
    outer = str(fleet.base / "outer.sock")
    env = {
        "PATH": fleet.env["PATH"],
        "HOME": str(fleet.base / "elsewhere"),
        "TERM": "xterm-256color",
        "SHELL": "/bin/sh",
    }

    def tmux(*args: str) -> str:
        argv = ["tmux", "-u", "-S", outer, "-f", "/dev/null", *args]
        return subprocess.run(argv, env=env, capture_output=True, text=True, timeout=10, check=True).stdout

    inner = ["env", "-u", "TMUX", "tmux", "-u", "-S", str(fleet.tmux_socket), "attach-session", "-t", fleet.team]
    tmux("new-session", "-d", "-x", "150", "-y", "40", "--", *inner)
    try:
        yield tmux
    finally:
        tmux("kill-server")
        Path(outer).unlink(missing_ok=True)


@pytest.mark.long
@pytest.mark.clients("sim")
def test_in_tmux_a_key_goes_to_the_right_pane_among_twelve_and_the_status_line_tells_what_waits(fleet: Fleet) -> None:
    handles = [f"a{number}" for number in range(12)]
    fleet.write_team([fleet.client.agent(handle) for handle in handles], layout={"panes_per_window": 4})
    fleet.up("--timeout", "90s")
    fleet.all_idle(within=90)
    panes = {agent["handle"]: agent["pane"] for agent in fleet.ps()["agents"]}
    say(fleet, "a9", write("nine"), ("a9", "permission"))
    say(fleet, "a2", write("two"), ("a9", "permission"), ("a2", "permission"))

    def shown() -> str:
        return fleet.tmux("display-message", "-p", "-t", f"={fleet.team}:", "#{pane_id}").strip()

    with at_the_screen(fleet) as outer:
        fleet.until(lambda: "2 waiting" in outer("capture-pane", "-p"), what="the status line counts")
        start = shown()
        assert start not in (panes["a9"], panes["a2"])
        outer("send-keys", "C-b", "Tab")
        fleet.until(lambda: shown() == panes["a9"], what="the first one's pane is shown")
        outer("send-keys", "C-b", "B")
        fleet.until(lambda: shown() == start, what="back where it was")
        outer("send-keys", "C-b", "S")
        fleet.until(lambda: shown() == panes["a2"], what="the first one is skipped")
        outer("send-keys", "C-b", "g")
        fleet.until(lambda: "REASON" in outer("capture-pane", "-p"), what="the list is shown")
        outer("send-keys", "Enter")
        with fleet.without_supervisor():
            fleet.until(
                lambda: "down" in outer("capture-pane", "-p").splitlines()[-1], what="the status line says down"
            )
        printed = do(fleet, "next")
        assert panes["a2"] in printed.out, str(printed)


@pytest.mark.clients("sim", "claude", long=("claude",))
def test_a_text_is_typed_where_an_option_takes_one(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent("ana")])
    fleet.up()
    fleet.all_idle()
    item = say(fleet, "ana", f"[[tool AskUserQuestion {json.dumps(QUESTION)}]]", ("ana", "question"))["ana"]
    assert "takes a text" in do(fleet, "answer", item["id"], "3").err
    answered = do(fleet, "answer", item["id"], "type", "-m", "trio if it is there")
    assert answered.code == 0, str(answered)
    assert "queued" not in answered.out
    session = fleet.agent("ana", fleet.all_idle())["session_id"]
    fleet.until(
        lambda: "trio if it is there" in json.dumps(fleet.client.transcript(session)), what="the agent got the text"
    )


@pytest.mark.clients("sim")
def test_an_agent_may_neither_answer_nor_move_the_queue(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent("ana")])
    fleet.up()
    fleet.env["NBS_FLEET_RUN"] = str(fleet.run_dir)
    for args in (
        ("approve", "a1"),
        ("deny", "a1"),
        ("answer", "a1", "1"),
        ("skip", "a1"),
        ("snooze", "a1"),
        ("next",),
        ("back",),
    ):
        result = fleet.run(*args)
        assert result.code == 1, str(result)
        assert "for a person to do" in result.err
    assert fleet.run("queue").code == 0
    del fleet.env["NBS_FLEET_RUN"]


def fails_once(fleet: Fleet, handle: str, kind: str, status: int, *expected: tuple[str, str]) -> dict[str, Item]:
    """The next turn of this agent fails with that error, and only that one."""
    if fleet.client.api is not None:
        # The one try that CLAUDE_CODE_MAX_RETRIES leaves, and for 401 one more.
        fleet.client.api.force(f"[[err {status} 99]]", 2)
    return say(fleet, handle, f"fail with {kind}", *expected)


@pytest.mark.long
@pytest.mark.clients("sim", "claude")
def test_a_login_a_limit_and_a_crash_are_answered_by_the_queue_and_the_agents_go_on(fleet: Fleet) -> None:
    failing = {
        "responses": [
            {"pattern": {"type": "contains", "text": f"fail with {kind}"}, "max_matches": 1, "failure": {"type": kind}}
            for kind in ("auth_error", "rate_limit")
        ]
    }
    few = {"CLAUDE_CODE_MAX_RETRIES": "1"}
    scripted = {"scenario": failing} if fleet.client.name == "sim" else {}
    make = fleet.client.agent
    fleet.write_team(
        [
            make("ana", env=few, **scripted),
            make("bo", env=few, **scripted),
            make("cy", restart={"max": 1, "within": "10m"}),
        ],
        on_error={"do": "ignore"},
    )
    fleet.up()
    fleet.all_idle()
    fails_once(fleet, "ana", "auth_error", 401, ("ana", "login"))
    fails_once(fleet, "bo", "rate_limit", 429, ("ana", "login"), ("bo", "limit"))
    fleet.kill("cy")
    items = waits(fleet, ("ana", "login"), ("bo", "limit"), ("cy", "failed"))
    refused = do(fleet, "answer", items["bo"]["id"], "7")
    assert "go-on" in refused.err, str(refused)

    assert do(fleet, "answer", items["ana"]["id"], "go-on").code == 0
    waits(fleet, ("bo", "limit"), ("cy", "failed"))
    assert do(fleet, "answer", items["cy"]["id"], "restart").code == 0
    assert do(fleet, "answer", items["bo"]["id"], "try again").code == 0
    waits(fleet)
    rows = fleet.all_idle()
    for handle in ("ana", "bo"):
        told(fleet, handle, fleet.agent(handle, rows)["session_id"])


def told(fleet: Fleet, handle: str, session: str) -> None:
    """Wait until this agent was told to go on, and has taken it."""

    def heard() -> bool:
        return "go on where you were" in json.dumps(fleet.client.transcript(session))

    fleet.until(heard, what=f"{handle} was told to go on")
    fleet.until(lambda: fleet.agent(handle)["queued"] == 0, what=f"{handle} took it")
