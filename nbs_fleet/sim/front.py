"""What a turn is given to work on, and what it needs of the program around it."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

from nbs_fleet.sim.dialogs import Answer, Dialog
from nbs_fleet.sim.kernel import Future

Json = dict[str, Any]


class Prompt(NamedTuple):
    """Something to answer. `kind`: prompt, mail, shell, or answer (the text is in the conversation already).

    `body` is what the model gets where that is not the text itself; `command` names the skill that it came from;
    `hook` says that a hook woke the model with it.
    """

    text: str
    source: str = "typed"
    kind: str = "prompt"
    shown: str | None = None
    body: str | None = None
    command: str | None = None
    at: float = 0.0
    hook: bool = False


class Shell(NamedTuple):
    """A command in the background; `output` is the file that takes what it prints."""

    id: str
    use_id: str
    description: str
    command: str
    output: str


class Front(Protocol):
    """What a turn needs of the program around it."""

    def ask(self, dialog: Dialog) -> Future[Answer]: ...

    def withdraw(self) -> None: ...

    def hand_over(self) -> list[Prompt]: ...

    def started_shell(self, shell: Shell) -> None: ...

    def background(self) -> list[Json]: ...

    def refresh(self) -> None: ...
