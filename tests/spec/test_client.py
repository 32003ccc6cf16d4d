"""The description of a client in a team file: what it becomes, and each mistake in it by its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from nbs_fleet.errors import TeamFileError
from nbs_fleet.spec.load import load_team
from nbs_fleet.spec.team import Client

T = "version: 1\nteam: t\n"
A = "agents: [{handle: ana, driver: generic, command: aider, client: %s}]\n"


def loaded(tmp_path: Path, text: str, **given: str) -> Client | None:
    """The client of the first agent in this file."""
    path = tmp_path / "team.yaml"
    path.write_text(text, encoding="utf-8")
    return load_team(str(path), {}, **given).team.agents[0].client


def test_a_description_is_taken_over_with_its_defaults(tmp_path: Path) -> None:
    assert loaded(tmp_path, T + A % "{ready: '^> '}") == Client("^> ")


def test_every_key_arrives(tmp_path: Path) -> None:
    text = (
        "{ready: '^> ', busy: '^T', blocked: {permission: 'y/N'}, otherwise: busy, placeholder: '^x', rows: 3, "
        "submit_gap: 50ms, prompt_args: [], model_args: [-m], auto_approve: [--yes], yes_keys: [y, 1], no_keys: [C-c]}"
    )
    assert loaded(tmp_path, T + A % text) == Client(
        "^> ", "^T", {"permission": "y/N"}, "busy", "^x", 3, 0.05, (), ("-m",), ("--yes",), ("y", "1"), ("C-c",)
    )


def test_a_role_describes_the_client_of_all_its_agents(tmp_path: Path) -> None:
    text = T + "roles:\n  old: {driver: generic, command: aider, client: {ready: '^> '}}\n"
    text += "agents: [{handle: ana, role: old, client: {rows: 2}}]\n"
    assert loaded(tmp_path, text) == Client("^> ", rows=2)


def test_another_driver_for_a_rehearsal_leaves_the_description_out(tmp_path: Path) -> None:
    assert loaded(tmp_path, T + A % "{ready: '^> '}", driver="sim") is None


CASES: dict[str, tuple[str, *tuple[str, ...]]] = {
    "a pattern that is none": (
        T + A % "{ready: '(', busy: x}",
        (
            '3:73: agents[0].client.ready: "(" is no regular expression: missing ), unterminated subpattern at position 0; '
            "mend it or escape its signs"
        ),
    ),
    "no pattern for ready": (
        T + A % "{busy: x}",
        "3:10: agents[0].client.ready: is missing with driver: generic; write ready: '^> '",
    ),
    "an unknown key": (
        T + A % "{ready: x, redy: y}",
        '3:76: agents[0].client.redy: unknown key; did you mean "ready"?',
    ),
    "an unknown kind of question": (
        T + A % "{ready: x, blocked: {permision: y}}",
        '3:86: agents[0].client.blocked.permision: unknown key; did you mean "permission"?',
    ),
    "a gap without a unit": (
        T + A % "{ready: x, submit_gap: 300}",
        "3:88: agents[0].client.submit_gap: a duration needs a unit; did you mean 300s?",
    ),
    "a word that is no key": (
        T + A % "{ready: x, yes_keys: [yes please]}",
        '3:87: agents[0].client.yes_keys[0]: "yes please" is no key; write y, Enter, Escape, Down or C-c',
    ),
    "no rows": (
        T + A % "{ready: x, rows: 0}",
        "3:82: agents[0].client.rows: must be at least 1",
    ),
    "neither command nor client": (
        T + "agents: [{handle: ana, driver: generic}]\n",
        "3:10: agents[0].command: is missing with driver: generic; write command: aider",
        "3:10: agents[0].client: is missing with driver: generic; write client: {ready: '^> '}",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_each_mistake_is_named_with_its_place_and_what_would_be_right(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, *expected = CASES[name]
    monkeypatch.chdir(tmp_path)
    (tmp_path / "team.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(TeamFileError) as caught:
        load_team("team.yaml", {})
    assert caught.value.problems == tuple(f"team.yaml:{line}" for line in expected)


def test_a_description_that_nobody_reads_is_told_of(tmp_path: Path) -> None:
    path = tmp_path / "team.yaml"
    path.write_text(T + "agents: [{handle: ana, client: {ready: x}}]\n", encoding="utf-8")
    (warning,) = load_team(str(path), {}).warnings
    assert warning.endswith("3:24: agents[0].client: only driver: generic has a use for it; its driver is claude")


def test_an_override_to_generic_has_no_command_to_start(tmp_path: Path) -> None:
    with pytest.raises(TeamFileError):
        loaded(tmp_path, T + "agents: [{handle: ana, command: x}]\n", driver="generic")


def test_the_example_of_the_how_to_is_right(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "any-client.md").read_text(encoding="utf-8")
    found = loaded(tmp_path, page.partition("```yaml\n")[2].partition("```")[0])
    assert found is not None
    assert found.yes_keys == ("y", "Enter")
