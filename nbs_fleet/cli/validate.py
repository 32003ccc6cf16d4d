"""`nbs-fleet validate`: everything `up` would refuse about the file, without starting or writing anything."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

from nbs_fleet.cli import output
from nbs_fleet.cli.output import Span
from nbs_fleet.cli.params import File, Json
from nbs_fleet.errors import TeamFileError

if TYPE_CHECKING:
    from nbs_fleet.spec.loaded import Loaded


def validate(file: File, *, json: Json = False) -> int | None:
    """Check a team file with its prompts, or a test file (NAME.test.yaml) with the team it names.

    All problems are listed at once, with line and column; exit 2. Nothing is started or written, and no client needs
    to be installed.

    For example:
        nbs-fleet validate team.yaml
        nbs-fleet validate team.yaml --json
        nbs-fleet validate crash.test.yaml
    """
    if file.endswith((".test.yaml", ".test.yml")):
        return _script(file, json=json)
    from nbs_fleet.launch import registry
    from nbs_fleet.spec.load import load_team
    from nbs_fleet.supervisor.prepare import refuse

    try:
        loaded = load_team(file, os.environ, known_drivers=registry.names())
        refuse(loaded, file)
        check_prompts(loaded)
    except TeamFileError as error:
        if not json:
            raise
        output.json({"file": os.path.realpath(file), "ok": False, "problems": error.problems, "warnings": ()})
        return error.exit_code
    team = loaded.team
    if json:
        handles = [agent.handle for agent in team.agents]
        facts = {"team": team.name, "root": team.root, "agents": handles, "problems": (), "warnings": loaded.warnings}
        output.json({"file": team.file, "ok": True, **facts})
        return None
    warn(loaded.warnings)
    output.say(Span("ok", "green"), f": {team.name}: {counts(loaded)}")
    return None


def _script(file: str, *, json: bool) -> int | None:
    """The same for a test file."""
    from nbs_fleet.launch import registry
    from nbs_fleet.testing.load import load_script

    try:
        script = load_script(file, os.environ, known_drivers=registry.names())
    except TeamFileError as error:
        if not json:
            raise
        output.json({"file": os.path.realpath(file), "ok": False, "problems": error.problems, "warnings": ()})
        return error.exit_code
    if json:
        facts = {"test": script.name, "steps": len(script.said.steps), "agents": script.handles, "problems": ()}
        output.json({"file": script.file, "ok": True, **facts, "warnings": script.warnings})
        return None
    warn(script.warnings)
    steps, agents = _number(len(script.said.steps), "step", "steps"), _number(len(script.handles), "agent", "agents")
    output.say(Span("ok", "green"), f": {script.name}: {steps}, {agents}")
    return None


def check_prompts(loaded: Loaded) -> None:
    """Render every prompt and skill as `up` would; raises TeamFileError with all that is wrong."""
    from nbs_fleet.launch import rundir
    from nbs_fleet.plan.build import build
    from nbs_fleet.supervisor.prepare import read_prompts, refuse_skills, sharing

    team = loaded.team
    paths = rundir.run_paths(team.root, team.name, os.environ)
    prompts = read_prompts(loaded)
    source, shared = loaded.source, sharing(team)
    plan = build(team, paths=paths, source=source, prompts=prompts, versions={}, env_digests={}, sharing=shared)
    refuse_skills(plan, loaded)


def warn(warnings: tuple[str, ...]) -> None:
    """Print what is allowed but probably not meant."""
    for warning in warnings:
        output.note(Span("warning: ", "yellow"), warning)


def counts(loaded: Loaded) -> str:
    """`5 agents (claude 4, sim 1), 2 chats, 1 bus`."""
    team = loaded.team
    drivers = ", ".join(f"{name} {number}" for name, number in Counter(a.driver for a in team.agents).items())
    parts = [f"{_number(len(team.agents), 'agent', 'agents')} ({drivers})"]
    if team.chats:
        parts.append(_number(len(team.chats), "chat", "chats"))
    if team.bus:
        parts.append(_number(len(team.bus), "bus", "buses"))
    return ", ".join(parts)


def _number(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
