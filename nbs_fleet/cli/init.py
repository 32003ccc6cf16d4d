"""`nbs-fleet init`: a first team.yaml from one of the packaged teams."""

from __future__ import annotations

import os
from typing import Annotated

from nbs_fleet.cli import output
from nbs_fleet.cli.lookup import meant
from nbs_fleet.cli.params import arg, opt
from nbs_fleet.errors import FleetError, UnknownNameError
from nbs_fleet.launch.files import write_atomic
from nbs_fleet.resources import data_dir, packaged

DEFAULT = "demo"
_ENDS = (".yaml", ".yml")

Target = Annotated[str, arg("FILE", "where to write it", complete="file")]
Template = Annotated[str, opt("--template", "-t", metavar="T", help="which team to begin with", complete="template")]
Force = Annotated[bool, opt("--force", help="overwrite a file that is there")]
ListThem = Annotated[bool, opt("--list", help="list the templates and write nothing")]


def init(
    file: Target = "team.yaml", *, template: Template = DEFAULT, force: Force = False, list_them: ListThem = False
) -> None:
    """Write a first team file, ready to be edited. A file that is there is kept, unless --force is given.

    For example:
        nbs-fleet init
        nbs-fleet init teams/review.yaml --template demo
        nbs-fleet init --list
    """
    if list_them:
        output.table([(name, _purpose(name)) for name in templates()])
        return
    text = read(template)
    if os.path.lexists(file) and not force:
        raise FleetError(f"{file} is already there", hint="name another file, or overwrite it with --force")
    folder = os.path.dirname(file)
    if folder:
        os.makedirs(folder, exist_ok=True)
    write_atomic(file, text, mode=0o644)
    output.say(f"wrote {file}; next: nbs-fleet validate {file}, then nbs-fleet up {file}")


def templates() -> tuple[str, ...]:
    """The names of the packaged teams."""
    return tuple(name.rsplit(".", 1)[0] for name in packaged("teams", ends=_ENDS))


def read(template: str) -> str:
    """The text of a packaged team, fit for its new place. Raises UnknownNameError with the choices."""
    for end in _ENDS:
        path = os.path.join(data_dir("teams"), template + end)
        if template in templates() and os.path.exists(path):
            with open(path, encoding="utf-8") as file:
                return _moved(file.read())
    names = templates()
    raise UnknownNameError(f'no template "{template}"{meant(template, names)}', hint="templates: " + ", ".join(names))


def _moved(text: str) -> str:
    """Without the lines that hold only where the packaged file lies."""
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("# yaml-language-server:"))


def _purpose(name: str) -> str:
    """The first comment of a packaged team."""
    for line in read(name).splitlines():
        if line.startswith("# "):
            return line[2:]
    return ""
