"""Small pure helpers on the lives of a fleet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from zlib import crc32

from msgspec.structs import replace

from nbs_fleet.model import AgentState, Moment
from nbs_fleet.plan.types import AgentRecord
from nbs_fleet.supervisor.fleet import Fleet, Life


def put(fleet: Fleet, life: Life) -> Fleet:
    """The fleet with this life in place of the one of the same handle."""
    return replace(fleet, lives={**fleet.lives, life.record.handle: life})


def record(lives: Mapping[str, Life], handle: str) -> AgentRecord | None:
    """The record of `handle`, if there is one."""
    life = lives.get(handle)
    return life.record if life else None


def settle(before: AgentRecord, state: AgentState, now: Moment, **changes: Any) -> AgentRecord:
    """The record in `state` since now, with nothing left over of the state before."""
    clean: dict[str, Any] = {"blocked": None, "detail": "", "until": None, "evidence": (), "ready": False}
    return replace(before, **{**clean, "state": state, "since": now.wall, **changes})


def spread(handle: str, number: int) -> float:
    """A number in [0, 1) that differs between agents and starts and is the same at each replay."""
    return crc32(f"{handle}/{number}".encode()) / 2**32
