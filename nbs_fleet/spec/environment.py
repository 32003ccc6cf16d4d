"""The nbs tools' own environment variables, honoured as defaults below the team file."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from nbs_fleet.spec.nodes import Kind, Map, Node, Scalar
from nbs_fleet.spec.overlay import mapping
from nbs_fleet.spec.problems import FileRef, Mark, Problems

_SIDECAR = {
    "NBS_BUS_CHECK_INTERVAL": ("bus_check", "s"),
    "NBS_NOTIFY_COOLDOWN": ("notify_cooldown", "s"),
    "NBS_STARTUP_GRACE": ("startup_grace", "s"),
    "NBS_POLL_INTERVAL": ("poll", "s"),
    "NBS_NOTIFY_FAIL_THRESHOLD": ("notify_fail_threshold", ""),
}
_POSITIVE = frozenset({"bus_check", "poll", "notify_fail_threshold"})
_PLACE = Mark(FileRef("environment", ""), 0, 0)


class Defaults(Struct, frozen=True):
    """What the environment asks for: a `sidecar` mapping (maybe empty), and the time between standups.

    `standup` is None where the environment says nothing, a scalar with text `0s` where it switches standups off.
    """

    sidecar: Map
    standup: Scalar | None


def defaults(environ: Mapping[str, str], problems: Problems) -> Defaults:
    """Read the variables; one that is no plain number is left out with a warning (its value is not shown)."""
    items: dict[str, Node] = {}
    for name, (key, unit) in _SIDECAR.items():
        number = _number(environ, name, problems, positive=key in _POSITIVE, whole=not unit)
        if number is not None:
            items[key] = _scalar(name, number + unit, "text")
    disabled = environ.get("NBS_POLL_DISABLE", "")
    if disabled not in ("", "0"):
        items["notices"] = _scalar("NBS_POLL_DISABLE", "false", "text")
    minutes = _number(environ, "NBS_STANDUP_INTERVAL", problems, positive=False, whole=False)
    standup = None
    if minutes is not None:
        off = float(minutes) == 0
        standup = _scalar("NBS_STANDUP_INTERVAL", "0s" if off else f"{minutes}m", "text")
    return Defaults(mapping(_PLACE, items, dict.fromkeys(items, _PLACE)), standup)


def _scalar(name: str, text: str, kind: Kind) -> Scalar:
    return Scalar(_PLACE, text, kind, f"${{{name}}}")


def _number(environ: Mapping[str, str], name: str, problems: Problems, *, positive: bool, whole: bool) -> str | None:
    text = environ.get(name, "").strip()
    if not text:
        return None
    shape = r"[0-9]{1,6}" if whole else r"[0-9]{1,6}(\.[0-9]{1,3})?"
    if re.fullmatch(shape, text) and (float(text) > 0 or not positive) and not (whole and float(text) > 1000):
        return text
    unit = "minutes" if name == "NBS_STANDUP_INTERVAL" else "seconds"
    wanted = ("a plain number" if whole else f"a plain number of {unit}") + (" above 0" if positive else "")
    problems.warn(_PLACE, (), f"{name} is not {wanted}; it is ignored")
    return None
