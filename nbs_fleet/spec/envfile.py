"""Reads files of secret variables: KEY=VALUE lines, only from a file that nobody else can read."""

from __future__ import annotations

import os
import re
import stat

from nbs_fleet.errors import TeamFileError
from nbs_fleet.spec.problems import printable

VARIABLE = r"[A-Za-z_][A-Za-z0-9_]*"

OURS = ("NBS_HANDLE", "NBS_ROOT", "NBS_TEAM", "NBS_FLEET_RUN", "NBS_PANE", "TMUX", "TMUX_PANE")
"""Variables that nbs-fleet or tmux sets in each pane; nobody else can."""

MAX_BYTES = 1024 * 1024

_LINE = re.compile(rf"\s*(?:export\s+)?({VARIABLE})\s*=(.*)", re.DOTALL)
_DOUBLE = re.compile(r'"((?:[^"\\]|\\.)*)"\s*(#.*)?')
_SINGLE = re.compile(r"'([^']*)'\s*(#.*)?")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", '"': '"', "\\": "\\", "$": "$"}


class RefusedError(Exception):
    """Why the file is not used."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def parse(text: str, shown: str = "env_file") -> dict[str, str]:
    r"""Variables of `KEY=VALUE` lines; TeamFileError names each faulty line by number, never by content.

    Empty lines and lines that begin with `#` are skipped, `export` is allowed. A value is taken to the end of the
    line, blanks around it removed; in double quotes \n, \t, \r, \", \\ and \$ are escapes, in single quotes
    nothing is. Nothing is expanded.
    """
    values: dict[str, str] = {}
    faults: list[str] = []
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text.removeprefix("\ufeff")), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        fault = _line(line, values)
        if fault:
            faults.append(f"{printable(shown, limit=4096)}:{number}: {fault}")
    if faults:
        raise TeamFileError(tuple(faults))
    return values


def read(path: str, shown: str | None = None) -> dict[str, str]:
    """Variables of a regular UTF-8 file that is ours and closed to others; TeamFileError says why it is refused."""
    name = shown or path
    try:
        text = read_private(path)
    except RefusedError as error:
        raise TeamFileError((f"{printable(name, limit=4096)}: {error.why}",)) from None
    return parse(text, name)


def read_private(path: str) -> str:
    """Text of the file; RefusedError unless it is regular, ours, mode 0600 or stricter, UTF-8 and at most 1 MiB."""
    try:
        _check(os.stat(path))
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise RefusedError("no such file; create it with mode 0600 or remove the key") from None
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else "bad path"
        raise RefusedError(f"can't be read ({reason.lower()}); check its owner and mode") from None
    with open(fd, "rb") as stream:
        _check(os.fstat(fd))
        data = stream.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise RefusedError(f"is larger than {MAX_BYTES} bytes; it should hold a few lines")
    if b"\0" in data:
        raise RefusedError("holds a NUL byte; it must be text")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        raise RefusedError("is not UTF-8; save it as UTF-8") from None


def _check(info: os.stat_result) -> None:
    if not stat.S_ISREG(info.st_mode):
        raise RefusedError("is not a regular file; it must be one")
    if info.st_uid != os.geteuid():
        raise RefusedError("belongs to another user; it must be yours")
    mode = stat.S_IMODE(info.st_mode)
    if mode & 0o077:
        raise RefusedError(f"has mode {mode:04o}, so others can read it; run chmod 600 on it")


def _line(line: str, values: dict[str, str]) -> str | None:
    """Add the variable of one line, or say what is wrong with the line."""
    found = _LINE.fullmatch(line)
    if not found:
        return "is not KEY=VALUE; comments begin with #"
    name, rest = found.group(1), found.group(2).strip()
    if name in values:
        return f"{name} is set twice; keep one"
    if name in OURS:
        return f"{name} is set by nbs-fleet in each pane; remove it"
    if rest[:1] in ("'", '"'):
        shape = _SINGLE if rest[0] == "'" else _DOUBLE
        inside = shape.fullmatch(rest)
        if not inside:
            return f"the value of {name} has a quote that does not end the line; close it, or quote the whole value"
        rest = inside.group(1)
        if shape is _DOUBLE:
            rest = re.sub(r"\\(.)", lambda m: _ESCAPES.get(m.group(1), m.group()), rest)
    values[name] = rest
    return None


def looks_secret(name: str) -> bool:
    """Whether a variable of that name probably holds a secret."""
    return any(word in name.upper() for word in ("KEY", "TOKEN", "SECRET", "PASS"))
