"""`nbs-fleet init`: a first team.yaml from one of the packaged teams."""

from __future__ import annotations

import os
import re
from typing import Annotated

import typer

from nbs_fleet.cli import output
from nbs_fleet.cli.lookup import meant
from nbs_fleet.errors import FleetError, UnknownNameError
from nbs_fleet.launch.files import write_atomic
from nbs_fleet.resources import data_dir, packaged

DEFAULT = "demo"
_END = ".yaml"


def templates() -> tuple[str, ...]:
    """The names of the packaged teams."""
    return tuple(name.removesuffix(_END) for name in packaged("teams", ends=(_END,)))


Target = Annotated[str, typer.Argument(metavar="FILE", help="where to write it")]
Template = Annotated[
    str,
    typer.Option("--template", "-t", metavar="T", help="which team to begin with", autocompletion=templates),
]
Force = Annotated[bool, typer.Option("--force", help="overwrite files that are there")]
ListThem = Annotated[bool, typer.Option("--list", help="list the templates and write nothing")]


def init(
    file: Target = "team.yaml", *, template: Template = DEFAULT, force: Force = False, list_them: ListThem = False
) -> None:
    """Write a first team file, ready to be edited. A file that is there is kept, unless --force is given.

    For example:
        nbs-fleet init
        nbs-fleet init teams/mine.yaml --template review
        nbs-fleet init --list
    """
    if list_them:
        output.table([(name, _purpose(name)) for name in templates()])
        return
    files = rendered(template, file)
    there = [path for path, text in files.items() if os.path.lexists(path) and not _is(path, text)]
    if there and not force:
        raise FleetError(f"already there: {', '.join(there)}", hint="name another file, or overwrite with --force")
    for path, text in files.items():
        _write(path, text)
    output.say(f"wrote {', '.join(files)}; next: nbs-fleet validate {file}, then nbs-fleet up {file}")


def rendered(template: str, file: str) -> dict[str, str]:
    """The files to write: path -> text. Raises UnknownNameError with the templates there are.

    The team file is fitted to its new place (its root, its paths, its own name in comments); the files it names
    beside the packaged one come with it.
    """
    folder = os.path.dirname(file)
    here = os.path.realpath(folder or ".")
    root = _root(here)
    text = _packaged(template)
    text = re.sub(r"^root: .*$", f"root: {os.path.relpath(root, here)}", text, flags=re.MULTILINE)
    text = text.replace(f"teams/{template}{_END}", file)
    files = {file: text}
    for name in sorted(set(re.findall(r"\bteams/([\w.-]+/[\w./-]*\w)", text))):
        beside = os.path.join(data_dir("teams"), name)
        if os.path.isfile(beside):
            files[os.path.join(folder, name)] = _read(beside)
            files[file] = files[file].replace(f"teams/{name}", os.path.relpath(os.path.join(here, name), root))
    return files


def _root(folder: str) -> str:
    """The nearest folder upwards with .nbs or .git, else this one: what a team file without `root` would take."""
    here = folder
    while not any(os.path.exists(os.path.join(here, name)) for name in (".nbs", ".git")):
        above = os.path.dirname(here)
        if above == here:
            return folder
        here = above
    return here


def _packaged(template: str) -> str:
    if template not in templates():
        names = templates()
        raise UnknownNameError(f'no template "{template}"{meant(template, names)}', hint=f"one of: {', '.join(names)}")
    return _read(os.path.join(data_dir("teams"), template + _END))


def _read(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read()


def _is(path: str, text: str) -> bool:
    """Whether the file holds just this text already."""
    try:
        return _read(path) == text
    except (OSError, UnicodeDecodeError):
        return False


def _write(path: str, text: str) -> None:
    try:
        os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    except OSError as error:
        raise FleetError(f"can't make the folder of {path}: {error.strerror}") from None
    write_atomic(path, text, mode=0o644)


def _purpose(name: str) -> str:
    """The first comment of a packaged team."""
    return next((line[2:] for line in _packaged(name).splitlines() if line.startswith("# ")), "")
