"""Playing an interaction, keeping what was seen of the real client, and finding differences."""

from __future__ import annotations

import difflib
import json
import shutil
from pathlib import Path
from typing import Any

from tests.clients.install import CLAUDE
from tests.conformance import seen
from tests.conformance.stage import staged
from tests.conformance.steps import Player
from tests.conformance.table.entry import Interaction
from tests.support.private import short_folder

Json = dict[str, Any]
RECORDED = Path(__file__).parent / "recorded"
PARTS = ("looks", "hooks", "side_hooks", "transcript", "requests", "files")


def perform(client: str, interaction: Interaction) -> Json:
    """Play it on a client, in a folder of its own that is gone afterwards; what was seen, tidied. Raises LostError."""
    folder = short_folder()
    try:
        with staged(client, folder, interaction.setting) as stage:
            player = Player(stage)
            stage.start(*interaction.setting.args)
            player.play(interaction.steps)
            places = {
                str(stage.project): "<project>",
                str(stage.config): "<config>",
                str(stage.home): "<home>",
                str(folder): "<base>",
                str(CLAUDE.executable): "<client>",
            }
            ordered, side = seen.hooks(stage.payloads(), places)
            return {
                "looks": [seen.look(found, places) for found in player.looks],
                "hooks": ordered,
                "side_hooks": side,
                "transcript": seen.transcript(stage.lines(), places),
                "requests": seen.requests(stage.requests(), places),
                "files": sorted(p.name for p in stage.project.iterdir()),
            }
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def path_of(interaction: Interaction) -> Path:
    """Where its record lies."""
    return RECORDED / f"{interaction.name}.json"


def save(interaction: Interaction, found: Json) -> None:
    """Keep what the real client did."""
    whole = {"client": f"Claude Code {CLAUDE.version}", "steps": list(interaction.steps), "seen": found}
    RECORDED.mkdir(exist_ok=True)
    path_of(interaction).write_text(json.dumps(whole, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def load(interaction: Interaction) -> Json:
    """What the real client did. Raises LookupError if that was not recorded with these steps."""
    path = path_of(interaction)
    if not path.exists():
        raise LookupError(f"{interaction.name} was never recorded")
    whole = json.loads(path.read_text(encoding="utf-8"))
    if whole["steps"] != list(interaction.steps):
        raise LookupError(f"{interaction.name} was recorded with other steps")
    found: Json = whole["seen"]
    return found


def fresh(interaction: Interaction) -> bool:
    """Whether there is a record of these steps."""
    try:
        load(interaction)
    except LookupError:
        return False
    return True


def differences(interaction: Interaction, real: Json, sim: Json) -> list[str]:
    """What differs, as lines: `-` is only in the real client, `+` only in the simulator."""
    found = []
    real, sim = _grouped(real), _grouped(sim)
    for part in PARTS:
        if f"-{part}" in interaction.aside:
            continue
        one, other = seen.tidy(real[part], {}), seen.tidy(sim[part], {})
        if part == "looks":
            one, other = ([seen.look(look, {}) for look in looks] for looks in (one, other))
        if part == "looks" and "-rows" in interaction.aside:
            one, other = ([{k: v for k, v in look.items() if k != "rows"} for look in looks] for looks in (one, other))
        if part == "transcript":
            one = [line for line in one if not str(line.get("content")).startswith(seen.AUTO)]
            one, other = _queue_last(one), _queue_last(other)
        if part == "side_hooks" and "notice" not in interaction.aside:
            one, other = _without_notices(one), _without_notices(other)
        if part in interaction.aside:
            one, other = _sorted(one), _sorted(other)
        if one != other:
            found += [f"{part}:", *_lines(one, other)]
    return found


def _grouped(found: Json) -> Json:
    """With the hooks that have no order apart, also where they were recorded among the others."""
    ordered, side = seen.split([*found["hooks"], *found["side_hooks"]])
    return {**found, "hooks": ordered, "side_hooks": side}


def _without_notices(payloads: list[Json]) -> list[Json]:
    """A dialog that stood for six seconds is told once more; whether it stood so long is the machine's affair."""
    return [found for found in payloads if found.get("notification_type") != "permission_prompt"]


def _queue_last(lines: list[Json]) -> list[Json]:
    """Lines about the queue are written at once, others when they are flushed: there is no order between the two."""
    return sorted(lines, key=lambda line: line["type"] == "queue-operation")


def _sorted(found: list[Any]) -> list[Any]:
    return sorted((sorted(item) if isinstance(item, list) else item for item in found), key=repr)


def _lines(one: Any, other: Any) -> list[str]:
    real, sim = (json.dumps(v, indent=1, ensure_ascii=False, sort_keys=True).splitlines() for v in (one, other))
    return list(difflib.unified_diff(real, sim, lineterm="", n=3))[2:]
