"""The steps between what runs and what should: complete, in order, and nothing else."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nbs_fleet.model import AgentState, Exit, ExitKind, ProcId
from nbs_fleet.plan.build import build
from nbs_fleet.plan.diff import changed, diff
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import AgentRecord, Desired, Plan, Running, Snapshot, Step, Verb
from nbs_fleet.spec.team import Agent, RestartPolicy, Team

PATHS = RunPaths("/run", "/rt", "/rt/s", "/rt/t")


def agent(handle: str, **more: Any) -> Agent:
    return Agent(handle=handle, base=more.pop("base", handle), role=None, driver="sim", dir="/project", **more)


def plan(*agents: Agent) -> Plan:
    made = Team(name="t", file="/t.yaml", root="/project", agents=agents)
    return build(made, paths=PATHS, source="s", prompts={}, versions={}, env_digests={})


def running(handle: str, of: Plan | None = None, *, alive: bool = True, pane: bool = True, **record: Any) -> Running:
    """An agent as it is when its plan was carried out."""
    found = of.find(handle) if of else None
    known: dict[str, Any] = {"state": AgentState.IDLE, "proc": ProcId(1, 1), "pane": "%1"}
    known |= {"fields": found.fields if found else {}} | record
    return Running(AgentRecord(handle, **known), alive=alive, pane_exists=pane)


def steps(
    wanted: Plan, *found: Running, only: set[str] | None = None, now: bool = False, **more: Any
) -> tuple[Step, ...]:
    chosen = None if only is None else frozenset(only)
    return diff(wanted, Snapshot(server_alive=True, agents=found, **more), only=chosen, now=now)


def test_an_empty_machine_gets_everybody_by_wave_then_file_order() -> None:
    wanted = plan(agent("c", depends_on=("b",)), agent("b"), agent("a"), agent("d", depends_on=("c",)))
    assert steps(wanted) == tuple(Step(handle, Verb.START, fresh=True) for handle in ("b", "a", "c", "d"))


def test_what_runs_as_planned_is_kept() -> None:
    wanted = plan(agent("a"), agent("b"))
    assert steps(wanted, running("a", wanted), running("b", wanted)) == (Step("a", Verb.KEEP), Step("b", Verb.KEEP))


def test_without_owner_what_lives_is_adopted() -> None:
    wanted = plan(agent("a"), agent("b"))
    found = (running("a", wanted), running("b", wanted, alive=False, proc=None))
    assert [s.verb for s in steps(wanted, *found, owned=False)] == [Verb.ADOPT, Verb.START]


@pytest.mark.parametrize("now", [False, True])
def test_a_changed_key_restarts_when_idle_in_the_same_session(*, now: bool) -> None:
    before, after = plan(agent("a")), plan(agent("a", model="opus", args=("-x",)))
    assert steps(after, running("a", before), now=now) == (
        Step("a", Verb.RESTART, ("args", "model"), when_idle=not now, fresh=False),
    )


@pytest.mark.parametrize("change", [{"prompt_text": "x"}, {"prompt_text": "x", "model": "m"}])
def test_a_changed_prompt_restarts_in_a_fresh_session(change: dict[str, Any]) -> None:
    (step,) = steps(plan(agent("a", **change)), running("a", plan(agent("a"))))
    assert (step.verb, step.fresh, step.reasons[-1]) == (Verb.RESTART, True, "prompt")


def test_another_client_can_not_go_on_with_a_session() -> None:
    before = plan(agent("a"))
    after = plan(replace(agent("a"), driver="claude"))
    assert steps(after, running("a", before)) == (Step("a", Verb.RESTART, ("driver",), when_idle=True, fresh=True),)


@pytest.mark.parametrize(("blocked", "waits"), [("login", False), ("trust", False), ("permission", True), (None, True)])
def test_who_is_stuck_before_its_first_turn_need_not_become_idle(blocked: str | None, *, waits: bool) -> None:
    before, after = plan(agent("a")), plan(agent("a", model="opus"))
    found = running("a", before, state=AgentState.BLOCKED, blocked=blocked)
    assert steps(after, found)[0].when_idle is waits


def test_the_dead_are_started_and_go_on_in_their_session() -> None:
    wanted = plan(agent("a"), agent("b", restart=RestartPolicy(resume=False)))
    end = Exit(ExitKind.CRASH, 1.0, code=7)
    found = [running(h, wanted, alive=False, state=AgentState.BACKOFF, last_exit=end) for h in ("a", "b")]
    assert steps(wanted, *found) == (
        Step("a", Verb.START, ("not running: crash (exit 7)",)),
        Step("b", Verb.START, ("not running: crash (exit 7)",), fresh=True),
    )


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        ({"desired": Desired.STOPPED, "state": AgentState.STOPPED}, "was stopped"),
        ({"state": AgentState.FAILED}, "had failed"),
        ({"state": AgentState.IDLE}, "not running"),
    ],
)
def test_a_stopped_or_failed_agent_is_started_by_up(record: dict[str, Any], reason: str) -> None:
    wanted = plan(agent("a"))
    assert steps(wanted, running("a", wanted, alive=False, **record)) == (Step("a", Verb.START, (reason,)),)


def test_a_dead_agent_with_changes_names_them_too() -> None:
    before, after = plan(agent("a")), plan(agent("a", model="opus", prompt_text="x"))
    assert steps(after, running("a", before, alive=False)) == (
        Step("a", Verb.START, ("not running", "model", "prompt"), fresh=True),
    )


def test_a_client_whose_pane_is_gone_is_restarted_at_once() -> None:
    wanted = plan(agent("a"))
    assert steps(wanted, running("a", wanted, pane=False)) == (Step("a", Verb.RESTART, ("its pane is gone",)),)


def test_a_client_that_was_about_to_stop_or_had_failed_is_restarted() -> None:
    wanted = plan(agent("a"), agent("b"))
    found = (running("a", wanted, desired=Desired.STOPPED), running("b", wanted, state=AgentState.FAILED))
    assert [(s.verb, s.reasons, s.when_idle) for s in steps(wanted, *found)] == [
        (Verb.RESTART, ("was stopped",), False),
        (Verb.RESTART, ("had failed",), False),
    ]


def test_who_left_the_file_is_stopped_before_anybody_starts() -> None:
    wanted = plan(agent("a"))
    assert steps(wanted, running("z"), running("b", pane=False)) == (
        Step("b", Verb.STOP, ("left the team file",)),
        Step("z", Verb.STOP, ("left the team file",)),
        Step("a", Verb.START, fresh=True),
    )


def test_who_left_and_is_gone_needs_nothing() -> None:
    assert steps(plan(), running("z", alive=False, pane=False)) == ()
    assert [s.verb for s in steps(plan(), running("z", alive=False, pane=True))] == [Verb.STOP]


def test_a_pane_without_record_is_an_orphan_whoevers_it_is() -> None:
    wanted = plan(agent("a"))
    assert steps(wanted, running("a", wanted), strays=(("z", "%9"), ("a", "%8"), ("a", "%7"))) == (
        Step("a", Verb.ORPHAN, ("pane %7 has no record",)),
        Step("a", Verb.ORPHAN, ("pane %8 has no record",)),
        Step("z", Verb.ORPHAN, ("pane %9 has no record",)),
        Step("a", Verb.KEEP),
    )


def test_only_touches_nobody_else() -> None:
    wanted = plan(agent("a"), agent("b"), agent("c"))
    found = (running("a", wanted, alive=False), running("z"))
    assert [s.handle for s in steps(wanted, *found, only={"b"}, strays=(("c", "%1"), ("y", "%2")))] == ["b"]
    assert [s.handle for s in steps(wanted, *found, only={"z"})] == ["z"]


def test_a_base_handle_means_all_copies_even_one_that_left() -> None:
    wanted = plan(agent("bo-1", base="bo"), agent("bo-2", base="bo"), agent("cy"), agent("di-x"))
    found = (running("bo-3"), running("cy-3"), running("bo-x"), running("di-4"))
    assert [s.handle for s in steps(wanted, *found, only={"bo", "cy", "di"})] == ["bo-3", "bo-1", "bo-2", "cy"]


def test_a_key_that_only_one_version_knows_is_no_change() -> None:
    assert changed({"model": "1", "new": "x", "args": "1"}, {"model": "1", "old": "y", "args": "2"}) == ("args",)
    assert changed({"model": "1"}, {}) == ()


# A world in miniature: performing the steps must lead to a world that needs none.

HANDLES = ("a", "b", "c", "d", "z-1", "z-2")
teams = st.lists(st.sampled_from(HANDLES), unique=True).flatmap(
    lambda handles: st.tuples(*(st.builds(_some, st.just(h), st.sampled_from(handles), st.booleans()) for h in handles))
)


def _some(handle: str, needs: str, other: bool) -> Agent:
    """An agent in one of two makes; needs go backwards only, so that there is no circle."""
    return agent(
        handle,
        base=handle.partition("-")[0],
        model="opus" if other else None,
        prompt_text="other" if other and handle < "c" else None,
        depends_on=(needs,) if needs < handle else (),
    )


def a_record(before: Plan, handle: str) -> st.SearchStrategy[Running]:
    """An agent of `before` in any condition."""
    conditions = st.tuples(st.booleans(), st.booleans(), st.sampled_from(AgentState), st.sampled_from(Desired))
    return conditions.map(lambda c: running(handle, before, alive=c[0], pane=c[1], state=c[2], desired=c[3]))


def some_records(before: Plan) -> st.SearchStrategy[tuple[Running, ...]]:
    """All agents of `before`, each in any condition."""
    return st.tuples(*(a_record(before, a.agent.handle) for a in before.agents))


snapshots = teams.map(lambda agents: plan(*agents)).flatmap(
    lambda before: st.builds(
        Snapshot,
        server_alive=st.just(value=True),
        agents=some_records(before),
        strays=st.lists(
            st.tuples(st.sampled_from(HANDLES), st.sampled_from(("%7", "%8"))), unique=True, max_size=2
        ).map(tuple),
        owned=st.booleans(),
    )
)


def perform(wanted: Plan, world: Snapshot, todo: tuple[Step, ...]) -> Snapshot:
    """What is there once each step is done."""
    agents = {found.record.handle: found for found in world.agents}
    strays = list(world.strays)
    for step in todo:
        if step.verb is Verb.ORPHAN:
            strays = [s for s in strays if f"pane {s[1]} has no record" not in step.reasons or s[0] != step.handle]
        elif step.verb is Verb.STOP:
            agents.pop(step.handle)
        elif step.verb in (Verb.START, Verb.RESTART):
            agents[step.handle] = running(step.handle, wanted)
        else:
            assert agents[step.handle].alive
            assert agents[step.handle].pane_exists
    return Snapshot(server_alive=True, agents=tuple(agents.values()), strays=tuple(strays), owned=True)


@given(teams, snapshots, st.booleans())
def test_one_pass_leads_to_a_world_that_needs_none(agents: tuple[Agent, ...], world: Snapshot, now: bool) -> None:
    wanted = plan(*agents)
    after = perform(wanted, world, diff(wanted, world, only=None, now=now))
    again = diff(wanted, after, only=None, now=now)
    assert {step.verb for step in again} <= {Verb.KEEP}
    assert {step.handle for step in again} == {a.handle for a in agents}


@given(teams, snapshots, st.sets(st.sampled_from((*HANDLES, "z"))))
def test_only_gives_the_same_steps_for_the_chosen_and_none_for_others(
    agents: tuple[Agent, ...], world: Snapshot, only: set[str]
) -> None:
    wanted = plan(*agents)
    everything = diff(wanted, world, only=None, now=False)
    some = diff(wanted, world, only=frozenset(only), now=False)
    assert some == tuple(step for step in everything if step in some)
    named = only | {a.handle for a in agents if a.base in only}
    assert {s.handle for s in some} >= {s.handle for s in everything if s.handle in named}
    assert all(s.handle in named or (s.handle[:-2] in only and s.handle[-1].isdigit()) for s in some)


@given(teams, snapshots)
def test_each_agent_of_the_file_has_exactly_one_step_in_order_of_waves(
    agents: tuple[Agent, ...], world: Snapshot
) -> None:
    wanted = plan(*agents)
    todo = [s for s in diff(wanted, world, only=None, now=False) if s.verb not in (Verb.STOP, Verb.ORPHAN)]
    assert sorted(s.handle for s in todo) == sorted(a.handle for a in agents)
    order = {a.agent.handle: (a.wave, n) for n, a in enumerate(wanted.agents)}
    assert [order[s.handle] for s in todo] == sorted(order.values())
