"""Where Claude Code keeps its own files, computed from the agent's HOME, environment and working directory."""

from __future__ import annotations

import re
from posixpath import join

from nbs_fleet.drivers.base import Facts, Places

_SLUG_LIMIT = 200
_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyz"


def config_dir(facts: Facts) -> str:
    """The client's configuration folder: CLAUDE_CONFIG_DIR of the agent, else `~/.claude` of its HOME."""
    named = facts.env.get("CLAUDE_CONFIG_DIR")
    return join(facts.real_dir, named) if named else join(facts.home, ".claude")


def places(facts: Facts, config: str) -> Places:
    """State files and transcript below the configuration folder `config` (Claude Code 2.1.197, measured)."""
    folder = join(config, "projects", slug(facts.real_dir))
    return Places(state_dir=join(config, "sessions"), transcript=join(folder, f"{facts.session_id}.jsonl"))


def slug(real_dir: str) -> str:
    """The folder name Claude Code 2.1.197 gives to a working directory (its symbolic links resolved).

    Each UTF-16 unit outside [A-Za-z0-9] becomes `-`; what is longer than 200 units is cut there and gets `-`
    and a hash of the whole path, so that it stays unique (both measured).
    """
    units = _utf16_units(real_dir)
    plain = "".join(chr(u) if u < 128 and chr(u).isalnum() else "-" for u in units)
    if len(plain) <= _SLUG_LIMIT:
        return plain
    return f"{plain[:_SLUG_LIMIT]}-{_base36(_string_hash(units))}"


def plain_slug(real_dir: str) -> str:
    """The folder name claudeless 0.2.2 gives to a working directory: only `/` and `.` become `-`."""
    return re.sub(r"[/.]", "-", real_dir)


def _utf16_units(text: str) -> list[int]:
    raw = text.encode("utf-16-le", "surrogatepass")
    return [raw[i] | raw[i + 1] << 8 for i in range(0, len(raw), 2)]


def _string_hash(units: list[int]) -> int:
    """The absolute value of the 32-bit `31*h + unit` hash, as the client's JavaScript computes it."""
    value = 0
    for unit in units:
        value = (value * 31 + unit) & 0xFFFFFFFF
    return value if value < 1 << 31 else (1 << 32) - value


def _base36(value: int) -> str:
    text = ""
    while value or not text:
        value, digit = divmod(value, 36)
        text = _DIGITS[digit] + text
    return text
