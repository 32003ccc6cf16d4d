"""Keys of the team file that describe a client nobody wrote a driver for: what its screen says, how it is typed to."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from nbs_fleet.spec.fields import NUMBER, WORD, Argument, Duration, KeyName, Pattern
from nbs_fleet.spec.section import Strict, key


class AskedFile(Strict):
    """Rows by which a client asks a person something, one pattern for each kind of question."""

    trust: Pattern | None = key("Whether the folder is trusted", default="none", example="Trust this folder")
    setup: Pattern | None = key("First-run setup", default="none", example="^Choose a theme")
    login: Pattern | None = key("Login", default="none", example="log in")
    plan: Pattern | None = key("A plan that is ready", default="none", example="^Proceed with this plan")
    permission: Pattern | None = key("Use of a tool", default="none", example=r"\[y/N\]")
    question: Pattern | None = key("A question of the agent", default="none", example=r"^\? ")


class ClientFile(Strict):
    """What a client of `driver: generic` looks like. Patterns are Python's regular expressions, for one row."""

    ready: Pattern | None = key(
        "What stands before the input while it waits for some; without it nothing is ready",
        default="required",
        example="^> ",
    )
    busy: Pattern | None = key("A row that says that it works", default="none", example="^Thinking")
    blocked: AskedFile | None = key(
        "Rows that ask a person something", default="none", example={"permission": r"\[y/N\]"}
    )
    otherwise: Annotated[Literal["unknown", "busy"], WORD] | None = key(
        "What it is when none of these is found", example="busy"
    )
    placeholder: Pattern | None = key("What its empty input shows", default="none", example="^Type a message")
    rows: Annotated[int, Field(ge=1, le=50), NUMBER] | None = key(
        "How many rows at the end of the screen are looked at, blank ones aside", example=3
    )
    submit_gap: Duration | None = key("Wait between a text and its Enter", example="300ms")
    prompt_args: list[Argument] | None = key(
        "Arguments before the first prompt, which comes last", default="it is typed", example=["--prompt"]
    )
    model_args: list[Argument] | None = key("Arguments before the model", example=["--model"])
    auto_approve: list[Argument] | None = key(
        "Arguments for `permission_mode: bypassPermissions`", default="none", example=["--yes"]
    )
    yes_keys: list[KeyName] | None = key(
        "Keys that answer a question with yes, by their tmux names", default="a person answers", example=["y", "Enter"]
    )
    no_keys: list[KeyName] | None = key("Keys that answer it with no", default="a person answers", example=["Escape"])
