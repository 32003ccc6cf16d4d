"""A team of different clients: a word goes around in a chat, each hears it by a notice and hands it on."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.conftest import REPORT
from tests.others.conftest import WITHIN, Fields
from tests.support import clients, others, private
from tests.support.fleet import Fleet

pytestmark = [pytest.mark.long, pytest.mark.real, pytest.mark.e2e]
CHAIN = {"cara": "claude", "cody": "codex", "pilar": "copilot", "simon": "sim"}
"""Who hands the word to the next one, and what client each is."""
QUICK = {"startup_grace": "500ms", "notify_cooldown": "500ms"}


@pytest.fixture
def team(request: pytest.FixtureRequest, tmp_path: Path, short_path: Path) -> Iterator[tuple[Fleet, list[Fields]]]:
    """A fleet in which each of the clients finds its API, and the agents of its team file."""
    for name in ("codex", "copilot"):
        reason = others.missing(name)
        if reason:
            pytest.skip(reason)
    clients.need("claude")
    root = tmp_path / "project"
    root.mkdir()
    with ExitStack() as stack:
        claude = stack.enter_context(clients.running("claude", tmp_path / "claude", trusted=(str(root.resolve()),)))
        codex = stack.enter_context(others.running("codex", tmp_path / "codex"))
        copilot = stack.enter_context(others.running("copilot", tmp_path / "copilot"))
        makers = {"claude": claude, "codex": codex, "copilot": copilot, "sim": clients.Sim("sim", tmp_path, tmp_path)}
        members = list(CHAIN)
        agents = [
            makers[kind].agent(
                handle,
                driver=kind,
                prompt_text=f"hello {handle} [[say ready]]",
                permission_mode="bypassPermissions",
                dialogs={"trust": "accept", "bypass": "accept"},
                sidecar={**QUICK, "notify": notice(handle, (*members, "maria")[members.index(handle) + 1])},
            )
            for handle, kind in CHAIN.items()
        ]
        environment = {**claude.environment, **codex.environment, **copilot.environment}
        path = (*claude.path, *codex.path, *copilot.path)
        mixed = clients.Client("claude", tmp_path, tmp_path, environment, path)
        fleet = Fleet(tmp_path, mixed, private.surrounding(tmp_path, short_path), root=root)
        try:
            yield fleet, agents
            if any(report.failed for report in request.node.stash.get(REPORT, {}).values()):
                print(fleet.artefacts())
                return
            assert fleet.down(within=WITHIN).code == 0
            left = fleet.leftovers()
            assert not left, "left behind:\n" + "\n".join(left)
        finally:
            fleet.end()


def notice(handle: str, following: str) -> str:
    """What an agent is told when something waits, with what its scripted model does then: read, and hand on once."""
    reads = f"nbs-fleet chat read live --unread | grep -q 'over to {handle}!'"
    return f"{{summary}} [[bash {reads} && nbs-fleet chat send live {handle} 'over to {following}!']] [[say done]]"


def test_a_word_goes_around_among_four_different_clients(team: tuple[Fleet, list[Fields]]) -> None:
    fleet, agents = team
    fleet.write_team(agents, chats=["live"])
    up = fleet.up("--timeout", f"{WITHIN:.0f}s", within=WITHIN + 20.0)
    assert up.code == 0, str(up)
    fleet.all_idle(within=WITHIN)
    sent = fleet.run("chat", "send", "live", "maria", "over to cara!")
    assert sent.code == 0, str(sent)

    def said() -> list[str]:
        return re.findall(r"over to (\w+)!", fleet.run("chat", "read", "live").out)

    fleet.until(lambda: said()[-1:] == ["maria"], within=3 * WITHIN, what="the word is back")
    assert said() == [*CHAIN, "maria"]
