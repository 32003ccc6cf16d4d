"""A mailbox in a folder, messages for it, and what a client's hook does with them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from nbs_fleet.launch.messages import Mailbox
from nbs_fleet.model import Message, Outcome
from nbs_fleet.plan.paths import AgentPaths

NOW = 1_800_000_000.0


def folders(base: Path) -> AgentPaths:
    paths = AgentPaths(str(base / "ana"), str(base / "ana.env"))
    for folder in paths.folders:
        os.makedirs(folder, exist_ok=True)
    return paths


def message(number: int = 1, **more: Any) -> Message:
    fields: dict[str, Any] = {
        "id": f"d-0-{number}",
        "to": "ana",
        "sender": "bo",
        "text": "é\n1",
        "created": NOW + number,
    }
    return Message(**(fields | more))


def claim(box: Mailbox, place: str = "mail") -> list[str]:
    """Do what a client's hook does: take everything that is registered; returns the texts."""
    source = box.paths.mail if place == "mail" else box.paths.inbox
    taken = []
    for name in sorted(os.listdir(source)):
        if name.endswith(".msg") and os.path.exists(f"{box.paths.queue}/{name[17:-4]}.json"):
            os.makedirs(box.paths.claimed, exist_ok=True)
            os.rename(f"{source}/{name}", f"{box.paths.claimed}/{name}")
            taken.append(Path(f"{box.paths.claimed}/{name}").read_text(encoding="utf-8"))
    return taken


def where(box: Mailbox) -> dict[str, str]:
    return {p.message.id: p.place for p in box.waiting()}


def finish(box: Mailbox, identity: str, outcome: Outcome = Outcome.DELIVERED) -> bool:
    return box.finish(identity, outcome, "mail", "seen", NOW + 9)
