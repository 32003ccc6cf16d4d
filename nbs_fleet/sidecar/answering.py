"""Answers a dialog for a person: only the very dialog they saw, by its own keys, and only once it is seen to be gone."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from nbs_fleet.drivers.base import Dialog, Driver, Reading
from nbs_fleet.errors import FleetError
from nbs_fleet.model import BlockedKind
from nbs_fleet.sidecar.looking import until
from nbs_fleet.spec.team import Dialogs

APPROVE, DENY = "approve", "deny"
CHANGED = "the dialog is not there any more, or another one took its place; nothing was pressed"
STRAYED = "its cursor did not go to that line, so nothing was chosen; look at the pane"
GONE_SECONDS = 5.0
"""How long an answered dialog may stay on the screen."""
SEEN_SECONDS = 2.0
"""How long a key or a text may take until the dialog shows it."""
TYPED = re.compile(r"^(Type something|Tell Claude what to change)")
"""Lines that take a text: their digit moves there, the text follows, Enter ends it (Claude Code 2.1.197)."""
ESCAPED = (BlockedKind.PLAN, BlockedKind.QUESTION, BlockedKind.PERMISSION)
"""Dialogs that Escape refuses where no line does."""


class Wish(Struct, frozen=True):
    """What a person wants of the dialog `mark`.

    `choice`: an option's key, its label or the label's beginning, `approve` or `deny`. `text`: for a line that takes one.
    """

    mark: str
    choice: str
    text: str = ""


class Hand(Struct, frozen=True):
    """How a dialog is answered: `keys`; where `line` is one that takes a text, that and Enter follow there."""

    keys: tuple[str, ...]
    line: int | None = None


class Desk(Protocol):
    """The pane, held while it is answered."""

    async def read(self) -> Reading:
        """A fresh look."""
        ...

    async def press(self, *keys: str) -> None:
        """Press keys by their tmux names."""
        ...

    async def write(self, text: str) -> None:
        """Put text where the cursor is."""
        ...


def hand(dialog: Dialog, wish: Wish, driver: Driver) -> Hand | str:
    """How the wish is carried out, or why it can't be."""
    if wish.choice in (APPROVE, DENY):
        policy = replace(Dialogs(), **{dialog.kind.value: "accept" if wish.choice == APPROVE else "deny"})
        keys = driver.answer(dialog, policy)
        if keys is None and wish.choice == DENY and dialog.kind in ESCAPED:
            keys = ("Escape",)
        return Hand(keys) if keys else f"no line of it says {wish.choice}; {_choices(dialog)}"
    index = find(dialog.keyed(), wish.choice)
    if index is None:
        return f'"{wish.choice}" is none of its options; {_choices(dialog)}'
    keys = driver.pick(dialog, index)
    if keys is None:
        return "its cursor can't be seen; attach to the pane"
    types = bool(TYPED.match(dialog.options[index].label))
    if types and not wish.text.strip():
        return f'"{dialog.options[index].label}" takes a text: -m TEXT'
    return Hand(keys, index if types else None)


def find(options: Sequence[tuple[str, str]], choice: str) -> int | None:
    """The index of the option (key, label) with this key, this label, or the only one whose label begins so."""
    word = choice.strip().casefold()
    keys = [key for key, _ in options]
    labels = [label.casefold() for _, label in options]
    if word in keys:
        return keys.index(word)
    if word in labels:
        return labels.index(word)
    begin = [n for n, label in enumerate(labels) if word and label.startswith(word)]
    return begin[0] if len(begin) == 1 else None


async def answer(wish: Wish, driver: Driver, desk: Desk) -> str:
    """Answer the dialog `wish.mark` if that is what is open right now; returns why it was not answered, or nothing."""
    dialog = (await desk.read()).dialog
    if dialog is None or dialog.mark != wish.mark:
        return CHANGED
    how = hand(dialog, wish, driver)
    if isinstance(how, str):
        return how
    try:
        if how.line is None:
            problem = await press(dialog, how.keys, desk)
        else:
            problem = await _type(dialog, how.keys, how.line, wish.text, desk)
        return problem or await _gone(dialog.mark, desk)
    except FleetError as error:
        return error.message


async def press(dialog: Dialog, keys: tuple[str, ...], desk: Desk) -> str:
    """Press the keys that choose a line; after arrows, Enter only once the cursor is seen where they lead.

    A dialog that has just opened may drop a key (Claude Code 2.1.197, measured), and Enter on another line is another
    answer. Returns why it was not chosen, or nothing.
    """
    if dialog.cursor is None or len(keys) < 2 or keys[-1] != "Enter":
        await desk.press(*keys)
        return ""
    line = dialog.cursor + keys.count("Down") - keys.count("Up")
    await desk.press(*keys[:-1])
    if not await _shows(desk, lambda found: _is_at(found, dialog, line)):
        return STRAYED
    await desk.press("Enter")
    return ""


async def _type(dialog: Dialog, keys: tuple[str, ...], line: int, text: str, desk: Desk) -> str:
    """Go to the line, put the text there, confirm; each step only once the one before it is seen.

    Returns why it was not confirmed, or nothing.
    """
    at_line = False
    for _ in range(2 if all(key.isdigit() for key in keys) else 1):
        if not at_line:
            await desk.press(*keys)
            at_line = await _shows(desk, lambda found: _is_at(found, dialog, line))
    if not at_line:
        return STRAYED
    await desk.write(text)
    if not await _shows(desk, lambda found: _is_at(found, dialog, line) and not TYPED.match(found.options[line].label)):
        return "the text does not show on that line, so it was not confirmed; look at the pane"
    await desk.press("Enter")
    return ""


def _is_at(found: Dialog, dialog: Dialog, line: int) -> bool:
    return found.kind is dialog.kind and found.cursor == line


async def _shows(desk: Desk, holds: Callable[[Dialog], bool]) -> bool:
    async def look() -> bool:
        dialog = (await desk.read()).dialog
        return dialog is not None and holds(dialog)

    return await until(look, SEEN_SECONDS)


async def _gone(mark: str, desk: Desk) -> str:
    """Wait until another screen is there; what an agent does next is no business of the answer."""

    async def left() -> bool:
        dialog = (await desk.read()).dialog
        return dialog is None or dialog.mark != mark

    if await until(left, GONE_SECONDS):
        return ""
    return f"the keys were pressed, but after {GONE_SECONDS:g} s it is still there; look at the pane"


def _choices(dialog: Dialog) -> str:
    said = ", ".join(f"{key} {label}" for key, label in dialog.keyed())
    return f"it offers: {said}" if said else "attach to the pane"
