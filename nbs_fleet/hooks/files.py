"""The programs that hooks run, as texts for the run directory's `bin/`."""

from __future__ import annotations

from importlib import resources

from nbs_fleet.hooks.front import front

FRONT = "nbs-hook"
PROGRAM = "nbs-hook.py"


def programs(python: str) -> dict[str, str]:
    """Text by file name: the shell front (to be executable), and the program it runs with the interpreter `python`."""
    source = resources.files("nbs_fleet.hooks").joinpath("program.py").read_text(encoding="utf-8")
    return {FRONT: front(python), PROGRAM: source}
