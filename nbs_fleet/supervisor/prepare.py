"""From a team file to a plan and the steps it takes: everything `up` does before it changes anything."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from nbs_fleet.errors import MissingError, TeamFileError, UnknownNameError
from nbs_fleet.launch import registry, rundir, versions
from nbs_fleet.launch.environment import agent_environment
from nbs_fleet.plan import skills
from nbs_fleet.plan.build import build
from nbs_fleet.plan.diff import diff
from nbs_fleet.plan.layout import Place
from nbs_fleet.plan.prompts import PACKAGED, collect
from nbs_fleet.plan.types import Plan, Snapshot, Step
from nbs_fleet.resources import data_dir
from nbs_fleet.spec import envfile
from nbs_fleet.spec.load import load_team
from nbs_fleet.spec.loaded import Loaded
from nbs_fleet.spec.team import Team
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.snapshot import take
from nbs_fleet.supervisor.status import digest_of

MAX_TEMPLATE = 1_000_000
"""Characters of a template that are read; what it renders to is bounded further."""


class Prepared(Struct, frozen=True):
    """A plan, what runs now, the steps between, and each agent's environment (secret: never written but to values)."""

    team: Team
    plan: Plan
    snapshot: Snapshot
    steps: tuple[Step, ...]
    environments: dict[str, dict[str, str]]
    hidden: dict[str, tuple[str, ...]] = {}
    """Names of variables by handle that are secret whatever their names say."""
    warnings: tuple[str, ...] = ()


def prepare(
    file: str,
    environ: Mapping[str, str],
    *,
    only: tuple[str, ...] | None = None,
    now: bool = False,
    driver: str | None = None,
    check_versions: bool = True,
    remember: bool = False,
) -> Prepared:
    """Load, validate and plan a team file; compare with what runs. Starts nothing.

    Writes nothing either, unless `remember`: then what clients answered to `--version` is kept for next time.

    Raises TeamFileError (exit 2) for the file, MissingError (3) for a client that is missing or too old.
    """
    loaded = load_team(file, environ, driver=driver, known_drivers=registry.names())
    refuse(loaded, file)
    paths = rundir.run_paths(loaded.team.root, loaded.team.name, environ)
    files = {a.handle: envfile.read(a.env_file) if a.env_file else {} for a in loaded.team.agents}
    environments = {
        a.handle: agent_environment(a, environ, registry.of(a).env_keys, files[a.handle]) for a in loaded.team.agents
    }
    home = rundir.state_home(environ)
    cache = home if remember and os.path.isdir(home) else None
    found = versions.Found()
    if check_versions:
        found = versions.check(loaded.team.agents, environments, cache_dir=cache)
    plan = build(
        loaded.team,
        paths=paths,
        source=loaded.source,
        prompts=read_prompts(loaded),
        versions=found.versions,
        env_digests={handle: _digest(values) for handle, values in files.items()},
        placed=placed(store.readable_plan(paths)),
        sharing=sharing(loaded.team),
    )
    refuse_skills(plan, loaded)
    plan = replace(plan, sources={path: digest_of(path) for path in loaded.files}, umask=_umask())
    wanted = expand_only(loaded.team, only)
    snapshot = take(paths)
    steps = diff(plan, snapshot, only=wanted, now=now)
    hidden = {
        handle: tuple(name for name, value in env.items() if name in files[handle] or _holds(value, loaded.secrets))
        for handle, env in environments.items()
    }
    warnings = (*loaded.warnings, *found.warnings)
    return Prepared(loaded.team, plan, snapshot, steps, environments, hidden, warnings)


def _holds(value: str, secrets: Iterable[str]) -> bool:
    return any(secret in value for secret in secrets)


def refuse(loaded: Loaded, file: str) -> None:
    """Raise TeamFileError for what the agents' drivers have against their declarations."""
    found: list[str] = []
    for agent in loaded.team.agents:
        place = _declared(loaded, agent.handle, file)
        found += [f"{place}: agents.{agent.handle}: {text}" for text in registry.of(agent).objections(agent)]
    if found:
        raise TeamFileError(tuple(found))


def sharing(team: Team) -> frozenset[str]:
    """The agents whose client finds skills only in its working directory."""
    return frozenset(agent.handle for agent in team.agents if registry.of(agent).capabilities.shared_skills)


def refuse_skills(plan: Plan, loaded: Loaded) -> None:
    """Raise TeamFileError where agents share a folder of skills and would be given different ones of one name."""
    first: dict[tuple[str, str], tuple[str, str]] = {}
    found: list[str] = []
    for one in plan.agents:
        if not registry.of(one.agent).capabilities.shared_skills:
            continue
        for skill in one.skills:
            handle, text = first.setdefault(
                (os.path.realpath(one.agent.dir), skill.name), (one.agent.handle, skill.text)
            )
            if text != skill.text:
                place = _declared(loaded, one.agent.handle, plan.file)
                found.append(
                    f"{place}: agents.{one.agent.handle}.skills: {skill.name} differs from that of {handle}, and "
                    f"{one.agent.driver} finds skills only in the agent's `dir`, which "
                    "both share; give each a `dir` of its own, or write a skill that is the same for both"
                )
    if found:
        raise TeamFileError(tuple(found))


def _declared(loaded: Loaded, handle: str, file: str) -> str:
    """Where an agent's driver is chosen, else the file."""
    where = loaded.origins.get(f"agents.{handle}.driver")
    return where.where if where is not None else file


def expand_only(team: Team, only: tuple[str, ...] | None) -> frozenset[str] | None:
    """The handles that `--only` names; a base handle stands for all its copies."""
    if only is None:
        return None
    wanted: set[str] = set()
    for name in only:
        handles = {a.handle for a in team.agents if name in (a.handle, a.base)}
        if not handles:
            known = ", ".join(a.handle for a in team.agents)
            raise UnknownNameError(f"--only {name}: no such handle", hint=f"handles: {known}")
        wanted |= handles
    return frozenset(wanted)


def read_template(key: str) -> str | None:
    """The text of a template by its key (a path, or `template:NAME` for a packaged one); None if there is none."""
    try:
        path = os.path.join(data_dir("templates"), key[len(PACKAGED) :]) if key.startswith(PACKAGED) else key
        with open(path, encoding="utf-8", newline="") as file:
            return file.read(MAX_TEMPLATE)
    except (OSError, MissingError):
        return None
    except UnicodeDecodeError as error:
        raise TeamFileError((f"{key}: not UTF-8 text ({error.reason})",)) from error


def read_prompts(loaded: Loaded) -> dict[str, str]:
    """All templates that the team's prompts and skills need, with what they include, by key."""
    return {**collect(loaded.team, read_template), **skills.collect(loaded.team, read_template)}


def placed(plan: Plan | None) -> dict[str, Place]:
    """Where the panes of the last plan are: they stay there."""
    return {a.agent.handle: (a.window, a.slot) for a in plan.agents} if plan else {}


def _umask() -> int:
    """The mask of this process; the system has no way of reading it without setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _digest(values: Mapping[str, str]) -> str:
    text = "\0".join(f"{k}={v}" for k, v in sorted(values.items()))
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:16] if values else ""
