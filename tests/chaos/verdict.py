"""What must hold once the faults have stopped: who is up, what arrived, what was said of damage, what commands said."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Sequence

from nbs_fleet.launch.messages import Mailbox
from nbs_fleet.model import Delivered, Outcome
from nbs_fleet.testing.observe import Eyes
from nbs_fleet.testing.world import Done
from tests.chaos.damage import Damaged, put_right, read
from tests.chaos.ground import Ground
from tests.chaos.kinds import Way
from tests.chaos.traffic import Sent

CODES = {0, 1, 2, 3, 4, 5, 124, 130}
FAULTY = re.compile(r"Traceback \(most recent call last\)|this is a bug in nbs-fleet|Exception ignored")
SETTLED = ("idle",)
NEEDY = ("failed", "blocked", "limited")
ANEW = {"launch.sh", "prompt"}
"""Rendered anew for each start, which is tried."""
MOOT = {
    "temporary file",
    "supervisor's lock",
    "up's lock",
    "note of typing",
    "bell or probe",
    "turn mark",
    "hook event",
    "mark of a pause",
}
"""Text that nothing depends on, beside a lock that the kernel holds; marks that are made again when needed, or taken away
by the person who made them; and hook
events, which are read once and at once: whether that was before the damage nobody can see from outside."""
TOLD = ("story.jsonl", "supervisor.log", "supervisor.failed")
MESSAGES = {"message", "mail", "claimed mail"}
"""Judged by what became of them."""
HISTORY = {"team's story", "agent's story", "supervisor's log", "capture", "message that ended"}
"""What people read back; nothing else depends on it, and what is gone of it is gone."""


def commands(said: Iterable[Done]) -> list[str]:
    """Commands that did not end, or ended otherwise than commands may."""
    return [f"a command went wrong: {done}" for done in said if _faulty(done)]


def _faulty(done: Done) -> bool:
    return done.code not in CODES or bool(FAULTY.search(done.out)) or (done.code == 1 and not done.out.strip())


def unsettled(eyes: Eyes, handles: Iterable[str]) -> list[str]:
    """Agents that are neither idle nor told to need somebody; empty once all is well."""
    agents = {agent.handle: agent for agent in eyes.agents()}
    waiting = {item.agent for item in eyes.items()}
    found = []
    for handle in handles:
        agent = agents.get(handle)
        if agent is None:
            found.append(f"{handle} has no record")
        elif agent.state in NEEDY and handle not in waiting:
            found.append(f"{handle} is {agent.state} ({agent.detail}), and nothing in the queue says so")
        elif agent.state not in (*SETTLED, *NEEDY):
            found.append(f"{handle} is {agent.state} ({agent.detail})")
    return found


def undelivered(eyes: Eyes, sent: Sequence[Sent], struck: set[str]) -> list[str]:
    """Directives that were accepted and have not ended."""
    found = []
    for one in sent:
        if one.kind != "directive" or one.id in struck:
            continue
        there = Mailbox(eyes.paths.agent(one.to)).find(one.id)
        if there is None:
            found.append(f"{one.id} to {one.to} is lost")
        elif not isinstance(there, Delivered):
            found.append(f"{one.id} to {one.to} is still in {there.place}")
    return found


def arrivals(
    eyes: Eyes,
    sent: Sequence[Sent],
    *,
    times: Counter[str],
    deaths: dict[str, list[float]],
    struck: set[str],
    counts: Counter[str],
) -> list[str]:
    """Directives that did not arrive, or more than once although their client lived on."""
    found = []
    for one in sent:
        if one.kind != "directive" or one.id in struck:
            continue
        there = Mailbox(eyes.paths.agent(one.to)).find(one.id)
        outcome = there.outcome if isinstance(there, Delivered) else None
        came = times[one.id]
        counts[f"directives {outcome}"] += 1
        if came == 0 and outcome is Outcome.DELIVERED:
            found.append(f"{one.id} to {one.to} is called delivered ({there}) and never arrived")
        elif came == 0:
            found.append(f"{one.id} to {one.to} never arrived: {there}")
        elif came > 1 and any(at >= one.at for at in deaths[one.to]):
            counts["directives again after a death"] += 1
        elif came > 1:
            found.append(f"{one.id} to {one.to} arrived {came} times although its client lived: {there}")
    return found


def struck_messages(eyes: Eyes, sent: Sequence[Sent], times: Counter[str], struck: set[str], said: str) -> list[str]:
    """Messages whose own files were damaged: they arrived all the same, or still wait to be seen, or it was told."""
    found = []
    for one in sent:
        if one.id not in struck:
            continue
        there = Mailbox(eyes.paths.agent(one.to)).find(one.id)
        outcome = there.outcome if isinstance(there, Delivered) else None
        if outcome is Outcome.DELIVERED and not times[one.id]:
            found.append(f"{one.id} to {one.to} was damaged, is called delivered ({there}), and never arrived")
        elif there is None and not times[one.id] and f"{one.id}.json" not in said:
            found.append(f"{one.id} to {one.to} was damaged, is gone, and nobody says so")
    return found


def posts(eyes: Eyes, sent: Sequence[Sent], counts: Counter[str]) -> list[str]:
    """Posts and events that are not where they were put, exactly once."""
    found = []
    chat = [message.text for message in eyes.messages("live") or ()]
    bus = [event.text for event in (*(eyes.pending(None) or ()), *(eyes.processed(None) or ()))]
    for one in sent:
        if one.kind == "directive":
            continue
        there = sum(one.token in text for text in (chat if one.kind == "post" else bus))
        counts[f"{one.kind}s"] += 1
        if there != 1:
            found.append(f"{one.kind} {one.token} to {one.to} is there {there} times")
    return found


def _moot(one: Damaged) -> bool:
    """Whether nothing is to be put right: an agent's signal that is gone is one that it took back."""
    return one.kind in HISTORY | ANEW | MOOT | MESSAGES or (one.kind == "signal" and one.way is Way.DELETE)


def unsaid(run: str, damaged: Sequence[Damaged], said: str) -> list[str]:
    """Damage that was neither put right nor said. Of a file that was struck twice the last time counts."""
    last = {one.path: one for one in damaged}
    return [
        f"{one} ({one.kind}): neither put right nor said"
        for one in last.values()
        if not _moot(one) and not put_right(run, one) and not _named(one, said)
    ]


def _named(one: Damaged, said: str) -> bool:
    """Whether what the product told names the file: by its path, or by the message that it holds."""
    identity = re.search(r"[a-z]-[0-9a-z]{8}-[0-9a-z]{5}", one.path)
    name = "/".join(one.path.split("/")[-2:]) if "/" in one.path else one.path
    return name in said or (identity is not None and identity[0] in said)


def told(ground: Ground, damaged: Sequence[Damaged]) -> str:
    """All that the product told: its stories, its log, and what commands printed; also what was then damaged of it."""
    # What `send` says was said before the damage.
    texts = [done.out for done in ground.said if done.args[:1] != ("send",)]
    texts += [one.before.decode("utf-8", "replace") for one in damaged if os.path.basename(one.path).startswith(TOLD)]
    for top, _, names in os.walk(ground.run_dir):
        paths = [os.path.join(top, name) for name in names if name.startswith(TOLD)]
        texts += [read(path).decode("utf-8", "replace") for path in paths]
    return "\n".join(texts)


def logged(run: str) -> list[str]:
    """Faults of our own in the supervisor's log and in the stories."""
    log = read(os.path.join(run, "supervisor.log")).decode("utf-8", "replace")
    return [f"the supervisor's log has: {log[found.start() : found.start() + 1500]}" for found in FAULTY.finditer(log)][
        :3
    ]


def crashes(state: str) -> list[str]:
    """Crash files that commands left."""
    folder = os.path.join(state, "nbs-fleet", "crashes")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    return [f"a command crashed: {read(os.path.join(folder, name)).decode('utf-8', 'replace')}" for name in names]
