"""Tokens that a Claude Code transcript tells of. Pure; shapes as written by 2.1.197, seen in its files."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from nbs_fleet.drivers.usage import Tally, Use
from nbs_fleet.jsontext import load_object

SYNTHETIC = "<synthetic>"
"""The model of messages that the client wrote itself, such as errors: nobody was asked for them."""


def count(tally: Tally, lines: str) -> Tally:
    """The count after more whole lines; what is no JSON is skipped.

    Each content block of a reply is a line of its own that repeats the id and the usage of the whole reply. A
    subagent's requests count as use but are not the agent's own context; a compaction begins it anew.
    """
    for line in lines.split("\n"):
        # Most bytes of a transcript are tool results, which cost a parser much and tell nothing here.
        if '"usage"' not in line and "compact_boundary" not in line:
            continue
        tally = _take(tally, load_object(line))
    return tally


def _take(tally: Tally, record: dict[str, Any]) -> Tally:
    if record.get("type") == "system" and record.get("subtype") == "compact_boundary":
        return replace(tally, context=0)
    message = record.get("message")
    if record.get("type") != "assistant" or not isinstance(message, dict):
        return tally
    use, model = _use(message.get("usage")), message.get("model")
    ident = message.get("id")
    if use is None or not isinstance(ident, str) or model == SYNTHETIC:
        return tally
    tally = tally.take(ident, use)
    if record.get("isSidechain"):
        return tally
    return replace(tally, context=use.context, model=model if isinstance(model, str) else "")


def _use(usage: object) -> Use | None:
    if not isinstance(usage, dict):
        return None
    names = ("input_tokens", "output_tokens", "cache_read_input_tokens", "cache_creation_input_tokens")
    return Use(*(_number(usage.get(name)) for name in names))


def _number(value: object) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
