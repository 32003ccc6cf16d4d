"""Which value holds for an agent: its own, its role's, the team's, the environment's, the driver's."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from nbs_fleet.errors import TeamFileError, UsageError
from nbs_fleet.spec.loaded import Loaded

Load = Callable[..., Loaded]
TOP = "version: 1\nteam: t\n"


def test_agent_stands_above_role_above_team_key_by_key(load: Load) -> None:
    text = TOP + (
        "model: team\nargs: [--team]\nenv: {A: team, B: team, C: team}\ndialogs: {trust: accept, mcp: accept}\n"
        "settings: {x: {a: 1, b: 1}, l: [1]}\nsidecar: {nag: {critical: 1s, high: 1s}}\n"
        "restart: {max: 9, backoff: {first: 9s}}\n"
        "roles:\n  r: {model: role, env: {B: role, C: role}, dialogs: {mcp: deny}, settings: {x: {b: 2}, l: [2]}}\n"
        "agents:\n"
        "  - {handle: ana, role: r, env: {C: own}, sidecar: {nag: {high: 5s}}, restart: {backoff: {max: 2m}}}\n"
        "  - {handle: bo, role: r, model: own, args: []}\n"
        "  - {handle: cy}\n"
    )
    ana, bo, cy = load(text).team.agents
    assert ana.env == {"A": "team", "B": "role", "C": "own"}
    assert (ana.model, bo.model, cy.model) == ("role", "own", "team")
    assert (ana.args, bo.args) == (("--team",), ())
    assert (ana.dialogs.trust, ana.dialogs.mcp, cy.dialogs.mcp) == ("accept", "deny", "accept")
    assert ana.settings == {"x": {"a": 1, "b": 2}, "l": [2]}
    assert (ana.sidecar.nag.critical, ana.sidecar.nag.high) == (1.0, 5.0)
    assert (ana.restart.max, ana.restart.backoff.first, ana.restart.backoff.max) == (9, 9.0, 120.0)


def test_a_recovery_is_taken_whole_and_may_be_a_word(load: Load) -> None:
    text = TOP + (
        "on_idle: {do: nudge, attempts: 3, cooldown: 1m, text: Go on.}\non_dead: restart\n"
        "agents: [{handle: ana}, {handle: bo, on_idle: ignore, on_dead: {do: resume, attempts: 2}}]\n"
    )
    ana, bo = load(text).team.agents
    assert (ana.on_idle.do, ana.on_idle.attempts, ana.on_idle.cooldown, ana.on_idle.text) == (
        "nudge",
        3,
        60.0,
        "Go on.",
    )
    assert (bo.on_idle.do, bo.on_idle.attempts, bo.on_idle.text) == ("ignore", 1, None)
    assert (ana.on_dead.do, bo.on_dead.do, bo.on_dead.attempts, ana.on_error.do) == ("restart", "resume", 2, "escalate")


def test_an_agents_prompt_text_hides_its_roles_prompt(load: Load) -> None:
    text = TOP + "roles: {r: {prompt: tester.md.j2}}\nagents:\n  - {handle: ana, role: r}\n"
    ana, bo = load(text + "  - {handle: bo, role: r, prompt_text: hi}\n").team.agents
    assert (ana.prompt, ana.prompt_text) == ("template:tester.md.j2", None)
    assert (bo.prompt, bo.prompt_text) == (None, "hi")


def test_the_bypass_warning_is_accepted_only_where_the_file_itself_asks_for_the_mode(load: Load) -> None:
    text = TOP + (
        "roles: {r: {permission_mode: bypassPermissions}}\n"
        "agents:\n  - {handle: a, role: r}\n  - {handle: b, role: r, dialogs: {bypass: deny}}\n"
        "  - {handle: c, permission_mode: plan, role: r}\n  - {handle: d, permission_mode: '${MODE}'}\n"
    )
    agents = load(text, {"MODE": "bypassPermissions"}).team.agents
    assert [a.dialogs.bypass for a in agents] == ["accept", "deny", "ask", "ask"]
    assert agents[3].permission_mode == "bypassPermissions"


def test_another_driver_drops_what_belongs_to_the_declared_one(load: Load) -> None:
    text = TOP + (
        "agents:\n  - {handle: ana, driver: claude, command: my claude, args: [-x], model: opus, permission_mode: plan}\n"
        "  - {handle: bo, driver: sim, args: [--scenario, s.toml], model: m}\n"
    )
    ana, bo = load(text, driver="sim").team.agents
    assert (ana.driver, ana.command, ana.args, ana.model, ana.permission_mode) == ("sim", None, (), None, "plan")
    assert (bo.driver, bo.args, bo.model) == ("sim", ("--scenario", "s.toml"), "m")
    assert load(text, driver="sim").origins["agents.ana.driver"].where == "--driver"


def test_a_team_with_a_driver_that_is_not_installed_can_be_played_with_another(load: Load) -> None:
    assert load(TOP + "driver: codex\nagents: [{handle: ana}]\n", driver="sim").team.agents[0].driver == "sim"
    with pytest.raises(UsageError, match=r'unknown driver "sims"; did you mean "sim"\?'):
        load(TOP + "agents: [{handle: ana}]\n", driver="sims")


def test_the_nbs_variables_are_defaults_below_the_file(load: Load) -> None:
    variables = {
        "NBS_POLL_INTERVAL": "120",
        "NBS_BUS_CHECK_INTERVAL": "1.5",
        "NBS_NOTIFY_COOLDOWN": "0",
        "NBS_STARTUP_GRACE": "10",
        "NBS_NOTIFY_FAIL_THRESHOLD": "2",
        "NBS_POLL_DISABLE": "1",
        "NBS_STANDUP_INTERVAL": "20",
    }
    text = TOP + "chats: [live]\nsidecar: {startup_grace: 5s}\nagents: [{handle: ana}]\n"
    team = load(text, variables).team
    sidecar = team.agents[0].sidecar
    assert (sidecar.poll, sidecar.bus_check, sidecar.notify_cooldown, sidecar.startup_grace) == (120.0, 1.5, 0.0, 5.0)
    assert (sidecar.notify_fail_threshold, sidecar.notices) == (2, False)
    assert team.standup is not None
    assert (team.standup.every, team.standup.chat) == (1200.0, "live")
    assert load(text + "standup: false\n", variables).team.standup is None
    given = load(text + "standup: {every: 1h}\n", variables).team.standup
    assert given is not None
    assert given.every == 3600.0
    assert load(text, {**variables, "NBS_STANDUP_INTERVAL": "0"}).team.standup is None


def test_an_nbs_variable_that_is_no_number_is_left_out_with_a_warning(load: Load) -> None:
    variables = {"NBS_POLL_INTERVAL": "soon", "NBS_BUS_CHECK_INTERVAL": "0", "NBS_STANDUP_INTERVAL": "x"}
    loaded = load(TOP + "chats: [live]\nagents: [{handle: ana}]\n", variables)
    assert (loaded.team.agents[0].sidecar.poll, loaded.team.standup) == (300.0, None)
    assert loaded.warnings == (
        "environment: NBS_BUS_CHECK_INTERVAL is not a plain number of seconds above 0; it is ignored",
        "environment: NBS_POLL_INTERVAL is not a plain number of seconds above 0; it is ignored",
        "environment: NBS_STANDUP_INTERVAL is not a plain number of minutes; it is ignored",
    )


def test_a_key_inherited_for_another_driver_is_warned_of(load: Load) -> None:
    text = TOP + "model: opus\nagents:\n  - {handle: ana, driver: claudeless}\n  - {handle: bo}\n"
    assert load(text).warnings == (
        (
            "team.yaml:5:5: agents[0].model: its model is meant for claude (team.yaml:3), its driver is claudeless; "
            "give the agent its own model"
        ),
    )
    assert load(text, driver="sim").warnings == ()


def test_a_misspelt_permission_mode_is_warned_of(load: Load) -> None:
    assert load(TOP + "permission_mode: bypasspermissions\nagents: [{handle: ana}]\n").warnings == (
        (
            'team.yaml:3:18: permission_mode: "bypasspermissions" is no mode that is known here; '
            'did you mean "bypassPermissions"?'
        ),
    )


def test_a_second_settings_file_among_the_arguments_is_warned_of(load: Load) -> None:
    text = TOP + "args: [--settings=x]\nagents:\n  - {handle: ana, args: [--verbose, --settings, x.json]}\n"
    says = "--settings is the fleet's own and left out here; put its keys below settings"
    assert load(text).warnings == (f"team.yaml:3:8: args: {says}", f"team.yaml:5:37: agents[0].args: {says}")


def test_a_chat_with_too_many_members_for_the_nbs_tools_is_warned_of(load: Load) -> None:
    text = TOP + "chats: [live, {name: few, members: [a-1]}]\nagents: [{handle: a, count: 51}]\n"
    assert load(text).warnings == (
        "team.yaml:3:9: chats[0]: 51 members; nbs-chat can't take more than 52 writers in one chat",
    )


def test_merge_keys_and_aliases_fill_in_what_a_mapping_lacks(load: Load) -> None:
    text = TOP + (
        "agents:\n  - &base {handle: ana, model: opus, env: &env {A: x}}\n"
        "  - {<<: *base, handle: bo}\n  - <<: [{stop: signal}, *base]\n    handle: cy\n    env: {<<: *env, B: y}\n"
    )
    ana, bo, cy = load(text).team.agents
    assert (bo.model, bo.env, cy.stop, cy.model, cy.env) == ("opus", ana.env, "signal", "opus", {"A": "x", "B": "y"})


def test_a_team_without_agents_of_its_own_may_include_them(load: Load) -> None:
    with pytest.raises(TeamFileError, match="agents: is missing"):
        load(TOP)
