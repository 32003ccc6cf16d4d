"""`nbs-fleet schema`: the JSON schema of the team file, for editors and checks."""

from __future__ import annotations

from nbs_fleet.cli import output


def schema() -> None:
    """Print the JSON schema of the team file.

    For example:
        nbs-fleet schema
    """
    from nbs_fleet.spec.schema_json import schema_text

    output.say(schema_text().rstrip("\n"))
