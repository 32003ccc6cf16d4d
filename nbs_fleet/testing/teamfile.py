"""The team file of a test's world: the team under test on a root of its own, with other clients. Pure."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from nbs_fleet.spec.team import Agent
from nbs_fleet.testing.schema import ClientFile, OverridesFile

SCRIPTED = ("sim", "claudeless")
"""Drivers whose client takes `--scenario FILE`."""
BESIDE = ("prompt", "env_file")
"""Keys that hold the path of a file beside the team file."""
NO_OVERRIDES = OverridesFile()


class Stand(Struct, frozen=True):
    """What stands in for one agent's client. `command` None: the driver's own; `scenario` an absolute path."""

    driver: str
    command: tuple[str, ...] | None
    scenario: str | None


def stand_in(agent: Agent, overrides: OverridesFile, *, driver: str | None, folder: str) -> Stand:
    """The client of one agent: what is said of its handle, else of its role, else of all, else the team file's.

    `driver` is the command line's, and stands in for all; commands are then left out. `folder` is the test file's.
    """
    layers: list[ClientFile] = [overrides]
    if agent.role and overrides.roles and agent.role in overrides.roles:
        layers.insert(0, overrides.roles[agent.role])
    if overrides.agents and agent.base in overrides.agents:
        layers.insert(0, overrides.agents[agent.base])
    chosen = driver or next((layer.driver for layer in layers if layer.driver), agent.driver)
    command = None if driver else next((layer.command for layer in layers if layer.command), None)
    scenario = next((layer.scenario for layer in layers if layer.scenario), None)
    return Stand(
        driver=chosen,
        command=tuple(command) if command else None,
        scenario=os.path.normpath(os.path.join(folder, scenario)) if scenario else None,
    )


def overlay_text(
    base: str,
    root: str,
    agents: Iterable[Agent],
    stands: Mapping[str, Stand],
    *,
    sidecar: Mapping[str, Any],
    programs: Mapping[str, tuple[str, ...]],
) -> str:
    """The text of a team file that includes `base` and puts another root and other clients in (JSON, which is YAML).

    `agents` of the team as it is; `stands` by base handle; `programs` has each driver's own command. A client's
    command and arguments in the team file are left out with another driver: they are not for it.
    """
    entries: dict[str, dict[str, Any]] = {}
    for agent in agents:
        if agent.base in entries:
            continue
        stand = stands[agent.base]
        entry: dict[str, Any] = {"handle": agent.base, "driver": stand.driver}
        same = stand.driver == agent.driver
        args = list(agent.args) if same else []
        if stand.scenario and stand.driver in SCRIPTED:
            args += ["--scenario", stand.scenario]
        if args != list(agent.args):
            entry["args"] = args
        command = stand.command or (programs[stand.driver] if agent.command and not same else None)
        if command:
            entry["command"] = list(command)
        if sidecar:
            entry["sidecar"] = dict(sidecar)
        entries[agent.base] = entry
    team = {"include": [base], "root": root, "agents": list(entries.values())}
    return _text(team)


def inline_text(team: Mapping[str, Any], folder: str) -> str:
    """The text of a team file from the mapping that stands in a test file in `folder`; variables are expanded."""
    return _text(_beside(dict(team), folder))


def _beside(value: Any, folder: str, key: str = "") -> Any:
    """The same, with the paths of files beside the test file made absolute where there is such a file."""
    if isinstance(value, dict):
        return {name: _beside(item, folder, name) for name, item in value.items() if name != "root"}
    if isinstance(value, list):
        return [_beside(item, folder, key) for item in value]
    if isinstance(value, str) and key in BESIDE and os.path.exists(os.path.join(folder, value)):
        return os.path.normpath(os.path.join(folder, value))
    return value


def _text(value: Any) -> str:
    """JSON in which a dollar is a dollar."""
    return json.dumps(value, indent=1, ensure_ascii=False).replace("$", "$$") + "\n"
