"""From a message to the next request of an idle real Claude Code, which talks to a scripted API on loopback."""

from __future__ import annotations

import os
import secrets
import sys
import tempfile
import time
from functools import partial
from pathlib import Path

from benchmarks import teams
from benchmarks.figures import Benchmark, Figure, Options, quantile
from benchmarks.teams import EAGER, Team, until
from nbs_fleet.launch.messages import Mailbox, new_id
from nbs_fleet.model import AgentState, Message, MessageKind
from tests.clients.install import CLAUDE
from tests.support.claude_api import ScriptedApi

ROUNDS = 15
REST = 1.0
"""Seconds between two messages: each is to meet a client at rest."""
TEAM = {
    "version": 1,
    "team": "bench",
    "driver": "claude",
    "sidecar": EAGER,
    "agents": [{"handle": "a-1"}],
}


def surrounding(url: str) -> dict[str, str]:
    """What lets the client run without an account or a network."""
    return {
        "PATH": f"{CLAUDE.executable.parent}:{os.environ['PATH']}",
        "ANTHROPIC_API_KEY": "none-is-needed",
        "ANTHROPIC_BASE_URL": url,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
    }


def asked(team: Team, api: ScriptedApi, rounds: int) -> list[float]:
    """Milliseconds from each message until a request of the client has it."""
    box = Mailbox(team.paths.agent("a-1"))
    took = []
    for number in range(rounds):
        until(lambda: team.state("a-1") is AgentState.IDLE, "a-1 is idle")
        time.sleep(REST)
        text, at = f"This is message {number} of the benchmark.", time.time()
        box.accept(Message(new_id(MessageKind.DIRECTIVE, at, secrets.randbits(64)), "a-1", "tester", text, at))
        took.append((until(partial(_first, api, text), f"a request has: {text}") - at) * 1000)
    return took


def _first(api: ScriptedApi, text: str) -> float | None:
    """The wall second of the first request that holds this text."""
    with_it = (turn.at for turn in api.turns() if any(text in block for block in turn.user_blocks))
    return min(with_it, default=None)


def figures(options: Options) -> list[Figure]:
    """One agent; nothing where the client is not installed."""
    if not CLAUDE.executable.exists():
        sys.stderr.write("no Claude Code (tests/clients/install.py installs it) .. ")
        return []
    with (
        tempfile.TemporaryDirectory(prefix="nf-") as folder,
        ScriptedApi(Path(folder)) as api,
        teams.running(TEAM, surrounding(api.url)) as team,
    ):
        took = asked(team, api, options.some(ROUNDS, 3))
    what = "message -> in the next request of an idle Claude Code"
    return [
        Figure(f"{what}, p50", "ms", quantile(took, 0.5), at_most=400.0),
        Figure(f"{what}, p99", "ms", quantile(took, 0.99)),
    ]


BENCHMARK = Benchmark(
    "claude",
    "The real Claude Code, where it is installed, against a scripted API on loopback. The time is from the moment at "
    "which a message is handed in, as `send` does it, until the API has a request that holds it.",
    figures,
)
