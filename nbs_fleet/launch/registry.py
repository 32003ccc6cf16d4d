"""Finds drivers by name: our own from a table, others by the entry-point group `nbs_fleet.drivers`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from nbs_fleet.drivers.base import Driver
from nbs_fleet.errors import MissingError, UnknownNameError
from nbs_fleet.spec.team import Agent

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "nbs_fleet.drivers"

_OWN: dict[str, str] = {
    "claude": "nbs_fleet.drivers.claude:Claude",
    "claudeless": "nbs_fleet.drivers.claudeless:Claudeless",
    "codex": "nbs_fleet.drivers.codex:Codex",
    "copilot": "nbs_fleet.drivers.copilot:Copilot",
    "gemini": "nbs_fleet.drivers.gemini:Gemini",
    "generic": "nbs_fleet.drivers.generic:Generic",
    "opencode": "nbs_fleet.drivers.opencode:Opencode",
    "qwen": "nbs_fleet.drivers.qwen:Qwen",
    "sim": "nbs_fleet.drivers.sim:Sim",
}
"""What our own package registers. To import importlib.metadata and scan takes some 35 ms, measured: only where needed."""


def names() -> tuple[str, ...]:
    """All driver names on this machine, sorted; scans the installed packages."""
    return tuple(sorted({*_OWN, *_foreign()}))


@cache
def get(name: str) -> Driver:
    """The driver of this name.

    UnknownNameError lists what exists; MissingError says which package brings a driver that can't be loaded.
    """
    place = _OWN.get(name)
    if place is None:
        entry = _foreign().get(name)
        if entry is None:
            raise UnknownNameError(f"no driver named {name!r}", hint=f"drivers: {', '.join(names())}")
        place = entry.value
    module, _, attribute = place.partition(":")
    try:
        driver: Driver = getattr(import_module(module), attribute)()
    except (ImportError, AttributeError, TypeError) as error:
        raise MissingError(
            f"driver {name!r} ({place}) can't be loaded: {error}", hint="reinstall its package"
        ) from error
    return driver


def of(agent: Agent) -> Driver:
    """The driver of an agent, fitted to it; errors as `get`."""
    return get(agent.driver).fitted(agent)


@cache
def _foreign() -> dict[str, EntryPoint]:
    """Drivers that other packages bring; a name of ours can't be taken."""
    entries: tuple[EntryPoint, ...] = tuple(import_module("importlib.metadata").entry_points(group=GROUP))
    return {entry.name: entry for entry in entries if entry.name not in _OWN}
