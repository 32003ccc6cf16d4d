"""`nbs-fleet config`: the effective team, each value with the place that set it."""

from __future__ import annotations

import os

from nbs_fleet.cli import output
from nbs_fleet.cli.params import File, Json
from nbs_fleet.cli.validate import warn


def config(file: File, *, json: Json = False) -> None:
    """Show the effective team file: every value after defaults, roles and counts, with where it was set.

    What came from a variable is shown as it is written in the file; secrets are not shown.

    For example:
        nbs-fleet config team.yaml
        nbs-fleet config team.yaml --json
    """
    from nbs_fleet.launch import registry
    from nbs_fleet.spec.config import effective, render
    from nbs_fleet.spec.load import load_team

    loaded = load_team(file, os.environ, known_drivers=registry.names())
    warn(loaded.warnings)
    if json:
        values = [{"key": entry.key, "value": entry.value, "origin": entry.origin} for entry in effective(loaded)]
        output.json({"team": loaded.team.name, "file": loaded.team.file, "values": values})
        return
    output.say(render(loaded).rstrip("\n"))
