"""`nbs-fleet schema`: the JSON schema of the team file or of the test file, for editors and checks."""

from __future__ import annotations

from typing import Annotated, Literal

import typer

from nbs_fleet.cli import output

What = Annotated[Literal["team", "test"], typer.Argument(metavar="[team|test]", help="which kind of file")]


def schema(what: What = "team") -> None:
    """Print the JSON schema of the team file, or of the test file.

    For example:
        nbs-fleet schema
        nbs-fleet schema test
    """
    from nbs_fleet.spec.schema_json import schema_text

    if what == "team":
        output.say(schema_text().rstrip("\n"))
        return
    from nbs_fleet.testing.schema import ScriptFile

    output.say(schema_text(ScriptFile, "nbs-fleet test file").rstrip("\n"))
