"""A living team keeps what is secret: nothing of it is open to others, and secret values stand where they must only."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from nbs_fleet.launch.environment import MASK
from tests.support.fleet import Fleet

pytestmark = pytest.mark.clients("sim")

BY_FILE = "postgres://me:pw-0123456789@db"
BY_NAME = "literal-t0ken-of-the-team-file"
CALLERS = "key-of-the-caller-0123456789"
HOOK = "t0ken-of-the-webhook"
SECRETS = (BY_FILE, BY_NAME, CALLERS, HOOK)
CLIENTS = ("client", "prompt.md", "queue", "archive", "mail", "inbox", "claimed", "spool")
"""What goes to the client or comes from it, as it is."""


@pytest.fixture
def told(fleet: Fleet) -> Fleet:
    """A team with secrets of each kind, whose agent has said them all."""
    (fleet.root / "secrets.env").write_text(f"DATABASE={BY_FILE}\n", encoding="utf-8")
    (fleet.root / "secrets.env").chmod(0o600)
    fleet.env |= {"SOME_API_KEY": CALLERS, "HOOK_TOKEN": HOOK}
    words = f"{BY_FILE} {BY_NAME} {CALLERS}"
    ana = fleet.client.agent(
        "ana",
        prompt_text="say it",
        env_file="secrets.env",
        env={"MY_TOKEN": BY_NAME, "LOG": "debug"},
        scenario={"responses": [{"pattern": {"type": "any"}, "response": f"They are: {words}."}]},
    )
    address = "http://127.0.0.1:9/${HOOK_TOKEN}"
    fleet.write_team([ana], notifications=[{"on": ["attention"], "via": "webhook", "url": address}])
    up = fleet.up()
    assert up.code == 0, str(up)
    fleet.all_idle()
    fleet.until(lambda: BY_NAME in fleet.run("peek", "ana").out, what="the agent said it")
    return fleet


def test_secret_values_are_in_no_argument_story_kept_screen_record_or_command(told: Fleet) -> None:
    old = told.kill("ana")
    told.wait(lambda ps: told.pids(ps)["ana"] not in (None, old) and told.states(ps)["ana"] == "idle")
    kept = list((told.run_dir / "agents" / "ana" / "captures").iterdir())
    assert any(MASK in path.read_text() for path in kept)
    assert MASK in (told.run_dir / "agents" / "ana" / "state.json").read_text()
    assert not [p for p in told.everything() if any(s in " ".join(p.cmdline()) for s in SECRETS)]
    assert {name for name in holding(told) if name not in CLIENTS} == set()
    for argv in (("ps", "--json"), ("why", "ana"), ("logs", "-n", "500"), ("queue",), ("logs", "ana", "--json")):
        said = told.run(*argv)
        assert not [s for s in SECRETS if s in said.out + said.err], argv
    for argv in (("plan", str(told.file)), ("config", str(told.file)), ("validate", str(told.file))):
        said = told.run(*argv)
        assert not [s for s in SECRETS if s in said.out + said.err], argv


def holding(fleet: Fleet) -> set[str]:
    """The first part of the path below the agent's (or the team's) folder of each file with a secret in it."""
    found = set()
    for path in fleet.run_dir.rglob("*"):
        if path.is_file() and any(secret.encode() in path.read_bytes() for secret in SECRETS):
            parts = path.relative_to(fleet.run_dir).parts
            found.add(parts[2] if parts[0] == "agents" else parts[0])
    return found


def test_nothing_of_a_living_team_is_open_to_others(told: Fleet) -> None:
    runtime = Path((told.run_dir / "runtime").read_text().strip())
    # What the client itself makes has the modes that the client gives it; the folders above keep others out.
    theirs = told.run_dir / "agents" / "ana" / "client"
    ours = [path for path in told.run_dir.rglob("*") if not path.is_relative_to(theirs)]
    every = [told.run_dir, runtime, *ours, *runtime.rglob("*")]
    assert [path for path in every if stat.S_IMODE(path.lstat().st_mode) & 0o077] == []
    kinds = [stat.S_IFMT(path.lstat().st_mode) for path in every]
    assert kinds.count(stat.S_IFSOCK) >= 2
    assert {path.lstat().st_uid for path in every} == {os.getuid()}
