"""The text tmux reads and writes: quoting of command words, target names, and the lines of `list-panes`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from msgspec import Struct

_PLAIN = re.compile(r"[A-Za-z0-9_./:,=@+-]+")
_ESCAPES = str.maketrans(
    {"\\": "\\\\", '"': '\\"', "$": "\\$", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\x1b": "\\e", "~": "\\~"}
)
"""What has a meaning inside of quotes; a tilde at the beginning would become the home directory even there."""
_UNESCAPES = {"n": "\n", "r": "\r", "t": "\t", "e": "\x1b"}
_SESSION = re.compile(r"[A-Za-z0-9_-]+")
_PANE = re.compile(r"%\d+")
_CONTROLS = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


class Pane(Struct, frozen=True):
    """One pane as `list-panes` tells it.

    `handle` and `team` are the marks of our own panes, else empty. `dead`: its terminal is closed; `status` or
    `signal` say how it ended, both None while tmux does not know (it lives, or Debian's 3.3a missed the death:
    see `Tmux.nudge_sigchld`). `active`: the selected pane of its window.
    """

    id: str
    handle: str
    team: str
    window_id: str
    window: str
    pid: int
    dead: bool
    status: int | None
    signal: int | None
    title: str
    width: int
    height: int
    command: str
    in_mode: bool
    active: bool


_FIELDS = (
    "pane_id",
    "@nbs_handle",
    "@nbs_team",
    "window_id",
    "pane_pid",
    "pane_dead",
    "pane_dead_status",
    "pane_dead_signal",
    "pane_width",
    "pane_height",
    "pane_in_mode",
    "pane_active",
    "window_name",
    "pane_current_command",
    "pane_title",
)
PANE_FORMAT = " ".join(f"#{{q:{field}}}" for field in _FIELDS)
"""The format that `parse_panes` reads. `q:` puts a backslash before each blank in a value: an unescaped blank
separates. (A TAB would not do: tmux in a C locale, and 3.4 and later, print it as something else.)"""


def quote(word: str) -> str:
    """One word of a tmux command line, exactly as it is, whatever it holds but NUL.

    Raises ValueError for NUL, which no tmux command can carry.
    """
    if "\0" in word:
        raise ValueError("a tmux command can't hold NUL")
    if _PLAIN.fullmatch(word):
        return word
    return f'"{word.translate(_ESCAPES)}"'


def line(*words: str) -> str:
    """One tmux command as one line of text for `source-file` or a control client."""
    return " ".join(quote(word) for word in words)


def words(text: str) -> list[str]:
    """The words of a line made by `line`: its exact reverse (not a parser for people's own tmux.conf)."""
    found: list[str] = []
    for quoted, plain in re.findall(r'"((?:[^"\\]|\\.)*)"|([^\s"]+)', text, re.DOTALL):
        found.append(plain or re.sub(r"\\(.)", lambda m: _UNESCAPES.get(m[1], m[1]), quoted, flags=re.DOTALL))
    return found


def check_session(name: str) -> str:
    """`name` if tmux keeps it as it is. Raises ValueError: tmux turns dots and colons into `_`, and then lookups fail."""
    if not _SESSION.fullmatch(name):
        raise ValueError(f"not a session name: {name!r}")
    return name


def check_pane(pane: str) -> str:
    """`pane` if it is a pane id. Raises ValueError: everything else may mean another pane than was thought."""
    if not _PANE.fullmatch(pane):
        raise ValueError(f"not a pane id: {pane!r}")
    return pane


def session_target(name: str) -> str:
    """The session with exactly this name (a bare `-t te` would match `team`)."""
    return f"={check_session(name)}"


def window_target(session: str, window: str) -> str:
    """The window with exactly this name (letters, digits, `_`, `-`) in exactly this session."""
    return f"={check_session(session)}:={check_session(window)}"


def parse_panes(lines: Iterable[str]) -> tuple[Pane, ...]:
    """Panes from lines of PANE_FORMAT. Missing fields at the end count as empty; other lines are passed over."""
    return tuple(pane for text in lines if (pane := _parse_pane(text)))


def _parse_pane(text: str) -> Pane | None:
    fields = _split(text)
    if not _PANE.fullmatch(fields[0]):
        return None
    fields += [""] * (len(_FIELDS) - len(fields))
    named = dict(zip(_FIELDS, fields, strict=False))
    return Pane(
        id=named["pane_id"],
        handle=named["@nbs_handle"],
        team=named["@nbs_team"],
        window_id=named["window_id"],
        window=named["window_name"],
        pid=_number(named["pane_pid"]) or 0,
        dead=named["pane_dead"] == "1",
        status=_number(named["pane_dead_status"]),
        signal=_number(named["pane_dead_signal"]),
        title=named["pane_title"],
        width=_number(named["pane_width"]) or 0,
        height=_number(named["pane_height"]) or 0,
        command=named["pane_current_command"],
        in_mode=named["pane_in_mode"] not in ("", "0"),
        active=named["pane_active"] == "1",
    )


def _split(text: str) -> list[str]:
    fields = re.findall(r"((?:[^ \\]|\\.|\\$)*)(?: |$)", text)
    return [re.sub(r"\\(.)", r"\1", field) if "\\" in field else field for field in fields[: len(_FIELDS)]]


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdigit() else None


def rows(text: str) -> tuple[str, ...]:
    """The rows of a captured screen without trailing blanks; only a newline ends a row."""
    return trimmed(text.removesuffix("\n").split("\n"))


def trimmed(lines: Iterable[str]) -> tuple[str, ...]:
    """Rows without trailing blanks."""
    return tuple(row.rstrip(" ") for row in lines)


def pasteable(text: str) -> str:
    """`text` without what a terminal would obey: control characters other than newline and tab.

    An ESC could end a bracketed paste early; CR and CRLF become newlines, since a CR is the Enter key.
    """
    return _CONTROLS.sub("", text.replace("\r\n", "\n").replace("\r", "\n"))
