"""Imported before all others, loads what asyncio, hashlib and msgspec are without the libraries they can do without.

OpenSSL is taken by asyncio for TLS and by hashlib for its speed, typing_extensions by msgspec, just because they are
there. The supervisor speaks to local sockets only, and hashes small files: they would be two of its megabytes, and 10 ms
of its start. Others are imported for what is hardly ever called (`inspect` with Python's own parser by asyncio, archives
by ctypes): another megabyte and a half. They are read at their first use.
Who asks for one of them later gets it as ever.
"""

from __future__ import annotations

import gc
import sys
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import find_spec, module_from_spec
from threading import RLock
from types import ModuleType
from typing import Any

_OWN_SHA = ("_sha256", "_sha2")
"""Python's own SHA-256, until 3.11 and since; some systems build Python without, and then it has to be OpenSSL's."""
_LATER = (
    *("inspect", "locale", "tokenize", "textwrap", "shutil", "tempfile"),
    *("asyncio.sslproto", "msgspec.inspect"),
)
_LOADING = RLock()
_BEGUN: set[str] = set()
"""Those whose code was run, or is just running."""


class _Later(ModuleType):
    """A module whose code is run when something in it is first asked for.

    importlib's own LazyLoader runs it as soon as a second module imports it.
    """

    def __getattr__(self, name: str) -> Any:
        # The import system looks for these.
        if name.startswith("__") and name.endswith("__"):
            raise AttributeError(name)
        with _LOADING:
            spec = self.__spec__
            if self.__name__ not in _BEGUN and spec is not None and spec.loader is not None:
                _BEGUN.add(self.__name__)
                spec.loader.exec_module(self)
                self.__class__ = ModuleType  # type: ignore[assignment]  # it is one without this method
        if type(self) is _Later:
            # It asks for something of its own that it has not come to yet.
            raise AttributeError(f"{self.__name__} has no {name} yet")
        return getattr(self, name)


def _find(name: str) -> ModuleSpec | None:
    """Where a module is; the package that it is in is not imported."""
    package = name.rpartition(".")[0]
    above = find_spec(package) if package else None
    return PathFinder.find_spec(name, above.submodule_search_locations) if above else find_spec(name)


def _put_off(name: str) -> None:
    spec = None if name in sys.modules else _find(name)
    if spec is not None:
        module = module_from_spec(spec)
        module.__class__ = _Later
        sys.modules[name] = module


def _make_known(name: str) -> None:
    """As after any import: a package has its modules."""
    package, _, own = name.rpartition(".")
    if package and name in sys.modules:
        setattr(sys.modules[package], own, sys.modules[name])


def _load() -> None:
    spared = ["ssl", "typing_extensions", *(["_hashlib"] if any(map(find_spec, _OWN_SHA)) else [])]
    spared = [name for name in spared if name not in sys.modules]
    # None is what stands there for a module that can't be imported.
    gc.disable()
    sys.modules.update(dict.fromkeys(spared))  # type: ignore[arg-type]
    try:
        for name in _LATER:
            _put_off(name)
        import asyncio  # noqa: F401, PLC0415
        import hmac  # noqa: F401, PLC0415 -- with hashlib

        import msgspec  # noqa: F401, PLC0415

        for name in _LATER:
            _make_known(name)
    finally:
        # What was loaded stays: to look for garbage in it again and again is 10 ms of a start.
        gc.collect(0)
        gc.freeze()
        gc.enable()
        for name in spared:
            del sys.modules[name]


_load()
