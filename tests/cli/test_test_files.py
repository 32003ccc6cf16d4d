"""What the command line does with test files: it checks them and prints their schema."""

from __future__ import annotations

import json
from pathlib import Path

from tests.support.cli_world import call

GOOD = """\
version: 1
name: ana is killed
team: {version: 1, team: crew, driver: sim, agents: [{handle: ana}, {handle: bo, count: 2}]}
steps:
  - kill: ana
  - expect: {agent: {handle: ana, restarts: 1}}
"""


def test_validate_takes_test_files_and_schema_prints_theirs(here: Path) -> None:
    (here / "x.test.yaml").write_text(GOOD, encoding="utf-8")
    assert call("validate", "x.test.yaml").out == "ok: ana is killed: 2 steps, 3 agents\n"
    found = json.loads(call("validate", "x.test.yaml", "--json").out)
    assert (found["ok"], found["steps"]) == (True, 2)
    schema = json.loads(call("schema", "test").out)
    assert {"steps", "team", "cleanup"} <= set(schema["properties"])
    assert "from" in schema["$defs"]["ChatStep"]["properties"]


def test_validate_of_a_faulty_test_file_exits_2(here: Path) -> None:
    (here / "x.test.yaml").write_text(GOOD.replace("kill:", "kil:"), encoding="utf-8")
    said = call("validate", "x.test.yaml", "--json")
    assert said.code == 2
    assert not json.loads(said.out)["ok"]
