"""One soak: a team comes up, faults and messages come over it, and then everything must be right again."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from nbs_fleet.sidecar.delivery import UNUSED
from tests.chaos import verdict
from tests.chaos.ground import TEAM, Ground, handles
from tests.chaos.kinds import PASSING, REQUIRED, Kind
from tests.chaos.schedule import Strike, schedule
from tests.chaos.strikes import Striker
from tests.chaos.traffic import Letters, Sent, Traffic
from tests.e2e.delivery.arrivals import Requests

RECOVERY = 150.0
"""Seconds in which everything must be right again, on a loaded machine."""
LOOK = 0.3


class Outcome(Struct, frozen=True):
    """What came of a soak: `wrong` is empty if all is well; counts by what they count."""

    seed: int
    seconds: float
    recovered: float
    wrong: tuple[str, ...]
    faults: dict[str, int]
    files: dict[str, int]
    missed: dict[str, int]
    messages: dict[str, int]
    remarks: tuple[str, ...]


def soak(seed: int, seconds: float, say: Callable[[str], None], *, keep: str = "") -> Outcome:
    """Play one soak; nothing of it is left, but a copy of its folders in `keep` if something was wrong."""
    ground = Ground()
    try:
        outcome = _Soak(ground, seed, seconds, say).play()
        if keep and outcome.wrong:
            ground.copy(Path(keep) / str(seed))
        return outcome
    finally:
        ground.close()


class _Soak:
    def __init__(self, ground: Ground, seed: int, seconds: float, say: Callable[[str], None]) -> None:
        self.ground, self.seed, self.seconds, self.say = ground, seed, seconds, say
        self.traffic = Traffic(ground, seed)
        self.letters = Letters(ground, seed)
        self.striker = Striker(ground, self.traffic)
        self.wrong: list[str] = []
        self.counts: Counter[str] = Counter()
        self.began = time.monotonic()
        self.recovered = 0.0
        self.looked = 0
        self.sent: list[Sent] = []

    def play(self) -> Outcome:
        """All of it."""
        try:
            first = self.ground.up()
            if first.code != 0:
                self.wrong.append(f"the team did not come up: {first}")
            else:
                self._signal()
                self._faults()
                self._peace()
                self._judge()
        finally:
            self._end()
        return self._outcome()

    def _signal(self) -> None:
        """One agent is done: a signal and an item of the queue are there to be struck."""
        asyncio.run(self.ground.world.run("signal", "complete", "all done", as_agent="a12"))

    def _faults(self) -> None:
        self.traffic.start()
        self.letters.start()
        late: list[Strike] = []
        for one in schedule(self.seed, self.seconds):
            self._do(one, late)
        for one in late:
            self._do(one, [])
        self.letters.stop()
        self.traffic.stop()
        self.sent = [*self.traffic.accepted, *self.letters.accepted]

    def _do(self, one: Strike, late: list[Strike]) -> None:
        self.say(f"{time.monotonic() - self.began:6.1f} s  {one.kind} {f'{one.file} {one.way}' if one.file else ''}")
        if not self.striker.strike(one) and one.file not in PASSING:
            late.append(one)
        self._tend(one)

    def _tend(self, one: Strike) -> None:
        """What a person does who looks at `ps` now and then, and does what it says."""
        self.looked += 1
        if self.looked % 3 and one.kind not in (Kind.KILL_SERVER, Kind.UP_DOWN):
            return
        done = self.ground.command("ps", "--json", "--team", TEAM)
        try:
            ps = json.loads(done.out) if done.code == 0 else {}
        except ValueError:
            self.wrong.append(f"no JSON: {done}")
            return
        if done.code != 0 or ps["tmux"] == "dead" or ps["supervisor"]["state"] == "failed":
            self.counts["up by the person"] += 1
            self.ground.up()

    def _peace(self) -> None:
        """Wait until all is right, with a person who brings the team up once."""
        last = self.ground.up()
        self.ground.command("resume", "--team", TEAM, *handles())
        if last.code not in (0, 5):
            self.wrong.append(f"in peace, up does not work: {last}")
        struck = self._struck()
        eyes, sent = self.ground.world.eyes, self.sent

        def left() -> list[str]:
            self._answer()
            return verdict.unsettled(eyes, handles()) + verdict.undelivered(eyes, sent, struck)

        self.recovered = self._await(left)
        self.recovered += self._await(lambda: verdict.unsaid(self.ground.run_dir, self.striker.damaged, self._told()))

    def _answer(self) -> None:
        """What a person chooses where a damaged hook took a message and handed nothing over: the client starts anew."""
        for item in self.ground.world.eyes.items():
            if UNUSED in item.title:
                self.counts["restarts by the person"] += 1
                self.ground.command("answer", "--team", TEAM, item.id, "restart")

    def _told(self) -> str:
        return verdict.told(self.ground, self.striker.damaged)

    def _struck(self) -> set[str]:
        """Messages whose own files were damaged."""
        found = (re.search(r"[a-z]-[0-9a-z]{8}-[0-9a-z]{5}", one.path) for one in self.striker.damaged)
        return {match[0] for match in found if match}

    def _judge(self) -> None:
        eyes, run = self.ground.world.eyes, self.ground.run_dir
        sent, striker, struck = self.sent, self.striker, self._struck()
        self._start_anew()
        for argv in (("doctor", "--json"), ("inbox", "list", "--team", TEAM), ("logs", "--team", TEAM)):
            self.ground.command(*argv)
        times = arrived(Path(self.ground.world.folders.home))
        self.wrong += verdict.arrivals(
            eyes, sent, times=times, deaths=striker.deaths, struck=struck, counts=self.counts
        )
        self.wrong += verdict.struck_messages(eyes, sent, times, struck, self._told())
        self.wrong += verdict.posts(eyes, sent, self.counts)
        self.wrong += verdict.logged(run)
        self.wrong += verdict.crashes(self.ground.world.folders.state)
        living = self.ground.clients()
        if len(living) != len(handles()):
            needy = {item.agent for item in eyes.items()}
            self.wrong += [f"{h} has no client" for h in handles() if h not in living and h not in needy]

    def _start_anew(self) -> None:
        """Agents whose launch.sh or prompt was damaged start once more: these are rendered anew for each start."""
        struck = {one.path.split("/")[1] for one in self.striker.damaged if one.kind in verdict.ANEW}
        if not struck:
            return
        done = self.ground.command("restart", "--team", TEAM, *sorted(struck))
        if done.code != 0:
            self.wrong.append(f"agents can't be restarted: {done}")
        self._await(lambda: verdict.unsettled(self.ground.world.eyes, sorted(struck)))

    def _await(self, left: Callable[[], list[str]]) -> float:
        """Wait until nothing is left to come right; returns the seconds it took."""
        began = time.monotonic()
        while lines := left():
            if time.monotonic() - began > RECOVERY:
                self.wrong += [f"not right after {RECOVERY:.0f} s: {line}" for line in lines]
                break
            time.sleep(LOOK)
        return time.monotonic() - began

    def _end(self) -> None:
        left = asyncio.run(self.ground.world.end())
        self.wrong += [f"left behind: {line}" for line in left]
        self.wrong += [f"left behind: {path}" for path in Path(self.ground.run_dir).glob("*.sock")]
        self.wrong += verdict.commands(self.ground.said)
        self.wrong += [f"a file of a kind that nobody knows: {path}" for path in sorted(self.striker.unknown)]

    def _outcome(self) -> Outcome:
        striker, refused = self.striker, self.traffic.refused + self.letters.refused
        never: list[str] = [kind for kind in Kind if not striker.done[kind]]
        never += [f"damage of: {file}" for file in REQUIRED if not striker.files[file]]
        self.wrong += [f"never injected: {what}" for what in never] if not self.wrong or striker.done else []
        self.counts.update({"refused": refused, "questions": self.traffic.asked})
        how = "on a small disk of its own" if self.ground.mounted else "by a limit on the supervisor's writes only"
        return Outcome(
            seed=self.seed,
            seconds=time.monotonic() - self.began,
            recovered=self.recovered,
            wrong=tuple(self.wrong),
            faults={str(kind): striker.done[kind] for kind in Kind},
            files={file: striker.files[file] for file in (*REQUIRED, *sorted(PASSING))},
            missed=dict(striker.missed),
            messages=dict(self.counts),
            remarks=(f"disk full {how}",),
        )


def arrived(home: Path) -> Counter[str]:
    """How often each message came into a conversation, by the logs of the simulated models."""
    times: Counter[str] = Counter()
    for log in home.glob("sim-*.log"):
        requests = Requests()
        for line in log.read_bytes().split(b"\n"):
            try:
                body = json.loads(line)
            except ValueError:
                continue  # cut by the death of its writer
            if isinstance(body, dict):
                requests.take(str(body.get("session", "")), body)
        times.update(requests.times())
    return times
