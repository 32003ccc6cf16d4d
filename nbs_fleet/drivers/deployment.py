"""What a client's start needs in files that are not ours: values, put in and taken out by the launch stage."""

from __future__ import annotations

from typing import Any, Literal

from msgspec import Struct

Format = Literal["json", "toml", "yaml"]
"""`json` also reads comments and commas at the end, and leaves them in place."""


class SetKey(Struct, frozen=True, tag=True):
    """A key that must have a value. `path` are the keys from the top; what is on the way is made if missing.

    One that a person has set already stays theirs: `theirs` says that this is good enough, else it is replaced for
    as long as the team is up, and put back.
    """

    path: tuple[str, ...]
    value: Any
    theirs: bool = False


class AddItem(Struct, frozen=True, tag=True):
    """An element that a list must hold, beside those that are there. `path` leads to the list."""

    path: tuple[str, ...]
    value: Any


Change = SetKey | AddItem


class Edit(Struct, frozen=True, tag=True):
    """Changes of one settings file of the person or the project. `path` is absolute.

    A file that is not there is made, and removed again if nothing else has got into it.
    """

    path: str
    format: Format
    changes: tuple[Change, ...]


class NewFile(Struct, frozen=True, tag=True):
    """A whole file of ours in a folder that is not ours; refused if another one stands there."""

    path: str
    text: str
    mode: int = 0o600


class Link(Struct, frozen=True, tag=True):
    """A symbolic link of ours in a folder that is not ours, to a folder of the run directory.

    Refused if something else stands there, unless that says the same.
    """

    path: str
    target: str


Deployment = Edit | NewFile | Link


class EditError(ValueError):
    """The file can't be changed so that it says what it should; a person must do it."""


class Fragment(Struct, frozen=True):
    """One piece of text that was put in. `was`: the text that stood in its place; `before`: what precedes it."""

    text: str
    before: str = ""
    was: str = ""
