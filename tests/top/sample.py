"""A team as the dashboard might see it, made by hand: for its tests and its pictures. No clock, no files."""

from __future__ import annotations

from typing import Any

from nbs_fleet.attention.queue import Item, Need, Queue
from nbs_fleet.model import AgentState, Exit, ExitKind
from nbs_fleet.nbs.chat_format import ChatMessage
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import AgentPlan, AgentRecord, Plan
from nbs_fleet.spec.team import Agent, ContextRules, Layout
from nbs_fleet.supervisor.status import AgentStatus, FleetStatus, SupervisorStatus
from nbs_fleet.top.look import Look, Mirror, Told

NOW = 1_767_258_000.0
"""2026-01-01 09:00:00 UTC."""
HOME = "/home/ana"

SCREEN = """\
╭─── Claude Code v2.1.197 ───────────────────────────────────────────────────────────────────────────────╮
│ Welcome back!                          │ Tips for getting started                                       │
╰─────────────────────────────────────────────────────────────────────────────────────────────────────────╯

> Run the tests, report failures. The flaky one in tests/net/test_retry.py first: it fails one time in twenty, and nobody knows why.

● I'll look at how the test waits before I run it.

● Read(tests/net/test_retry.py)
  └  Read 84 lines

● It sleeps for a fixed 50 ms and then expects the second attempt to have happened. On a loaded machine it has not.
  I'll wait for the attempt itself.

● Bash(rm -rf build && python -m build)

 Bash command

   rm -rf build && python -m build
   Build the package anew

 Do you want to proceed?
 ❯ 1. Yes
   2. Yes, and don't ask again for python -m build commands in /home/ana/widget
   3. No, and tell Claude what to do differently (esc)
"""


def agent(handle: str, state: AgentState, ago: float, *, role: str | None = None, **record: Any) -> AgentStatus:
    """One agent that has been in this state for `ago` seconds."""
    base = handle.rpartition("-")[0] or handle
    rules = ContextRules(warn=70, handover=85)
    plan = AgentPlan(Agent(handle, base, role, "claude", "/home/ana/widget", context=rules), {}, None, 0, handle, 0)
    kept = AgentRecord(handle, state=state, since=NOW - ago, ready=True, **record)
    return AgentStatus(handle, plan, kept, state, kept.detail, 0.0, alive=True, sidecar="running")


AGENTS = (
    agent(
        *("ana", AgentState.BUSY, 42),
        role="reviewer",
        detail="Bash",
        tokens={"": 1_184_000},
        context=96_000,
        model="claude-opus-4-5",
    ),
    agent(
        *("bo-1", AgentState.BLOCKED, 192),
        role="tester",
        blocked="permission",
        detail="Bash: rm -rf build",
        tokens={"": 412_000},
        context=148_000,
        model="claude-sonnet-4-5",
        unread={"live": 2},
    ),
    agent(
        *("bo-2", AgentState.IDLE, 725), role="tester", tokens={"": 88_200}, context=31_000, model="claude-sonnet-4-5"
    ),
    agent(
        *("cy", AgentState.BUSY, 7),
        role="scribe",
        tokens={"": 640},
        context=176_000,
        model="claude-haiku-4-5",
        queued=1,
        restarts=1,
    ),
    agent(
        *("dora", AgentState.FAILED, 5_400),
        role="scribe",
        restarts=5,
        last_exit=Exit(ExitKind.CRASH, NOW - 5_400, code=7, lines=("Error: ENOSPC: no space left on device",)),
    ),
    agent(*("oracle", AgentState.LIMITED, 2_100), role="pythia", tokens={"": 230_500}, model="claude-opus-4-5"),
)

QUEUE = Queue(
    (
        Item(
            "a7",
            "bo-1",
            Need(
                "permission",
                NOW - 192,
                "Bash: rm -rf build && python -m build",
                "rm -rf build && python -m build\nBuild the package anew",
                (
                    ("1", "Yes"),
                    ("2", "Yes, and don't ask again for python -m build commands in /home/ana/widget"),
                    ("3", "No, and tell Claude what to do differently (esc)"),
                ),
                "It sleeps for a fixed 50 ms and then expects the second attempt to have happened.",
                "m1",
            ),
            NOW - 192,
            NOW - 192,
        ),
        Item(
            "a4",
            "oracle",
            Need("limit", NOW - 2_100, "You've hit your limit · resets 11am", options=(("go-on", "try again"),)),
            NOW - 2_100,
            NOW - 150,
        ),
        Item(
            "a2",
            "dora",
            Need(
                "failed",
                NOW - 5_400,
                "5 starts within 10m: crash (exit 7): Error: ENOSPC: no space left on device",
                options=(("restart", "start it again"), ("stop", "leave it stopped")),
            ),
            NOW - 5_400,
            NOW - 100,
        ),
        Item("a8", "cy", Need("idle-done", NOW - 30, "the changelog is written"), NOW - 30, NOW - 20, hidden=NOW + 600),
    ),
    8,
)

MESSAGES = (
    ChatMessage(
        "ana", int(NOW - 3_600), "Good morning. I take the parser, @bo-1 the flaky network tests, @cy the changelog."
    ),
    ChatMessage("bo-1", int(NOW - 3_480), "On it."),
    ChatMessage(
        "cy",
        int(NOW - 1_900),
        "The changelog names every change since 1.4 now. Two entries have no author: the retry limit and the new "
        "default of `--jobs`. Who made these?",
    ),
    ChatMessage("bo-2", int(NOW - 1_860), "The retry limit was me. `--jobs` came with ana's scheduler."),
    ChatMessage("ana", int(NOW - 420), "Parser is through review: 3 findings, 2 fixed."),
    ChatMessage("bo-1", int(NOW - 200), "test_retry sleeps instead of waiting. I mend it, then build once."),
)

STORY = (
    Told(NOW - 3_700, "started", ("pid 41212", "session 0b9f1c52")),
    Told(NOW - 3_690, "state", ("ready",)),
    Told(NOW - 3_598, "notified", ("live: 1 message, 1 for you",)),
    Told(NOW - 3_597, "delivered", ("n-1a2b", "rung mail")),
    Told(NOW - 3_500, "state", ("busy",)),
    Told(NOW - 900, "directive", ("from ana", "please look at test_retry first", "d-77")),
    Told(NOW - 899, "delivered", ("d-77", "rung mail", "proof hook UserPromptSubmit")),
    Told(NOW - 192, "state", ("blocked", "permission", "Bash: rm -rf build && python -m build")),
    Told(NOW - 192, "attention", ("a7", "permission")),
)


def look(
    *,
    agents: tuple[AgentStatus, ...] = AGENTS,
    queue: Queue = QUEUE,
    supervisor: SupervisorStatus | None = None,
    **more: Any,
) -> Look:
    """The whole team; parts may be others."""
    root = "/home/ana/widget"
    plans = tuple(row.plan for row in agents if row.plan)
    paths = RunPaths("/run", "/run", "/run/s", "/run/t")
    plan = Plan("review", f"{root}/team.yaml", root, "", paths, Layout(), plans)
    running = supervisor or SupervisorStatus("running", 4121, NOW - 7_800)
    fleet = FleetStatus(plan, running, tmux=True, file_changed=False, agents=agents)
    parts: dict[str, Any] = {
        "chats": ("live", "review"),
        "chat": "live",
        "messages": MESSAGES,
        "handle": agents[0].handle if agents else "",
        "story": STORY if agents else (),
    }
    return Look(fleet, queue, **(parts | more))


def mirror(handle: str) -> Mirror:
    """The screen of an agent."""
    return Mirror(handle, tuple(SCREEN.splitlines()))
