"""Command lines are parsed by typer: one group of all commands, each imported only when it is the one that is meant."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any, cast

import typer
import typer.completion
import typer.main
from typer.core import TyperCommand, TyperGroup

from nbs_fleet.cli.app import ALIASES, COMMANDS, COMPLETE, GROUPS, PROGRAM, Entry, load
from nbs_fleet.errors import UsageError

SETTINGS: dict[str, Any] = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
END = f"{PROGRAM} COMMAND --help says more; {PROGRAM} --version says which version this is."


def execute(argv: list[str]) -> int:
    """Run one command line and return the exit code; raises UsageError and what the command raises."""
    group = program()
    try:
        with group.make_context(PROGRAM, argv) as context:
            return group.invoke(context) or 0
    except typer.Exit as end:
        return end.exit_code
    except typer.TyperException as error:
        place = getattr(error, "ctx", None)
        raise refusal(error, place.command_path if place else PROGRAM) from None


def complete() -> int:
    """Answer the shell's completion script, which asks in the environment; returns the exit code."""
    typer.completion.completion_init()  # type: ignore[attr-defined]  # typer.Typer() does it in the same way
    try:
        program().main([], prog_name=PROGRAM, complete_var=COMPLETE)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 0
    return 1


def script(shell: str) -> str:
    """The completion script of a shell."""
    made: str = typer.completion.get_completion_script(  # type: ignore[attr-defined]
        prog_name=PROGRAM, complete_var=COMPLETE, shell=shell
    )
    return made


def program() -> TyperGroup:
    """All commands; their modules are not imported yet."""
    root = _group(PROGRAM, "Launch teams of coding agents in tmux, and look after them.", END)
    groups: dict[str, TyperGroup] = {}
    names = {name: name for name in COMMANDS} | ALIASES
    for name, meant in names.items():
        first, _, second = name.partition(" ")
        if second and first not in groups:
            groups[first] = _group(first, GROUPS[first])
            root.add_command(groups[first], first)
        home = groups[first] if second else root
        home.add_command(_Lazy(meant, COMMANDS[meant], hidden=name in ALIASES), second or first)
    return root


def _group(name: str, about: str, end: str | None = None) -> TyperGroup:
    return TyperGroup(
        name=name, help=about, epilog=end, options_metavar="", rich_markup_mode=None, context_settings=dict(SETTINGS)
    )


class _Lazy(TyperCommand):
    """A command of the table; asked for its context, it becomes the command that its module declares."""

    def __init__(self, meant: str, entry: Entry, *, hidden: bool) -> None:
        super().__init__(meant, help=entry.summary, short_help=entry.summary, hidden=hidden, rich_markup_mode=None)
        self._meant = meant

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        try:
            return command(self._meant).make_context(info_name, args, parent, **extra)
        except typer.TyperException as error:
            raise refusal(error, f"{parent.command_path} {info_name}") from None


def command(name: str) -> TyperCommand:
    """A command of the table; imports its module."""
    entry = COMMANDS[name]
    if entry.raw:
        settings: dict[str, Any] = SETTINGS | {"ignore_unknown_options": True, "allow_extra_args": True}
        return TyperCommand(name, help=entry.summary, context_settings=settings, rich_markup_mode=None)
    return declared(name, load(entry.target))


def declared(name: str, function: Callable[..., Any]) -> TyperCommand:
    """The command that the signature and the docstring of a function declare."""
    about, examples = described(function)
    # The mark keeps the lines as they are.
    end = "\n".join(("\b", "example:" if len(examples) == 1 else "examples:", *(f"  {line}" for line in examples)))
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command(name, help=about, epilog=end, context_settings=dict(SETTINGS))(function)
    return cast("TyperCommand", typer.main.get_command(app))


def described(function: Callable[..., Any]) -> tuple[str, tuple[str, ...]]:
    """What the docstring of a command says, and its examples."""
    about, examples, *_ = [*re.split(r"\nFor example:\n", inspect.cleandoc(function.__doc__ or "")), ""]
    return about.strip(), tuple(line.strip() for line in examples.splitlines() if line.strip())


def refusal(error: typer.TyperException, place: str) -> UsageError:
    """Typer's refusal in our form: the command that refuses, why, where to read on."""
    near = getattr(error, "possibilities", None)
    why = f"{error.message}; did you mean {near[0]}?" if near else error.format_message().rstrip(".")
    return UsageError(f"{place}: {why[:1].lower()}{why[1:]}", hint=f"see {place} --help")
