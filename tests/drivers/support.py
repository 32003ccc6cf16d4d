"""Screens and facts for the tests of drivers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nbs_fleet.drivers.base import Facts, Reading, Screen
from nbs_fleet.spec.team import Agent

HERE = Path(__file__).parent
SESSION = "11111111-2222-4333-8444-555555555501"


def rows(folder: str, name: str) -> tuple[str, ...]:
    """A captured screen, as rows."""
    text = (HERE / "screens" / folder / f"{name}.txt").read_text(encoding="utf-8")
    return tuple(text.split("\n"))


def screen(lines: tuple[str, ...]) -> Screen:
    """Rows as a driver gets them."""
    return Screen(lines, max((len(line) for line in lines), default=0), len(lines))


def captured(folder: str, name: str) -> Screen:
    """A captured screen."""
    return screen(rows(folder, name))


def transcript(name: str) -> str:
    """A captured transcript (attachments emptied)."""
    return (HERE / "transcripts" / f"{name}.jsonl").read_text(encoding="utf-8")


def cases(table: dict[str, str]) -> list[tuple[str, str]]:
    """(name, expected reading) of each capture in a table."""
    return [(name, expected) for expected, names in table.items() for name in names.split()]


def words(reading: Reading) -> str:
    """A reading in the words of the tables."""
    return f"{reading.state} {reading.blocked}" if reading.blocked else str(reading.state)


def make_facts(
    *, resume: bool = False, has_prompt: bool = False, real_dir: str = "/srv/project", **given: Any
) -> Facts:
    """Facts of one start; `given` are fields of the agent, `environ` the agent's environment."""
    environ = given.pop("environ", {})
    driver = given.pop("driver", "claude")
    agent = Agent(handle="bo-1", base="bo", role=None, driver=driver, dir=real_dir, **given)
    return Facts(
        agent=agent,
        team="review",
        run="/state/review",
        agent_dir="/state/review/agents/bo-1",
        settings_path="/state/review/agents/bo-1/settings.json",
        session_id=SESSION,
        resume=resume,
        has_prompt=has_prompt,
        home="/home/ana",
        env={**environ, **agent.env},
        real_dir=real_dir,
    )
