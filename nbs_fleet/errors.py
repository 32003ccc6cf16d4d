"""The errors a person sees: what is wrong, what would be right, and the exit code."""

from __future__ import annotations

from typing import ClassVar


class FleetError(Exception):
    """What failed, plus one line on how to mend it.

    `message` may have several lines (one per problem); `hint` is printed after them.
    The command line prints both and exits with `exit_code`; nothing else catches it.
    """

    exit_code: ClassVar[int] = 1

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class TeamFileError(FleetError):
    """The team file can't be used as written; `problems` has one `file:line:col: ...` line each."""

    exit_code = 2

    def __init__(self, problems: tuple[str, ...], *, hint: str | None = None) -> None:
        super().__init__("\n".join(problems), hint=hint)
        self.problems = problems


class UsageError(FleetError):
    """The command was called in a way that can't work."""

    exit_code = 2


class MissingError(FleetError):
    """Something that must be on this machine is not (a program, a version, a right)."""

    exit_code = 3


class UnknownNameError(FleetError):
    """No such team, handle, chat or item."""

    exit_code = 4


class NotReadyError(FleetError):
    """Some agents did not become ready."""

    exit_code = 5


class TimedOutError(FleetError):
    """The time that was given ran out first."""

    exit_code = 124


class TmuxError(FleetError):
    """A tmux command failed; the message names the sub-command."""
