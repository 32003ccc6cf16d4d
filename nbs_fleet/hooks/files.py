"""The programs that hooks run, as contents for the run directory's `bin/`."""

from __future__ import annotations

import marshal
import os
from functools import cache
from importlib.util import MAGIC_NUMBER

from nbs_fleet.hooks.front import COMPILED, FRONT, PROGRAM, front


@cache
def programs(python: str) -> dict[str, str | bytes]:
    """Content by file name: the shell front (to be executable), and the program it runs with the interpreter `python`.

    The program comes compiled as well, which spares each call some 4 ms; another Python release than this one
    can't read that, and takes the source.
    """
    with open(os.path.join(os.path.dirname(__file__), "program.py"), encoding="utf-8") as file:
        source = file.read()
    code = compile(source, PROGRAM, "exec", dont_inherit=True)
    # A file of compiled code: magic number, then flags, time and size of a source that nobody compares.
    compiled = MAGIC_NUMBER + bytes(12) + marshal.dumps(code)
    return {FRONT: front(python), PROGRAM: source, COMPILED: compiled}
