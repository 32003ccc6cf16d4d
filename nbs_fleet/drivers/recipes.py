"""How a client is typed to, and how a message is put into its own inbox; values that the launch stage acts on."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

TEXT = "$TEXT"
"""Stands for a message's text in an argv, a line or a body: a value that is exactly this is replaced, byte for byte."""


class Submit(Struct, frozen=True):
    """How text gets from the input box to the client: the box shows it, a pause of `gap` seconds, then Enter.

    Codex takes an Enter within some 20 ms of the text for a line's end, Gemini within 50 ms (measured).
    `placeholder` is a regular expression of what the box shows in place of a long paste.
    A text that ends in a word with `@` gets a blank for every client: it prevents the completion of a file's name.
    """

    gap: float = 0.3
    placeholder: str | None = None
    ascii: bool = False
    """Its input box takes nothing else, so other characters become `?`."""
    emptied: bool = False
    """Nothing but the screen tells that a text arrived: our text stood in the input, and is gone after Enter."""
    echo: bool = True
    """The driver's `read_screen` tells what is in the box, as `draft`; without that Enter is pressed unseen."""


class MailFolder(Struct, frozen=True, tag=True):
    """The agent's own `mail/`, which a hook of the client watches (Claude Code)."""


class Command(Struct, frozen=True, tag=True):
    """A program that puts one message into a live session: exit 0 means that the client has it.

    One word of `argv` is TEXT. It runs with the agent's environment and `env`.
    """

    argv: tuple[str, ...]
    env: dict[str, str] = {}
    keeps: str | None = None
    """The session for which the client keeps the message, also beyond its own end; None: it goes with the client."""


class Lines(Struct, frozen=True, tag=True):
    """A file that the client reads to its end and goes on reading: one JSON line per message.

    `line` is that line's value, with TEXT in it. `path` is absolute and below the agent's own folder; it must be
    there before the client starts, which `Launch.files` sees to.
    """

    path: str
    line: dict[str, Any]


class Request(Struct, frozen=True, tag=True):
    """An HTTP POST to the client's own server on loopback: any 2xx means that the client has it.

    `body` is its JSON, with TEXT in it. `user` and the value of the agent's variable `password_env` sign it.
    """

    url: str
    body: dict[str, Any]
    user: str | None = None
    password_env: str | None = None


Inbox = MailFolder | Command | Lines | Request


def filled(value: Any, words: dict[str, str]) -> Any:
    """`value` with each string that is one of `words` replaced, at any depth; keys are left alone."""
    if isinstance(value, str):
        return words.get(value, value)
    if isinstance(value, dict):
        return {key: filled(item, words) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(filled(item, words) for item in value)
    return value
