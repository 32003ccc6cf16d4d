"""Which team, which agents: the lookup that all commands without a team file share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from msgspec import Struct

from nbs_fleet.errors import FleetError, UnknownNameError
from nbs_fleet.launch.rundir import known_teams, run_paths
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import Plan
from nbs_fleet.supervisor.store import read_plan


class Found(Struct, frozen=True):
    """One team on this machine: its name, its root (a real path), its run directory."""

    team: str
    root: str
    paths: RunPaths

    def plan(self) -> Plan:
        """What was last asked for: plan.json. Raises FleetError where it can't be read."""
        plan = read_plan(self.paths)
        if plan is None:
            raise UnknownNameError(f"{self.team} in {self.root} was never up", hint="nbs-fleet up FILE starts it")
        return plan

    @property
    def file(self) -> str:
        """The team file of its last `up` (a real path), or nothing."""
        try:
            return self.plan().file
        except FleetError:
            return ""


def teams(environ: Mapping[str, str] = os.environ) -> tuple[Found, ...]:
    """All of this person's teams, by name and root."""
    return tuple(Found(k.team, k.root, run_paths(k.root, k.team, environ)) for k in known_teams(environ))


def find_team(name: str | None = None, *, environ: Mapping[str, str] = os.environ, cwd: str | None = None) -> Found:
    """The team that is meant; raises UnknownNameError with the choices.

    `--team NAME|FILE`, else $NBS_FLEET_RUN, else the only one of the nearest root upwards from `cwd`, else the only
    one there is.
    """
    known = teams(environ)
    if name is not None:
        return _named(name, known)
    if environ.get("NBS_FLEET_RUN"):
        return _running_in(environ["NBS_FLEET_RUN"], known)
    folder = os.path.realpath(cwd or os.getcwd())
    while True:
        here = [f for f in known if f.root == folder]
        if here:
            return _only(here, f"{len(here)} teams in {folder}")
        parent = os.path.dirname(folder)
        if parent == folder:
            break
        folder = parent
    return _only(known, "none is in this folder, and there are several elsewhere")


def _running_in(run: str, known: tuple[Found, ...]) -> Found:
    for found in known:
        if os.path.realpath(found.paths.run) == os.path.realpath(run):
            return found
    # Started with another XDG_STATE_HOME than this shell's: its own plan says where things are.
    plan = read_plan(RunPaths(run, "", "", ""))
    if plan is None:
        raise UnknownNameError(f"$NBS_FLEET_RUN names no team: {run}", hint="unset it, or choose with --team")
    return Found(plan.team, plan.root, plan.paths)


def _named(name: str, known: tuple[Found, ...]) -> Found:
    if os.sep in name or name.endswith((".yaml", ".yml")):
        path = os.path.realpath(name)
        if not os.path.exists(path):
            raise UnknownNameError(f"no such team file: {name}", hint=_choices(known))
        same = [f for f in known if f.file == path]
        if not same:
            raise UnknownNameError(f"the team of {name} was never up", hint=f"nbs-fleet up {name}")
        return _only(same, f"several came from {name}")
    same = [f for f in known if f.team == name]
    if same:
        return _only(same, f'several are called "{name}"')
    raise UnknownNameError(f'no team "{name}"{meant(name, (f.team for f in known))}', hint=_choices(known))


def _only(found: Iterable[Found], trouble: str) -> Found:
    found = tuple(found)
    if len(found) == 1:
        return found[0]
    if not found:
        raise UnknownNameError("no team is up, here or elsewhere", hint="nbs-fleet up FILE starts one")
    raise UnknownNameError(f"which team? {trouble}", hint=_choices(found))


def _choices(found: Iterable[Found]) -> str:
    found = tuple(found)
    if not found:
        return "nbs-fleet up FILE starts a team"
    names = [f.team for f in found]
    # A name that stands for two teams is no choice; the file is.
    shown = (f.team if names.count(f.team) == 1 else f.file or f"{f.team} in {f.root}" for f in found)
    return "choose with --team: " + ", ".join(shown)


def meant(word: str, choices: Iterable[str]) -> str:
    """`; did you mean "x"?` for the nearest choice, or nothing."""
    from difflib import get_close_matches

    near = get_close_matches(word, list(choices), 1)
    return f'; did you mean "{near[0]}"?' if near else ""


def handles_of(found: Found) -> tuple[str, ...]:
    """All handles of the team, in the order of the plan; then those that left the file but still have a record."""
    plan = read_plan(found.paths)
    planned = tuple(a.agent.handle for a in plan.agents) if plan else ()
    try:
        listed = sorted(os.listdir(os.path.join(found.paths.run, "agents")))
    except FileNotFoundError:
        listed = []
    return planned + tuple(h for h in listed if h not in planned and os.path.exists(found.paths.agent(h).state))


def find_handles(found: Found, words: Iterable[str]) -> tuple[str, ...]:
    """The handles these words name; a base handle stands for all its copies. Raises UnknownNameError."""
    plan = read_plan(found.paths)
    agents = plan.agents if plan else ()
    handles = handles_of(found)
    bases = {a.agent.base for a in agents}
    chosen: list[str] = []
    for word in words:
        copies = [word] if word in handles else [a.agent.handle for a in agents if a.agent.base == word]
        if not copies:
            raise UnknownNameError(
                f'no agent "{word}" in {found.team}{meant(word, (*handles, *bases))}',
                hint="its agents: " + (", ".join(handles) or "none yet"),
            )
        chosen += (h for h in copies if h not in chosen)
    return tuple(chosen)


def find_handle(found: Found, word: str) -> str:
    """The one handle this word names; raises UnknownNameError where it names none or several."""
    handles = find_handles(found, [word])
    if len(handles) > 1:
        raise UnknownNameError(f'"{word}" stands for several agents', hint="choose one: " + ", ".join(handles))
    return handles[0]
