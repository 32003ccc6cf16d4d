"""What befalls a team: a script made from a seed, done by people and by bad luck, and people who answer the queue."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable

from msgspec import Struct

from nbs_fleet.attention.queue import Item
from nbs_fleet.model import AgentState, ExitKind, MessageKind, Priority
from nbs_fleet.sidecar.actions import SETTLED, Settled
from nbs_fleet.supervisor import fleet as of
from tests.simulation.world import World

TURMOIL, PEACE = 3_000.0, 1_800.0
"""Seconds of each round: things happen, then the team is left in peace with people who answer."""
PER_HOUR = {
    "message": 8.0,
    "interrupt": 0.6,
    "command": 0.6,
    "chat": 5.0,
    "event": 3.0,
    "kill": 1.2,
    "freeze": 0.6,
    "pane": 0.2,
    "draft": 2.0,
    "copy": 0.6,
    "stop": 0.3,
    "restart": 0.4,
    "pause": 0.3,
    "supervisor": 1.5,
    "up": 0.3,
    "tmux": 0.06,
    "reboot": 0.04,
    "disk": 0.5,
    "clock": 0.25,
    "curse": 0.15,
}
"""How often each thing happens to a team in an hour of turmoil."""


class Happening(Struct, frozen=True):
    """At second `t` of the whole, `what` happens to `handle`; `size` in [0, 1) says how much of it."""

    t: float
    what: str
    handle: str
    size: float


def script(seed: int, rounds: int, handles: Iterable[str]) -> tuple[Happening, ...]:
    """All that happens in so many rounds."""
    chance = random.Random(f"{seed}/script")  # repeatable, not secret
    names, weights = list(PER_HOUR), list(PER_HOUR.values())
    people = list(handles)
    found: list[Happening] = []
    for number in range(rounds):
        t = number * (TURMOIL + PEACE)
        end = t + TURMOIL
        while (t := t + chance.expovariate(sum(weights) / 3_600.0)) < end:
            found.append(Happening(t, chance.choices(names, weights)[0], chance.choice(people), chance.random()))
    return tuple(found)


class Life:
    """Plays a script in a world, round after round."""

    def __init__(self, world: World, story: tuple[Happening, ...], rounds: int) -> None:
        self.world, self.rounds = world, rounds
        for happening in story:
            world.line.after(happening.t, self._happen, happening)
        world.boss.start(up=True)
        self._people_soon()

    def play(self) -> None:
        """All rounds; BrokenLawError where something is not as it must be."""
        world = self.world
        for number in range(self.rounds):
            begin = number * (TURMOIL + PEACE)
            world.calm = False
            world.line.run(begin + TURMOIL)
            self._calm_down()
            world.line.run(begin + TURMOIL + PEACE)
            world.laws.peace()

    def _calm_down(self) -> None:
        world = self.world
        world.calm = True
        world.doom = world.room = 0
        world.cursed.clear()
        world.disk.full = False
        world.logged_out = False
        world.copy_mode = dict.fromkeys(world.handles, False)
        for handle in world.handles:
            self._unpause(handle)
            client = world.panes.get(handle)
            if client is not None:
                client.go_on()
                client.person_ends()
        if world.tmux_gone or not world.boss.alive:
            self._up()
        world.line.after(5.0, world.boss.post, of.Asked("start", world.handles))

    # what happens

    def _happen(self, it: Happening) -> None:
        self.world.laws.count(f"happened: {it.what}")
        deeds: dict[str, Callable[[Happening], None]] = {
            "tmux": self._lose_all,
            "reboot": self._lose_all,
            "disk": self._fill_disk,
            "clock": self._set_clock,
            "supervisor": self._end_supervisor,
            "stop": self._ask,
            "restart": self._ask,
            "pause": self._pause,
            "copy": self._copy_mode,
            "curse": self._curse,
            "kill": self._to_client,
            "pane": self._to_client,
            "freeze": self._to_client,
            "draft": self._to_client,
        }
        deeds.get(it.what, self._say)(it)

    def _say(self, it: Happening) -> None:
        """Somebody wants something of an agent, or of the team."""
        world, handle = self.world, it.handle
        match it.what:
            case "message":
                priority = (Priority.NORMAL, Priority.HIGH, Priority.LOW)[int(it.size * 3)]
                world.accept(handle, priority=priority)
            case "interrupt":
                world.accept(handle, interrupt=True)
            case "command":
                world.accept(handle, MessageKind.COMMAND)
            case "chat":
                world.chat(handle)
            case "event":
                world.event(handle)
            case "up":
                self._up()
            case _:
                raise ValueError(it.what)

    def _to_client(self, it: Happening) -> None:
        """Something befalls the client that runs, if one does."""
        client, line = self.world.panes.get(it.handle), self.world.line
        if client is None or not client.alive:
            return
        match it.what:
            case "kill" if it.size < 0.6:
                client.doom = 1 + int(it.size * 20)
            case "kill":
                client.die(ExitKind.CRASH, signal=9)
            case "pane":
                client.die(ExitKind.PANE_CLOSED)
            case "freeze":
                client.frozen = True
                line.after(1.0 + 60.0 * it.size**2, client.go_on)
            case _:
                client.person_types()
                line.after(2.0 + 90.0 * it.size**2, client.person_ends)

    def _copy_mode(self, it: Happening) -> None:
        self.world.copy_mode[it.handle] = True
        self.world.line.after(2.0 + 60.0 * it.size, self._leave_copy_mode, it.handle)

    def _ask(self, it: Happening) -> None:
        world = self.world
        world.boss.post(of.Asked(it.what, (it.handle,), fresh=it.size > 0.8))
        if it.what == "stop":
            world.line.after(10.0 + 600.0 * it.size, world.boss.post, of.Asked("start", (it.handle,)))

    def _pause(self, it: Happening) -> None:
        self.world.disk.folders[it.handle].paused = True
        self.world.notice(it.handle, "pause")
        self.world.line.after(5.0 + 300.0 * it.size, self._unpause, it.handle)

    def _end_supervisor(self, it: Happening) -> None:
        """In the middle of its work, or at any moment."""
        if it.size < 0.7:
            self.world.doom = 1 + int(it.size * 60)
        else:
            self.world.kill_supervisor(0.5 + 30.0 * it.size**4)

    def _fill_disk(self, it: Happening) -> None:
        """In the middle of the fleet's work, or at any moment."""
        self.world.room = 1 + int(it.size * 60)
        if it.size > 0.6:
            self.world.disk.full = True
        self.world.line.after(5.0 + 120.0 * it.size, self._make_room)

    def _set_clock(self, it: Happening) -> None:
        self.world.line.jump((it.size - 0.5) * 2 * (3_600.0 if it.size < 0.2 else 30.0))

    def _curse(self, it: Happening) -> None:
        self.world.cursed.add(it.handle)
        self.world.line.after(60.0 + 600.0 * it.size, self.world.cursed.discard, it.handle)

    def _lose_all(self, it: Happening) -> None:
        """The tmux server, and with it every pane and the supervisor; a person brings the team up again."""
        world = self.world
        world.tmux_gone = True
        world.boss.die()
        for client in world.panes.values():
            client.die(ExitKind.TMUX_DIED)
        if it.what == "reboot":
            world.line.reboot()
        world.line.after(3.0 + 200.0 * it.size, self._up)

    def _up(self) -> None:
        self.world.tmux_gone = False
        self.world.boss.start(up=True)

    def _make_room(self) -> None:
        self.world.disk.full, self.world.room = False, 0

    def _leave_copy_mode(self, handle: str) -> None:
        self.world.copy_mode[handle] = False

    def _unpause(self, handle: str) -> None:
        self.world.disk.folders[handle].paused = False
        station = self.world.boss.stations.get(handle)
        if station is not None:
            station.notice("pause")

    # people who answer

    def _people_soon(self) -> None:
        world = self.world
        pause = 5.0 if world.calm else world.chance(5.0, 400.0)
        world.line.after(pause, self._people)

    def _people(self) -> None:
        world = self.world
        items = world.disk.queue.visible(world.line.now().wall)
        if items and world.boss.alive:
            self._answer(items[0] if world.calm else world.line.random.choice(items))
        self._people_soon()

    def _answer(self, item: Item) -> None:
        world, handle, need = self.world, item.handle, item.need
        station, client = world.boss.stations.get(handle), world.panes.get(handle)
        folder = world.disk.folders[handle]
        world.laws.count(f"answered: {need.kind}")
        if need.mark and station is not None:
            station.answer(need.mark)
            return
        match need.kind:
            case "failed" | "crash":
                world.boss.post(of.Asked("restart", (handle,)))
            case "escalation" if "message" in need.title:
                world.boss.post(of.Asked("restart", (handle,)))
            case "login" | "limit" | "error" | "escalation" | "idle-done":
                world.logged_out = world.logged_out and need.kind != "login"
                dismissed = need.kind in ("escalation", "idle-done")
                folder.signal = (SETTLED if dismissed else None, "")
                if station is not None:
                    station.notice("signal")
                    station.post(Settled())
                if need.kind in ("login", "limit", "error"):
                    world.accept(handle)
            case _:
                # The dialog was not read: it is answered in the pane.
                if client is not None and client.dialog is not None:
                    client.choose(client.dialog.mark)
                elif client is not None and client.state is AgentState.IDLE:
                    world.notice(handle, "flicker")
