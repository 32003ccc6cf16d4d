"""Reads a file that should be text: refuses what is not, never blocks, never reads without a bound."""

from __future__ import annotations

import codecs
import errno
import os
import re
import stat

from nbs_fleet.spec.problems import closest, quoted

MAX_BYTES = 1024 * 1024

_UNPRINTABLE = re.compile("[\\x00-\\x08\\x0b\\x0c\\x0e-\\x1f\\x7f-\\x84\\x86-\\x9f]|[\\ufffe\\uffff]")
"""What YAML forbids in a text, halves of surrogate pairs aside, which no UTF-8 holds."""


class UnreadableError(Exception):
    """Why a file can't be used; `line` and `col` (from 1) where the fault lies inside it."""

    def __init__(self, why: str, line: int = 0, col: int = 0) -> None:
        super().__init__(why)
        self.why = why
        self.line = line
        self.col = col


def read_text(path: str) -> tuple[str, bytes]:
    """Text (without a byte order mark) and bytes of a regular UTF-8 file of at most MAX_BYTES; else UnreadableError."""
    data = _read_bytes(path)
    body = data.removeprefix(codecs.BOM_UTF8)
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise UnreadableError("is UTF-16; save it as UTF-8", 1, 1)
    if b"\0" in body:
        line, col = _place(body[: body.index(b"\0")].decode("utf-8", "replace"))
        raise UnreadableError("a NUL byte; this is not a text file", line, col)
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as error:
        line, col = _place(body[: error.start].decode("utf-8"))
        raise UnreadableError(
            f"byte 0x{body[error.start]:02x} is not UTF-8; save the file as UTF-8", line, col
        ) from None
    found = _UNPRINTABLE.search(text)
    if found:
        line, col = _place(text[: found.start()])
        raise UnreadableError(f"the control character U+{ord(found.group()):04X}; remove it", line, col)
    return text, data


def _read_bytes(path: str) -> bytes:
    try:
        _check_kind(path, os.stat(path))
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (OSError, ValueError) as error:
        raise UnreadableError(_reason(path, error)) from None
    with open(fd, "rb") as stream:
        _check_kind(path, os.fstat(fd))
        try:
            data = stream.read(MAX_BYTES + 1)
        except OSError as error:
            raise UnreadableError(_reason(path, error)) from None
    if len(data) > MAX_BYTES:
        raise UnreadableError(f"is larger than {MAX_BYTES} bytes; a team file is a few kB")
    return data


def _check_kind(path: str, info: os.stat_result) -> None:
    if stat.S_ISDIR(info.st_mode):
        inside = _yaml_files(path)
        raise UnreadableError("is a directory; name a file" + (f" in it, such as {inside[0]}" if inside else ""))
    if not stat.S_ISREG(info.st_mode):
        raise UnreadableError("is not a regular file; a team file can't be a pipe, device or socket")
    if info.st_size > MAX_BYTES:
        raise UnreadableError(f"is larger than {MAX_BYTES} bytes; a team file is a few kB")


def _reason(path: str, error: OSError | ValueError) -> str:
    if isinstance(error, ValueError) or error.errno in (errno.ENOENT, errno.ENOTDIR):
        near = closest(os.path.basename(path), _yaml_files(os.path.dirname(path) or "."))
        return f"no such file; did you mean {quoted(near)}?" if near else "no such file; check the path"
    if error.errno in (errno.EACCES, errno.EPERM):
        return "can't be read (permission denied); check its owner and mode"
    return f"can't be read ({(error.strerror or 'error').lower()}); check the path"


def _yaml_files(folder: str) -> list[str]:
    try:
        return sorted(n for n in os.listdir(folder) if n.endswith((".yaml", ".yml")) and not n.startswith("."))[:100]
    except (OSError, ValueError):
        return []


def _place(before: str) -> tuple[int, int]:
    """Line and column (from 1) right after `before`."""
    lines = before.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return len(lines), len(lines[-1]) + 1
