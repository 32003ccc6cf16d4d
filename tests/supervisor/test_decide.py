"""The supervisor's decisions over histories: starts, waves, restarts, stops, alarms."""

from __future__ import annotations

from msgspec.structs import replace

from nbs_fleet.model import AgentState, Asking, BlockedKind, Exit, ExitKind, Moment, ProcId
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import AgentPlan, AgentRecord, Desired, Plan
from nbs_fleet.sidecar.actions import Report
from nbs_fleet.spec.team import Agent, Backoff, Layout, RestartPolicy
from nbs_fleet.supervisor.decide import decide
from nbs_fleet.supervisor.fleet import (
    Action,
    Alarm,
    Asked,
    Died,
    Ended,
    Event,
    Fleet,
    Found,
    Launched,
    LaunchedAll,
    Loaded,
    Reported,
    Save,
    Start,
    Stop,
    Ticked,
    Watch,
)

PATHS = RunPaths("/run", "/rt", "/run/s", "/run/t")


def agent(handle: str, *, prompt: str = "p", model: str = "m", needs: tuple[str, ...] = (), wave: int = 0) -> AgentPlan:
    policy = RestartPolicy(max=3, within=600.0, backoff=Backoff(first=1.0, max=8.0))
    one = Agent(handle, handle, None, "sim", "/", depends_on=needs, restart=policy)
    return AgentPlan(one, {"model": model, "prompt": prompt}, prompt, wave, handle, 0)


def plan(*agents: AgentPlan) -> Plan:
    return Plan("t", "/t.yaml", "/", "x", PATHS, Layout(), agents)


class World:
    """Drives `decide` as the loop would: a clock, pids, and answers to actions when asked for."""

    def __init__(self) -> None:
        self.fleet = Fleet()
        self.now = 1000.0
        self.pid = 0
        self.log: list[Action] = []

    def tell(self, event: Event) -> list[Action]:
        moment = Moment(wall=self.now, mono=self.now, boot="b")
        self.fleet, actions = decide(self.fleet, event, moment)
        self.log.extend(actions)
        return [a for a in actions if not isinstance(a, Save)]

    def wait(self, seconds: float) -> list[Action]:
        self.now += seconds
        return self.tell(Ticked())

    def launch(self, *handles: str) -> list[Action]:
        """The effect of a start: each agent gets a process."""
        results = []
        for handle in handles:
            self.pid += 1
            life = self.fleet.lives[handle]
            fields = life.plan.fields if life.plan else {}
            proc = ProcId(self.pid, self.pid)
            results.append(Launched(handle, proc, f"%{self.pid}", "s", fields=fields))
        return self.tell(LaunchedAll(tuple(results)))

    def up_again(self, *agents: AgentPlan) -> list[Action]:
        return self.tell(Loaded(plan(*agents), up=True))

    def ready(self, handle: str, state: AgentState = AgentState.IDLE) -> list[Action]:
        return self.tell(Reported(handle, Report(state, self.now, ready=True)))

    def die(self, handle: str, kind: ExitKind = ExitKind.CRASH) -> list[Action]:
        proc = self.record(handle).proc
        assert proc is not None
        return self.tell(Died(handle, proc, Exit(kind, self.now, code=1)))

    def record(self, handle: str) -> AgentRecord:
        return self.fleet.lives[handle].record

    def up(self, *agents: AgentPlan) -> None:
        self.tell(Loaded(plan(*agents), up=True))
        self.launch(*(a.agent.handle for a in agents))
        for one in agents:
            self.ready(one.agent.handle)


def started(actions: list[Action]) -> list[str]:
    return [one.handle for a in actions if isinstance(a, Start) for one in a.starts]


def test_all_agents_without_dependencies_start_in_one_batch() -> None:
    world = World()
    actions = world.tell(Loaded(plan(agent("ana"), agent("bo")), up=True))
    assert started(actions) == ["ana", "bo"]
    assert len([a for a in actions if isinstance(a, Start)]) == 1


def test_a_wave_waits_until_the_one_before_is_ready() -> None:
    world = World()
    agents = (agent("ana"), agent("bo", needs=("ana",), wave=1))
    assert started(world.tell(Loaded(plan(*agents), up=True))) == ["ana"]
    assert world.record("bo").detail == "waits for ana"
    world.launch("ana")
    assert started(world.ready("ana")) == ["bo"]


def test_no_more_than_the_bound_start_at_once_and_each_ready_one_makes_room() -> None:
    world = World()
    agents = tuple(agent(f"a{i:02}") for i in range(20))
    first = started(world.tell(Loaded(plan(*agents), up=True)))
    assert len(first) == 16
    world.launch(*first)
    assert started(world.ready(first[0])) == ["a16"]


def test_a_start_that_never_gets_ready_gives_its_place_away() -> None:
    world = World()
    agents = tuple(agent(f"a{i:02}") for i in range(17))
    world.launch(*started(world.tell(Loaded(plan(*agents), up=True))))
    assert world.fleet.wake_at is not None
    assert started(world.wait(21.0)) == ["a16"]


def test_a_crash_is_followed_by_a_wait_and_a_start_that_tells_the_cause() -> None:
    world = World()
    world.up(agent("ana"))
    assert started(world.die("ana")) == []
    assert world.record("ana").state is AgentState.BACKOFF
    assert world.fleet.wake_at is not None
    assert world.fleet.wake_at > world.now
    actions = world.wait(2.0)
    assert started(actions) == ["ana"]
    assert actions[-1].starts[0].cause == "crash (exit 1)"  # type: ignore[union-attr]
    assert world.record("ana").restarts == 1


def test_after_max_starts_it_fails_and_stays_so_until_a_person_acts() -> None:
    world = World()
    world.tell(Loaded(plan(agent("ana")), up=True))
    starts = 1
    for _ in range(10):
        if world.record("ana").state is AgentState.FAILED:
            break
        world.launch("ana")
        world.die("ana")
        starts += len(started(world.wait(20.0)))
    assert starts == 3
    assert world.record("ana").detail == "3 starts in 10 min"
    assert started(world.wait(10_000.0)) == []
    assert started(world.tell(Asked("restart", ("ana",)))) == ["ana"]
    assert world.record("ana").starts == (world.now,)


def test_a_missing_program_fails_at_once() -> None:
    world = World()
    world.tell(Loaded(plan(agent("ana")), up=True))
    end = Exit(ExitKind.MISSING_PROGRAM, world.now, code=127)
    world.tell(LaunchedAll((Launched("ana", end=end),)))
    assert world.record("ana").state is AgentState.FAILED
    assert world.record("ana").detail == "the program is missing"


def test_a_clean_exit_is_no_failure_and_no_restart() -> None:
    world = World()
    world.up(agent("ana"))
    world.die("ana", ExitKind.CLEAN)
    assert world.record("ana").state is AgentState.STOPPED
    assert started(world.wait(1000.0)) == []


def test_the_death_of_an_earlier_process_changes_nothing() -> None:
    world = World()
    world.up(agent("ana"))
    before = world.fleet
    world.tell(Died("ana", ProcId(999, 1), Exit(ExitKind.CRASH, 0.0)))
    assert world.fleet.lives == before.lives


def test_the_same_plan_again_changes_nothing() -> None:
    world = World()
    agents = (agent("ana"), agent("bo"))
    world.up(*agents)
    assert world.tell(Loaded(plan(*agents), up=True)) == []
    assert not world.record("ana").pending


def test_a_changed_idle_agent_is_restarted_and_a_changed_prompt_begins_afresh() -> None:
    world = World()
    world.up(agent("ana"))
    actions = world.tell(Loaded(plan(agent("ana", prompt="new"))))
    assert actions == [Stop("ana", "prompt changed")]
    actions = world.tell(Ended("ana", Exit(ExitKind.STOPPED, world.now)))
    assert actions[-1].starts[0].fresh  # type: ignore[union-attr]
    assert actions[-1].starts[0].cause == ""  # type: ignore[union-attr]


def test_a_changed_busy_agent_is_restarted_when_next_idle_or_at_once_when_asked() -> None:
    world = World()
    world.up(agent("ana"))
    world.ready("ana", AgentState.BUSY)
    assert world.tell(Loaded(plan(agent("ana", model="big")))) == []
    assert world.record("ana").pending == "model changed"
    assert world.ready("ana") == [Stop("ana", "model changed")]

    other = World()
    other.up(agent("ana"))
    other.ready("ana", AgentState.BUSY)
    assert other.tell(Loaded(plan(agent("ana", model="big")), now=True)) == [Stop("ana", "model changed")]


def test_a_change_that_is_taken_back_before_idle_is_forgotten() -> None:
    world = World()
    world.up(agent("ana"))
    world.ready("ana", AgentState.BUSY)
    world.tell(Loaded(plan(agent("ana", model="big"))))
    world.tell(Loaded(plan(agent("ana"))))
    assert world.ready("ana") == []


def test_an_agent_that_left_the_file_is_stopped_and_forgotten() -> None:
    world = World()
    world.up(agent("ana"), agent("bo"))
    actions = world.tell(Loaded(plan(agent("ana"))))
    assert actions == [Stop("bo", "it left the team file", remove=True)]
    world.tell(Ended("bo", Exit(ExitKind.STOPPED, world.now)))
    assert "bo" not in world.fleet.lives
    assert any(isinstance(a, Save) and a.gone for a in world.log)


def test_a_stopped_agent_stays_stopped_until_it_is_wanted() -> None:
    world = World()
    world.up(agent("ana"))
    assert world.tell(Asked("stop", ("ana",))) == [Stop("ana", "stop was asked for")]
    world.tell(Ended("ana", Exit(ExitKind.STOPPED, world.now)))
    assert world.record("ana").desired is Desired.STOPPED
    assert started(world.tell(Loaded(plan(agent("ana"))))) == []
    assert started(world.tell(Loaded(plan(agent("ana")), up=True))) == ["ana"]


def test_a_stop_during_a_start_takes_effect_after_it() -> None:
    world = World()
    world.tell(Loaded(plan(agent("ana")), up=True))
    world.tell(Asked("stop", ("ana",)))
    assert world.launch("ana")[-1] == Stop("ana", "stop was asked for")


def test_only_touches_nobody_else() -> None:
    world = World()
    world.up(agent("ana"), agent("bo"))
    world.die("bo")
    state = world.record("bo")
    world.tell(Loaded(plan(agent("ana"), agent("bo")), only=("ana",), up=True))
    assert world.record("bo") == state


def test_several_deaths_at_once_are_one_alarm_and_a_paced_return() -> None:
    world = World()
    agents = tuple(agent(f"a{i}") for i in range(6))
    world.up(*agents)
    alarms = [a for one in agents for a in world.die(one.agent.handle) if isinstance(a, Alarm)]
    assert len(alarms) == 1
    assert "agents died" in world.fleet.alarm
    assert len(started(world.wait(5.0))) == 2
    world.wait(70.0)
    assert not world.fleet.alarm


def test_a_new_supervisor_adopts_what_lives_and_restarts_what_died_meanwhile() -> None:
    world = World()
    world.up(agent("ana"), agent("bo"))
    records = tuple(life.record for life in world.fleet.lives.values())

    other = World()
    actions = other.tell(Found(records, ("ana",), "b"))
    assert actions == [Watch("ana", prompted=False)]
    bo = records[1].proc
    assert bo is not None
    assert other.tell(Loaded(plan(agent("ana"), agent("bo")))) == []
    other.tell(Died("bo", bo, Exit(ExitKind.CRASH, other.now, signal=9)))
    assert started(other.wait(2.0)) == ["bo"]
    assert other.record("bo").starts == (records[1].starts[0], other.now)


def test_counters_start_anew_after_a_reboot_but_failed_stays_failed() -> None:
    record = AgentRecord("ana", state=AgentState.FAILED, starts=(5.0, 6.0, 7.0), boot="old")
    world = World()
    world.tell(Found((record,), (), "b"))
    world.tell(Loaded(plan(agent("ana"))))
    assert world.record("ana").state is AgentState.FAILED
    assert world.record("ana").starts == ()


def test_an_agent_in_backoff_waits_only_what_is_left_after_a_supervisor_restart() -> None:
    record = AgentRecord("ana", state=AgentState.BACKOFF, until=1003.0, boot="b", starts=(999.0,))
    world = World()
    world.tell(Found((record,), (), "b"))
    world.tell(Loaded(plan(agent("ana"))))
    assert world.fleet.wake_at == 1003.0
    assert started(world.wait(3.0)) == ["ana"]


def test_nothing_is_started_or_stopped_after_a_yield() -> None:
    world = World()
    world.up(agent("ana"))
    world.tell(Asked("yield"))
    world.die("ana")
    assert started(world.wait(100.0)) == []
    assert world.fleet.wake_at is None


def test_an_unknown_session_leads_to_a_fresh_one() -> None:
    world = World()
    world.up(agent("ana"))
    world.die("ana", ExitKind.NO_CONVERSATION)
    actions = world.wait(2.0)
    assert actions[-1].starts[0].fresh  # type: ignore[union-attr]


def test_a_plan_that_changed_during_a_start_is_noticed_after_it() -> None:
    world = World()
    world.tell(Loaded(plan(agent("ana")), up=True))
    world.tell(Loaded(plan(agent("ana", model="big"))))
    old = agent("ana").fields
    world.tell(LaunchedAll((Launched("ana", ProcId(1, 1), "%1", "s", fields=old),)))
    assert world.record("ana").pending == "model changed"
    assert replace(world.record("ana"), pending=None).fields == old


def test_a_dialog_that_was_not_read_yet_is_the_known_one_and_another_kind_of_block_is_not() -> None:
    world = World()
    world.up(agent("ana"))
    plan_asked = Asking("plan", "m1", "Go on?", (("1", "Yes"),))
    blocked = Report(AgentState.BLOCKED, world.now, ready=True, blocked=BlockedKind.PLAN, detail="the plan")
    world.tell(Reported("ana", replace(blocked, asking=plan_asked)))
    world.tell(Reported("ana", replace(blocked, blocked=None, detail="")))
    assert (world.record("ana").asking, world.record("ana").detail) == (plan_asked, "the plan")
    world.tell(Reported("ana", replace(blocked, blocked=BlockedKind.LOGIN, detail="not logged in")))
    assert (world.record("ana").asking, world.record("ana").detail) == (None, "not logged in")
