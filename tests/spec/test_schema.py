"""The JSON schema for editors, the table of keys for the documentation, and what may import what."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from nbs_fleet.spec.explain import file_schema
from nbs_fleet.spec.schema import AgentFile, RoleFile, TeamFile
from nbs_fleet.spec.schema_json import rows, schema_text
from nbs_fleet.spec.team import Agent, SidecarSettings, Team

DOCS = Path(__file__).parents[2] / "docs" / "team.schema.json"


def test_the_committed_schema_is_the_generated_one() -> None:
    assert DOCS.read_text(encoding="utf-8") == schema_text()


def test_every_reference_of_the_schema_leads_somewhere() -> None:
    schema = json.loads(schema_text())

    def references(node: Any) -> list[str]:
        if isinstance(node, list):
            return [name for item in node for name in references(item)]
        if isinstance(node, dict):
            own = [node["$ref"]] if isinstance(node.get("$ref"), str) else []
            return own + [name for item in node.values() for name in references(item)]
        return []

    assert {name.removeprefix("#/$defs/") for name in references(schema)} <= set(schema["$defs"])


def test_the_schema_is_strict_and_lets_variables_stand_for_numbers() -> None:
    schema = json.loads(schema_text())
    assert schema["additionalProperties"] is False
    assert schema["required"] == ["version", "team", "agents"]
    count = schema["$defs"]["AgentFile"]["properties"]["count"]
    assert count["anyOf"] == [{"maximum": 500, "minimum": 1, "type": "integer"}, {"$ref": "#/$defs/Variable"}]
    assert schema["properties"]["standup"]["anyOf"][1] == {"$ref": "#/$defs/StandupFile"}


def test_each_key_has_a_meaning_an_example_and_says_what_a_change_does() -> None:
    schema = file_schema()
    for name, model in [("TeamFile", schema), *schema["$defs"].items()]:
        for key, field in model.get("properties", {}).items():
            assert field.get("description"), f"{name}.{key}"
            assert field.get("examples"), f"{name}.{key}"
            assert field.get("x-change"), f"{name}.{key}"


def test_the_table_has_each_key_once_with_the_defaults_of_the_code() -> None:
    table = {row.key: row for row in rows()}
    assert len(table) == len(rows())
    tops = {key.split(".")[-1] for key in table}
    assert tops >= set(TeamFile.model_fields) | set(RoleFile.model_fields) | set(AgentFile.model_fields)
    assert (table["sidecar.nag.high"].default, table["sidecar.nag.high"].type) == ("2m", "duration")
    assert (table["layout.size"].default, table["restart.max"].default) == ("[200, 50]", "5")
    assert (table["team"].default, table["agents[].handle"].default) == ("required", "required")
    assert (table["driver"].where, table["roles.NAME.prompt"].where) == ("team, role, agent", "role, agent")
    assert (table["model"].change, table["sidecar.poll"].change) == (
        "restarts that agent when next idle, same session",
        "nobody restarts",
    )


def test_the_file_and_the_team_know_the_same_keys() -> None:
    agent = {f.name for f in msgspec.structs.fields(Agent)}
    assert agent - {"base"} == set(AgentFile.model_fields) - {"count"}
    team = {f.name for f in msgspec.structs.fields(Team)}
    assert team - {"name", "file", "main_chat"} <= set(TeamFile.model_fields)
    sidecar = {f.name for f in msgspec.structs.fields(SidecarSettings)}
    assert sidecar == set(file_schema()["$defs"]["SidecarFile"]["properties"])


@pytest.mark.parametrize(
    "module", ["spec", "spec.team", "spec.loaded", "spec.config", "spec.include", "spec.envfile", "spec.units"]
)
def test_the_values_are_usable_without_pydantic(module: str) -> None:
    code = f"import sys, nbs_fleet.{module}; sys.exit('pydantic' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], timeout=30, check=False).returncode == 0
