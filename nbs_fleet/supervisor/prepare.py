"""From a team file to a plan and the steps it takes: everything `up` does before it changes anything."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping

from msgspec import Struct

from nbs_fleet.errors import FleetError, TeamFileError
from nbs_fleet.launch import registry, rundir, versions
from nbs_fleet.launch.environment import agent_environment
from nbs_fleet.plan.build import build
from nbs_fleet.plan.diff import diff
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import Plan, Snapshot, Step
from nbs_fleet.resources import data_dir
from nbs_fleet.spec import envfile
from nbs_fleet.spec.load import Loaded, load_team
from nbs_fleet.spec.team import Agent, Team
from nbs_fleet.supervisor.snapshot import take

PACKAGED = "template:"


class Prepared(Struct, frozen=True):
    """A plan, what runs now, the steps between, and each agent's environment (secret: never written but to values)."""

    team: Team
    plan: Plan
    snapshot: Snapshot
    steps: tuple[Step, ...]
    environments: dict[str, dict[str, str]]
    warnings: tuple[str, ...] = ()


def prepare(
    file: str,
    environ: Mapping[str, str],
    *,
    only: tuple[str, ...] | None = None,
    now: bool = False,
    driver: str | None = None,
    check_versions: bool = True,
) -> Prepared:
    """Load, validate and plan a team file; compare with what runs. Writes and starts nothing.

    Raises TeamFileError (exit 2) for the file, MissingError (3) for a client that is missing or too old.
    """
    loaded = load_team(file, environ, driver=driver, known_drivers=registry.names())
    paths = rundir.run_paths(loaded.team.root, loaded.team.name, environ)
    files = {a.handle: env_file_values(a) for a in loaded.team.agents}
    environments = {
        a.handle: agent_environment(a, environ, registry.get(a.driver).env_keys, files[a.handle])
        for a in loaded.team.agents
    }
    found = versions.check(loaded.team.agents, environments) if check_versions else versions.Found()
    plan = build(
        loaded.team,
        paths=paths,
        source=loaded.source,
        prompts=read_prompts(loaded),
        versions=found.versions,
        env_digests={handle: _digest(values) for handle, values in files.items()},
    )
    wanted = expand_only(loaded.team, only)
    snapshot = take(paths)
    steps = diff(plan, snapshot, only=wanted, now=now)
    return Prepared(loaded.team, plan, snapshot, steps, environments, (*loaded.warnings, *found.warnings))


def expand_only(team: Team, only: tuple[str, ...] | None) -> frozenset[str] | None:
    """The handles that `--only` names; a base handle stands for all its copies."""
    if only is None:
        return None
    wanted: set[str] = set()
    for name in only:
        handles = {a.handle for a in team.agents if name in (a.handle, a.base)}
        if not handles:
            known = ", ".join(a.handle for a in team.agents)
            raise FleetError(f"--only {name}: no such handle", hint=f"handles: {known}")
        wanted |= handles
    return frozenset(wanted)


def env_file_values(agent: Agent) -> dict[str, str]:
    """The variables of the agent's env_file, if it names one."""
    if agent.env_file is None:
        return {}
    with open(agent.env_file, encoding="utf-8") as file:
        return envfile.parse(file.read())


def read_prompts(loaded: Loaded) -> dict[str, str]:
    """The texts of all templates the team names; for a packaged one under `template:NAME`."""
    texts: dict[str, str] = {}
    for agent in loaded.team.agents:
        name = agent.prompt
        if name is None or name in texts:
            continue
        path = str(data_dir("templates") / name[len(PACKAGED) :]) if name.startswith(PACKAGED) else name
        try:
            with open(path, encoding="utf-8", newline="") as file:
                texts[name] = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise TeamFileError((f"{loaded.team.file}: prompt {path}: {error}",)) from error
    return texts


def _digest(values: Mapping[str, str]) -> str:
    text = "\0".join(f"{k}={v}" for k, v in sorted(values.items()))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16] if values else ""


def home_of(paths: RunPaths) -> str:
    """The run directory, shortened for people."""
    home = os.path.expanduser("~")
    return "~" + paths.run[len(home) :] if paths.run.startswith(home + "/") else paths.run
