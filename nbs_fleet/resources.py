"""Finds the packaged folders (`templates/`, `teams/`), in a checkout as in the wheel."""

from __future__ import annotations

import os

from nbs_fleet.errors import MissingError

_HERE = os.path.dirname(os.path.abspath(__file__))


def data_dir(name: str) -> str:
    """Absolute path of the packaged folder `name`; MissingError when the installation lacks it."""
    for base in (os.path.join(_HERE, "_data"), os.path.dirname(_HERE)):
        path = os.path.join(base, name)
        if os.path.isdir(path):
            return path
    raise MissingError(f"the folder {name} is missing from this installation", hint="install nbs-fleet again")


def packaged(folder: str, *, ends: tuple[str, ...] = ("",)) -> tuple[str, ...]:
    """Names of the files and folders in a packaged folder that end in one of `ends`, sorted; () when there is none."""
    try:
        names = os.listdir(data_dir(folder))
    except (MissingError, OSError):
        return ()
    return tuple(sorted(n for n in names if n.endswith(ends) and not n.startswith(".")))
