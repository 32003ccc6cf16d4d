"""Imported before all others, loads what asyncio, hashlib and msgspec are without the libraries they can do without.

OpenSSL is taken by asyncio for TLS and by hashlib for its speed, typing_extensions by msgspec, just because they are
there. The supervisor speaks to local sockets only, and hashes small files: they would be two of its megabytes, and 10 ms
of its start. Who asks for one of them later gets it as ever.
"""

from __future__ import annotations

import gc
import sys
from importlib.util import find_spec

_OWN_SHA = ("_sha256", "_sha2")
"""Python's own SHA-256, until 3.11 and since; some systems build Python without, and then it has to be OpenSSL's."""


def _load() -> None:
    spared = ["ssl", "typing_extensions", *(["_hashlib"] if any(map(find_spec, _OWN_SHA)) else [])]
    spared = [name for name in spared if name not in sys.modules]
    # None is what stands there for a module that can't be imported.
    gc.disable()
    sys.modules.update(dict.fromkeys(spared))  # type: ignore[arg-type]
    try:
        import asyncio  # noqa: F401, PLC0415
        import hmac  # noqa: F401, PLC0415 -- with hashlib

        import msgspec  # noqa: F401, PLC0415
    finally:
        # What was loaded stays: to look for garbage in it again and again is 10 ms of a start.
        gc.collect(0)
        gc.freeze()
        gc.enable()
        for name in spared:
            del sys.modules[name]


_load()
