"""A team comes up, is asked again, and goes down; against each client."""

from __future__ import annotations

import json

import pytest

from tests.support.fleet import Fleet

HARD = """It's "quoted", `ticked` and $HOME, ${HOME} or $(id) and $$; a back\\slash \\n, 100% & <tags> | pipes; !bang #hash *"""
EMOJI = "\U0001f9d1\u200d\U0001f680 日本語 ñ"


def three(fleet: Fleet) -> None:
    """Three agents with short prompts."""
    agents = [
        fleet.client.agent(handle, prompt_text=f"hello {handle}, say who you are") for handle in ("ana", "bo", "cy")
    ]
    fleet.write_team(agents)


def big_prompt() -> str:
    """20 kB with everything a shell, a terminal or JSON could stumble over."""
    line = f"{HARD} {EMOJI}\ttab\n"
    text = "# Your task\n\n" + line * (20_000 // len(line.encode()) + 1)
    return text + "the end"


def test_a_team_of_three_comes_up_idle(fleet: Fleet) -> None:
    three(fleet)
    up = fleet.up()
    assert up.code == 0, str(up)
    assert set(fleet.states(fleet.all_idle()).values()) == {"idle"}


@pytest.mark.clients(long=("claude",))
def test_up_says_who_is_ready(fleet: Fleet) -> None:
    three(fleet)
    out = fleet.up().out
    assert {line.split()[0] for line in out.splitlines()[1:4]} == {"ana", "bo", "cy"}
    assert "3 ready" in out


@pytest.mark.clients(long=("claude",))
def test_a_second_up_changes_nothing(fleet: Fleet) -> None:
    three(fleet)
    fleet.up()
    before = fleet.all_idle()
    again = fleet.up()
    assert again.code == 0, str(again)
    assert again.out.count("kept") == 3
    assert fleet.pids() == fleet.pids(before)
    assert fleet.ps()["supervisor"]["pid"] == before["supervisor"]["pid"]


def test_each_agent_gets_its_own_prompt(fleet: Fleet) -> None:
    three(fleet)
    fleet.up()
    for row in fleet.all_idle()["agents"]:
        assert fleet.client.prompts(row["session_id"])[0] == f"hello {row['handle']}, say who you are"


@pytest.mark.clients("sim", "claude")
def test_a_long_prompt_arrives_byte_for_byte(fleet: Fleet) -> None:
    text = big_prompt()
    (fleet.root / "big.md").write_text(text, encoding="utf-8")
    fleet.write_team([fleet.client.agent("ana", prompt="big.md")])
    up = fleet.up()
    assert up.code == 0, str(up)
    session = fleet.agent("ana", fleet.all_idle())["session_id"]
    assert fleet.client.prompts(session) == [text]


def test_a_prompt_full_of_shell_characters_arrives_as_written(fleet: Fleet) -> None:
    text = f"say {HARD} {EMOJI}"
    (fleet.root / "hard.md").write_text(text, encoding="utf-8")
    fleet.write_team([fleet.client.agent("ana", prompt="hard.md")])
    fleet.up()
    session = fleet.agent("ana", fleet.all_idle())["session_id"]
    assert fleet.client.prompts(session)[0] == text


def test_an_agent_without_prompt_is_idle_and_was_told_nothing(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent("ana")])
    assert fleet.up().code == 0
    session = fleet.agent("ana", fleet.all_idle())["session_id"]
    assert fleet.client.prompts(session) == []


def test_the_clients_leave_politely(fleet: Fleet) -> None:
    three(fleet)
    fleet.up()
    fleet.all_idle()
    down = fleet.down()
    assert down.code == 0, str(down)
    for handle in ("ana", "bo", "cy"):
        assert fleet.exit_codes(handle)[-1] in fleet.client.polite_codes
    assert fleet.leftovers() == []


@pytest.mark.clients(long=("claude",))
def test_down_with_purge_removes_the_run_directory_too(fleet: Fleet) -> None:
    three(fleet)
    fleet.up()
    run = fleet.run_dir
    down = fleet.down("--purge")
    assert down.code == 0, str(down)
    assert not run.exists()
    assert not (fleet.root / ".nbs" / "fleet" / fleet.team).is_symlink()


@pytest.mark.clients(long=("claude",))
def test_down_of_a_team_that_is_not_up_is_fine(fleet: Fleet) -> None:
    three(fleet)
    fleet.up()
    assert fleet.down().code == 0
    assert fleet.down().code == 0


def test_a_team_comes_up_again_after_down_with_the_same_sessions(fleet: Fleet) -> None:
    three(fleet)
    fleet.up()
    before = {row["handle"]: row["session_id"] for row in fleet.all_idle()["agents"]}
    fleet.down()
    up = fleet.up()
    assert up.code == 0, str(up)
    assert {row["handle"]: row["session_id"] for row in fleet.all_idle()["agents"]} == before


@pytest.mark.clients(long=("claude",))
def test_only_the_named_agents_are_touched(fleet: Fleet) -> None:
    three(fleet)
    assert fleet.up("--only", "ana").code == 0
    states = fleet.states()
    assert states["ana"] in {"idle", "busy"}
    assert set(states) == {"ana"} or {states["bo"], states["cy"]} == {"stopped"}


@pytest.mark.clients(long=("claude",))
def test_dry_run_writes_nothing(fleet: Fleet) -> None:
    three(fleet)
    dry = fleet.up("--dry-run")
    assert dry.code == 0, str(dry)
    assert [word for word in ("ana", "bo", "cy") if word not in dry.out] == []
    assert not list(fleet.base.glob("state/nbs-fleet/*/*"))
    assert list((fleet.root / ".nbs").iterdir()) == []


@pytest.mark.clients(long=("claude",))
def test_up_as_json_is_json(fleet: Fleet) -> None:
    three(fleet)
    answer = json.loads(fleet.up("--json").out)
    assert answer["schema"] == 1
    assert {agent["handle"] for agent in answer["agents"]} == {"ana", "bo", "cy"}
