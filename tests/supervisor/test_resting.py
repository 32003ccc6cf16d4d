"""Clients that rest make room for other starts, ready or not; after a mass death they do not."""

from __future__ import annotations

from nbs_fleet.supervisor.fleet import AwaitRest, Loaded, Rested, Watch
from tests.supervisor.test_decide import World, agent, plan, started


def test_a_client_that_rests_makes_room_though_it_is_not_ready() -> None:
    world = World()
    agents = tuple(agent(f"a{i:02}") for i in range(19))
    first = started(world.tell(Loaded(plan(*agents), up=True)))
    (asked,) = [a for a in world.launch(*first) if isinstance(a, AwaitRest)]
    assert list(asked.clients) == first
    resting = {handle: asked.clients[handle] for handle in ("a00", "a01")}
    actions = world.tell(Rested(resting))
    assert started(actions) == ["a16", "a17"]
    assert [list(a.clients) for a in actions if isinstance(a, AwaitRest)] == [first[2:]]


def test_it_is_asked_who_rests_only_while_somebody_waits_for_a_place_and_one_at_a_time() -> None:
    world = World()
    agents = tuple(agent(f"a{i:02}") for i in range(17))
    world.launch(*started(world.tell(Loaded(plan(*agents), up=True))))
    assert world.fleet.looking
    assert world.wait(0.1) == []
    (again,) = world.tell(Rested({}))
    assert isinstance(again, AwaitRest)
    assert started(world.ready("a00")) == ["a16"]
    world.launch("a16")
    assert world.tell(Rested({})) == []


def test_the_rest_of_a_client_that_has_died_makes_no_room_for_the_next_one() -> None:
    world = World()
    agents = tuple(agent(f"a{i:02}") for i in range(17))
    first = started(world.tell(Loaded(plan(*agents), up=True)))
    (asked,) = [a for a in world.launch(*first) if isinstance(a, AwaitRest)]
    assert started(world.die("a00")) == ["a16"]
    world.launch("a16")
    assert started(world.wait(1.5)) == []
    assert not started(world.tell(Rested({"a00": asked.clients["a00"]})))


def test_after_a_mass_death_rest_makes_no_room() -> None:
    world = World()
    agents = tuple(agent(f"a{i}") for i in range(6))
    world.up(*agents)
    for one in agents:
        world.die(one.agent.handle)
    back = started(world.wait(5.0))
    assert len(back) == 2
    assert world.launch(*back) == [Watch(handle, prompted=False, died=True) for handle in back]
    assert world.tell(Rested({handle: proc for handle in back if (proc := world.record(handle).proc)})) == []
