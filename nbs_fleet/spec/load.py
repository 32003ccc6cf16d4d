"""From a team file to a Team: read, check everything, say all that is wrong at once, build."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from nbs_fleet.errors import UsageError
from nbs_fleet.spec.build import Context, build
from nbs_fleet.spec.envfile import looks_secret
from nbs_fleet.spec.environment import defaults
from nbs_fleet.spec.include import read_files
from nbs_fleet.spec.inherit import check_agents, check_described
from nbs_fleet.spec.loaded import Loaded
from nbs_fleet.spec.names import check_names, names_of
from nbs_fleet.spec.places import check_places, root_of
from nbs_fleet.spec.problems import Problems, quoted, suggest
from nbs_fleet.spec.shape import check_shape

SECRET_LENGTH = 8
"""Shorter values are not masked: they would blank out ordinary words."""


def load_team(
    path: str,
    environ: Mapping[str, str],
    *,
    driver: str | None = None,
    known_drivers: Collection[str] | None = None,
) -> Loaded:
    """Read, check and expand the team file at `path`, which is shown in errors as it is given here.

    `environ` fills `${NAME}` and gives the nbs tools' defaults. `driver` overrides the driver of every agent; where
    that differs from what the agent declares, its command, args and model are dropped. `known_drivers` are the
    installed ones (None: not checked). Nothing is written or started. Raises TeamFileError with every problem found,
    and UsageError for an override that is not installed.
    """
    if driver is not None and known_drivers is not None and driver not in known_drivers:
        hint = suggest(driver, sorted(known_drivers), none="none is installed")
        raise UsageError(f"unknown driver {quoted(driver)}; {hint}")
    problems = Problems()
    read = read_files(path, environ, problems)
    tree = read.tree
    if tree is None:
        problems.check()
        raise AssertionError("a file without a tree has a problem")
    check_shape(tree, problems)
    names = names_of(tree)
    root = root_of(tree, read.main)
    check_names(tree, names, None if driver is not None else known_drivers, problems)
    check_places(tree, names, root, problems)
    around = defaults(environ, problems)
    check_described(tree, names, around, driver, problems)
    problems.check()
    check_agents(tree, names, driver, problems)
    team, origins = build(Context(tree, read.main, names, root, around, driver))
    secrets = {value for name, value in read.used.items() if looks_secret(name) and len(value) >= SECRET_LENGTH}
    return Loaded(team, read.source, read.files, origins, problems.warnings(), tuple(sorted(secrets)))
