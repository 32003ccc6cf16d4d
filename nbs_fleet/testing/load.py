"""From a test file to what it says: read, check everything against the team it tests, say all that is wrong at once."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct

from nbs_fleet.spec.include import read_files
from nbs_fleet.spec.load import load_team
from nbs_fleet.spec.misfits import check_model
from nbs_fleet.spec.names import check_names, names_of
from nbs_fleet.spec.nodes import Map, Node, Scalar, Seq, exact, find, plain, text_of
from nbs_fleet.spec.problems import Path, Problems, quoted, suggest
from nbs_fleet.spec.shape import check_filled, check_shape
from nbs_fleet.testing.schema import ExpectFile, ScriptFile, StepFile
from nbs_fleet.testing.teamfile import inline_text

PROCESSES = ("supervisor", "tmux")
"""What a step may kill, stop, freeze or continue beside the clients of agents."""

_ABOUT = frozenset({"name", "within", "as"})
_TARGETS = ("kill", "stop", "freeze", "continue")
_USE = re.compile(r"%\{([^}]*)\}")


class Script(Struct, frozen=True):
    """A test file that can be meant: `file` absolute, `name` for people, `handles` of the team, `warnings` by line."""

    file: str
    name: str
    said: ScriptFile
    handles: tuple[str, ...]
    warnings: tuple[str, ...]
    steps_at: tuple[str, ...]
    """Where each step stands, `crash.test.yaml:12`, as the file was named."""
    cleanup_at: tuple[str, ...]
    inline: str | None
    """The team that stands in the test file itself, as the text of a team file; else None."""
    team_path: str | None
    """The absolute path of the team file that is named; else None."""


class Members(Struct, frozen=True):
    """Who is in the team under test."""

    handles: tuple[str, ...]
    roles: tuple[str, ...]
    bases: tuple[str, ...]
    """The handles as the team file has them: one that stands for copies is one."""


def load_script(path: str, environ: Mapping[str, str], *, known_drivers: Collection[str] | None = None) -> Script:
    """Read and check the test file at `path`, which is shown in errors as it is given here, and its team.

    `environ` fills `${NAME}`; `known_drivers` are the installed ones (None: not checked). Nothing is written or
    started. Raises TeamFileError with every problem found in the test file, else with those of the team file it names.
    """
    problems = Problems()
    read = read_files(path, environ, problems)
    if read.tree is None:
        problems.check()
        raise AssertionError("a file without a tree has a problem")
    tree = read.tree
    if len(read.files) > 1:
        problems.add(tree.mark, ("include",), "a test file can't include others; name them in the team file under test")
    team = tree.get("team")
    own = Map(tree.mark, {k: v for k, v in tree.items.items() if k != "team"}, tree.keys)
    check_filled(own if isinstance(team, Map) else tree, problems)
    check_model(tree, ScriptFile, problems)
    _check_choices(tree, problems)
    _check_captures(tree, problems)
    driver = _check_drivers(tree, known_drivers, problems)
    members: Members | None = None
    if isinstance(team, Map):
        members = _inline(team, known_drivers if driver is None else None, problems)
    elif isinstance(team, Scalar) and not problems:
        members = _named(team, environ, driver, known_drivers, problems)
    handles = () if members is None else members.handles
    if members is not None:
        _check_overrides(tree, members, problems)
        _check_handles(tree, handles, problems)
    problems.check()
    said = ScriptFile.model_validate(plain(tree))
    name = said.name or os.path.basename(path).removesuffix(".yaml").removesuffix(".test")
    where: dict[object, list[str]] = {"steps": [], "cleanup": []}
    for way, step in _steps(tree):
        where[way[0]].append(step.mark.where())
    return Script(
        file=read.main.path,
        name=name,
        said=said,
        handles=handles,
        warnings=problems.warnings(),
        steps_at=tuple(where["steps"]),
        cleanup_at=tuple(where["cleanup"]),
        inline=inline_text(exact(plain(team)), os.path.dirname(read.main.path)) if isinstance(team, Map) else None,
        team_path=os.path.realpath(_team_path(team)) if isinstance(team, Scalar) else None,
    )


def _inline(team: Map, known_drivers: Collection[str] | None, problems: Problems) -> Members | None:
    """The members of a team that stands in the test file itself; None where faults hide some."""
    inner = Problems()
    check_shape(team, inner)
    names = names_of(team)
    check_names(team, names, known_drivers, inner)
    problems.take(inner, ("team",))
    handles = tuple(handle for entry in names.entries for handle in entry.copies)
    bases = tuple(entry.base for entry in names.entries)
    return Members(handles, tuple(names.roles), bases) if names.whole else None


def _named(
    team: Scalar,
    environ: Mapping[str, str],
    driver: str | None,
    known_drivers: Collection[str] | None,
    problems: Problems,
) -> Members | None:
    """The members of the team file that is named; its own faults are raised, that it is missing is a fault here."""
    path = _team_path(team)
    if not os.path.isfile(path):
        problems.add(team.mark, ("team",), f"no such file: {quoted(path)}; write a path beside this file")
        return None
    agents = load_team(path, environ, driver=driver, known_drivers=known_drivers).team.agents
    roles = dict.fromkeys(agent.role for agent in agents if agent.role)
    bases = dict.fromkeys(agent.base for agent in agents)
    return Members(tuple(agent.handle for agent in agents), tuple(roles), tuple(bases))


def _team_path(team: Scalar) -> str:
    """The path of the team file that is named, as the test file is shown."""
    return os.path.normpath(os.path.join(os.path.dirname(team.mark.file.shown), team.text))


def _check_drivers(tree: Map, known: Collection[str] | None, problems: Problems) -> str | None:
    """The driver that stands in for all others; every one that is named must be installed."""
    overrides = tree.get("overrides")
    places: list[tuple[Path, Node | None]] = [(("overrides",), overrides)]
    for part in ("roles", "agents"):
        below = overrides.get(part) if isinstance(overrides, Map) else None
        if isinstance(below, Map):
            places += [(("overrides", part, name), node) for name, node in below.items.items()]
    for path, node in places:
        driver = node.get("driver") if isinstance(node, Map) else None
        name = text_of(driver)
        if driver is not None and name is not None and known is not None and name not in known:
            hint = suggest(name, sorted(known), none="none is installed")
            problems.add(driver.mark, (*path, "driver"), f"unknown driver {quoted(name)}; {hint}")
    return text_of(overrides.get("driver")) if isinstance(overrides, Map) else None


def _check_overrides(tree: Map, members: Members, problems: Problems) -> None:
    """Whoever is overridden is in the team."""
    for part, known in (("agents", members.bases), ("roles", members.roles)):
        node, way, _ = find(tree, ("overrides", part))
        if not isinstance(node, Map) or len(way) != 2:
            continue
        for name in node.items:
            if name in known:
                continue
            if part == "agents" and name in members.handles:
                text = f"{quoted(name)} is one of several copies; write the handle that stands for all of them"
            else:
                text = f"{quoted(name)} is not in the team; {suggest(name, known, none=f'the team has no {part}')}"
            problems.add(node.keys[name], ("overrides", part, name), text)


def _steps(tree: Map) -> Iterator[tuple[Path, Map]]:
    for part in ("steps", "cleanup"):
        steps = tree.get(part)
        for n, step in enumerate(steps.items if isinstance(steps, Seq) else ()):
            if isinstance(step, Map):
                yield (part, n), step


def _check_choices(tree: Map, problems: Problems) -> None:
    """A step does exactly one thing, an expectation is about exactly one, a given file has one content."""
    actions = [f.alias or n for n, f in StepFile.model_fields.items() if (f.alias or n) not in _ABOUT]
    for path, step in _steps(tree):
        if set(step.items) <= {*actions, *_ABOUT}:  # else the unknown key is told, which was meant to be one of them
            _one_of(step, path, actions, "step", problems)
        expected = step.get("expect")
        if isinstance(expected, Map):
            _one_of(expected, (*path, "expect"), list(ExpectFile.model_fields), "expectation", problems)
    given = tree.get("given")
    for n, item in enumerate(given.items if isinstance(given, Seq) else ()):
        if isinstance(item, Map):
            _one_of(item, ("given", n), ["text", "copy"], "given file", problems)


def _one_of(node: Map, path: Path, choices: list[str], what: str, problems: Problems) -> None:
    there = [name for name in node.items if name in choices]
    if not there:
        problems.add_once(node.mark, path, f"this {what} has none of {', '.join(choices)}; write one of them")
    for extra in there[1:]:
        problems.add(node.keys[extra], (*path, extra), f"this {what} has {there[0]} already; keep one of the two")


def _check_captures(tree: Map, problems: Problems) -> None:
    """`%{NAME}` stands for what an earlier step kept; only what is seen can be kept."""
    known: list[str] = []
    for path, step in _steps(tree):
        for place, scalar in _scalars(step, path):
            for name in _USE.findall(scalar.text):
                if name not in known:
                    hint = suggest(name, known, none="no step before keeps anything; write as: on an earlier one")
                    problems.add(scalar.mark, place, f"nothing is kept as {quoted(name)} before this step; {hint}")
        kept = text_of(step.get("as"))
        if kept is None:
            continue
        if "expect" not in step.items:
            problems.add(step.keys["as"], (*path, "as"), "only what an expectation sees can be kept; remove it")
        known.append(kept)


def _scalars(node: Node, path: Path) -> Iterator[tuple[Path, Scalar]]:
    if isinstance(node, Scalar):
        yield path, node
    elif isinstance(node, Map):
        for name, value in node.items.items():
            yield from _scalars(value, (*path, name))
    else:
        for n, item in enumerate(node.items):
            yield from _scalars(item, (*path, n))


def _check_handles(tree: Map, handles: tuple[str, ...], problems: Problems) -> None:
    """Whoever a step names is in the team."""
    for path, step in _steps(tree):
        for place, node, known in _named_in(step, path, handles):
            named = text_of(node)
            if named is not None and named not in known and "%{" not in named:
                hint = suggest(named, known, none="the team has no agents")
                problems.add(node.mark, place, f"{quoted(named)} is not in the team; {hint}")


_NAMING: tuple[Path, ...] = (
    ("send", "to"),
    ("signal", "agent"),
    ("answer", "agent"),
    ("control", "agent"),
    ("pause",),
    ("resume",),
    ("wait", "agent"),
    ("expect", "agent", "handle"),
    ("expect", "prompts", "agent"),
    ("expect", "screen", "agent"),
    ("expect", "attention", "agent"),
)


def _named_in(step: Map, path: Path, handles: tuple[str, ...]) -> Iterator[tuple[Path, Node, tuple[str, ...]]]:
    """Each place of a step where somebody is named, with the names that fit there."""
    for way in _NAMING:
        node, done, _ = find(step, way)
        if node is not None and done == way:
            yield (*path, *way), node, handles
    for target in _TARGETS:
        if target in step.items:
            yield (*path, target), step.items[target], (*handles, *PROCESSES)
    nothing, done, _ = find(step, ("expect", "nothing", "agents"))
    if isinstance(nothing, Seq) and len(done) == 3:
        for n, item in enumerate(nothing.items):
            yield (*path, *done, n), item, handles
