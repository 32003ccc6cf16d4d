"""What happens when the program itself is at fault: a crash file, and two lines that say where it is."""

from __future__ import annotations

import os
import sys
import time
import traceback

from nbs_fleet import __version__
from nbs_fleet.cli import output
from nbs_fleet.launch.rundir import state_home

KEPT = 10


def report(error: BaseException, argv: list[str]) -> None:
    """Write the crash file and tell the person; shows no traceback."""
    what = f"{type(error).__name__}: {error}".splitlines()[0]
    try:
        path = _write(error, argv)
    except OSError as trouble:
        output.error(f"this is a bug in nbs-fleet: {what}", f"no crash file could be written: {trouble}")
        return
    output.error(f"this is a bug in nbs-fleet: {what}", f"please report it with {path}")


def _write(error: BaseException, argv: list[str]) -> str:
    folder = os.path.join(state_home(os.environ), "crashes")
    for made in (state_home(os.environ), folder):  # makedirs gives its mode to the last folder only
        os.makedirs(made, mode=0o700, exist_ok=True)
    path = os.path.join(folder, f"{time.strftime('%Y%m%dT%H%M%S')}-{os.getpid()}.txt")
    head = f"nbs-fleet {__version__}, Python {sys.version.split()[0]}, {sys.platform}\ncommand: {argv[:1]}\n\n"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
        file.write(head + "".join(traceback.format_exception(error)))
    for old in sorted(os.listdir(folder))[:-KEPT]:
        os.unlink(os.path.join(folder, old))
    return path
