"""What the screens of most text clients have in common: rows, paragraphs, drawn panels, numbered lines to choose from."""

from __future__ import annotations

import re

from msgspec import Struct

from nbs_fleet.drivers.base import Dialog, Option, Reading, Screen
from nbs_fleet.model import AgentState, BlockedKind

CURSORS = "❯›●>"
"""The marks that stand before the line a client's cursor is on."""
SPINNER = "[\u2800-\u28ff]"
"""A moving mark made of Braille dots."""
_LINE = re.compile(rf"^(?P<lead>\s*(?P<cursor>[{CURSORS}]\s+)?)(?P<key>\d{{1,2}})\.\s+(?P<label>\S.*)$")
_OPEN, _SIDE, _CLOSE = "╭", "│", "╰"


class Choice(Struct, frozen=True):
    """Numbered lines with a cursor on one of them; `above` is the text before them, `below` what follows."""

    above: tuple[str, ...]
    options: tuple[Option, ...]
    cursor: int
    below: tuple[str, ...]

    @property
    def question(self) -> str:
        """The text above as one line."""
        return fold(self.above)

    def has(self, label: str) -> bool:
        """Whether one of the lines begins with this pattern."""
        return any(re.match(label, option.label) for option in self.options)

    def dialog(self, kind: BlockedKind) -> Dialog:
        """The dialog as the fleet knows it."""
        text = "\n".join(row.strip() for row in self.above).strip()
        return Dialog(kind, re.sub(r"\n{3,}", "\n\n", text), self.options, self.cursor)


def trim(screen: Screen) -> tuple[str, ...]:
    """The rows without blanks at their ends and without blank rows at the bottom."""
    rows = [row.rstrip() for row in screen.rows]
    while rows and not rows[-1]:
        rows.pop()
    return tuple(rows)


def fold(rows: tuple[str, ...]) -> str:
    """The rows as one line, runs of blanks folded to one."""
    return " ".join(" ".join(rows).split())


def last_paragraph(rows: tuple[str, ...]) -> tuple[str, ...]:
    """The last rows that no blank one divides."""
    end = len(rows)
    while end and not rows[end - 1].strip():
        end -= 1
    start = end
    while start and rows[start - 1].strip():
        start -= 1
    return rows[start:end]


def panel(rows: tuple[str, ...]) -> tuple[tuple[str, ...], tuple[str, ...]] | None:
    """The inside of the lowest panel and the rows below it; None if there is none.

    Panels inside it stay as they are; a low pane may have scrolled its upper edge away.
    """
    end = next((i for i in range(len(rows) - 1, -1, -1) if rows[i].lstrip().startswith(_CLOSE)), None)
    if end is None:
        return None
    column = len(rows[end]) - len(rows[end].lstrip())
    start = end
    while start and rows[start - 1][column : column + 1] == _SIDE and not rows[start - 1][:column].strip():
        start -= 1
    if start == end or (start and rows[start - 1][column : column + 1] != _OPEN):
        return None
    inside = tuple(row[column + 1 :].rstrip().removesuffix(_SIDE).rstrip() for row in rows[start:end])
    return inside, rows[end + 1 :]


def numbered(rows: tuple[str, ...], *, keyed: bool) -> Choice | None:
    """The last list of lines numbered 1, 2, .. of which the cursor marks one; None if there is none.

    `keyed`: the client takes a line's digit at once. Labels that a narrow pane broke are put together again.
    """
    picked: list[tuple[int, re.Match[str]]] = []
    for index in range(len(rows) - 1, -1, -1):
        match = _LINE.match(rows[index])
        if match is None:
            continue
        if picked and int(match["key"]) != int(picked[-1][1]["key"]) - 1:
            break
        picked.append((index, match))
        if match["key"] == "1":
            break
    picked.reverse()
    marked = [number for number, (_, match) in enumerate(picked) if match["cursor"]]
    if not picked or picked[0][1]["key"] != "1" or len(marked) != 1:
        return None
    options, end = [], 0
    for index, match in picked:
        label, end = _whole(rows, index, match)
        options.append(Option(label, match["key"] if keyed else None))
    return Choice(rows[: picked[0][0]], tuple(options), marked[0], rows[end:])


def _whole(rows: tuple[str, ...], index: int, match: re.Match[str]) -> tuple[str, int]:
    """A line's label with the rows it goes on in, and the row after it."""
    label, column, end = match["label"].strip(), len(match["lead"]) + 3, index + 1
    while end < len(rows):
        bare = rows[end].strip()
        if not bare or len(rows[end]) - len(rows[end].lstrip()) < column or _LINE.match(rows[end]):
            break
        label = f"{label} {bare}"
        end += 1
    return label, end


def blocked(dialog: Dialog) -> Reading:
    """The reading of an open dialog."""
    return Reading(AgentState.BLOCKED, detail=dialog.kind.value, blocked=dialog.kind, dialog=dialog)


def draft(text: str) -> Reading:
    """The reading of an input box that holds text nobody has sent."""
    return Reading(AgentState.BLOCKED, detail="text in the input box", blocked=BlockedKind.DRAFT, draft=text)
