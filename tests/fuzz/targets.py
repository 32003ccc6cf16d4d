"""All targets by name, in the order of the page about them."""

from __future__ import annotations

from tests.fuzz import targets_clients, targets_fleet, targets_links, targets_nbs, targets_team
from tests.fuzz.target import Target

TARGETS: dict[str, Target] = {
    target.name: target
    for module in (targets_team, targets_nbs, targets_clients, targets_fleet, targets_links)
    for target in module.targets()
}
