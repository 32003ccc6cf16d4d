"""Stuck agents: when an idle, failing or blocked one is nudged, restarted or shown to a person. Pure."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from nbs_fleet.model import AgentState, ErrorKind
from nbs_fleet.spec.team import Recovery

Trigger = Literal["idle", "error", "prompt"]

NUDGE_ECHO = 60.0
"""Seconds after our own nudge in which activity is not taken for progress of the agent's own."""
RETRY_FIRST = 15.0
RETRY_MAX = 600.0

WAITING_HELPS = (ErrorKind.OVERLOAD, ErrorKind.NETWORK, ErrorKind.OTHER)
"""Errors after which the same request may work later; a limit ends by itself at a time that is often shown."""

TEXTS: dict[Trigger, str] = {
    "idle": "You stopped and nobody heard that you are done. Go on, or say `nbs-fleet signal complete` or "
    "`nbs-fleet signal escalate WHY`.",
    "error": "Your last turn ended in an error of the service, not of yours. Please go on where you were.",
    "prompt": "A question of yours is still open. If you can go on without an answer, do so.",
}


class Rules(Struct, frozen=True):
    """The team file's wishes for one agent."""

    on_idle: Recovery = Recovery()
    on_error: Recovery = Recovery()
    on_prompt: Recovery = Recovery()
    must_signal: bool = False
    """`stop: signal`: idle without a signal is not the end of its work."""
    grace: float = 60.0


class Stuck(Struct, frozen=True):
    """What is remembered about being stuck; `tries` survive restarts in the agent's record. Monotonic seconds."""

    trigger: Trigger | None = None
    since: float = 0.0
    due: float | None = None
    size: int = 0
    """Bytes of the transcript when the idle was noticed."""
    tries: dict[str, int] = {}
    nudged_at: float = -1e9
    escalated: str = ""


class Scene(Struct, frozen=True):
    """The agent as far as recovery cares."""

    state: AgentState
    ready: bool
    size: int
    error: ErrorKind | None = None
    detail: str = ""
    until_mono: float | None = None
    signalled: bool = False
    waiting: bool = False
    """A message of ours is on its way to it."""


class Nudge(Struct, frozen=True, tag=True):
    """Put a nudge into the agent's queue."""

    text: str


class Restart(Struct, frozen=True, tag=True):
    """Ask the supervisor to restart the agent; `resume` keeps its session."""

    why: str
    resume: bool = True


class Escalate(Struct, frozen=True, tag=True):
    """Show it to a person: one record per agent and reason."""

    reason: str
    text: str


class Settle(Struct, frozen=True, tag=True):
    """The agent moved on by itself: the escalation closes."""


Remedy = Nudge | Restart | Escalate | Settle


def recover(stuck: Stuck, scene: Scene, rules: Rules, now: float) -> tuple[Stuck, tuple[Remedy, ...]]:
    """What to do about an agent that does not move; nothing while it works or nobody minds."""
    trigger = _trigger(scene, rules)
    if trigger is None:
        return _moved(stuck, scene, now)
    rule = {"idle": rules.on_idle, "error": rules.on_error, "prompt": rules.on_prompt}[trigger]
    if stuck.trigger != trigger:
        due = now + _first_wait(trigger, stuck, scene, rules, now)
        # A second idle signal while one waits changes nothing; another trigger begins afresh.
        stuck = replace(stuck, trigger=trigger, since=now, due=due, size=scene.size)
    if stuck.due is None or now < stuck.due:
        return stuck, ()
    if trigger == "idle" and scene.size != stuck.size:
        # It wrote something after all: the grace begins again.
        return replace(stuck, size=scene.size, due=now + rules.grace), ()
    if scene.waiting:
        return replace(stuck, due=now + rules.grace), ()
    return _act(stuck, scene, rule, trigger, now)


def _trigger(scene: Scene, rules: Rules) -> Trigger | None:
    if not scene.ready:
        return None
    if scene.error is not None and scene.state in (AgentState.IDLE, AgentState.LIMITED):
        return "error"
    if scene.state is AgentState.BLOCKED and rules.on_prompt.do != "escalate":
        # Being blocked is shown to a person anyway; only another wish makes it a case for recovery.
        return "prompt"
    if scene.state is AgentState.IDLE and not scene.signalled and _minds_idle(rules):
        return "idle"
    return None


def _minds_idle(rules: Rules) -> bool:
    """An idle agent of `stop: free` is done, unless the team file says what to do about it."""
    return rules.must_signal or rules.on_idle.do not in ("escalate", "ignore")


def _first_wait(trigger: Trigger, stuck: Stuck, scene: Scene, rules: Rules, now: float) -> float:
    if trigger == "idle":
        return rules.grace
    if trigger == "prompt":
        return 0.0
    if scene.until_mono is not None:
        return max(0.0, scene.until_mono - now) + 1.0
    if scene.error in WAITING_HELPS or scene.error is ErrorKind.RATE_LIMIT:
        return min(RETRY_FIRST * 2.0 ** min(stuck.tries.get("error", 0), 10), RETRY_MAX)
    return 0.0


def _act(stuck: Stuck, scene: Scene, rule: Recovery, trigger: Trigger, now: float) -> tuple[Stuck, tuple[Remedy, ...]]:
    tries = stuck.tries.get(trigger, 0)
    do = rule.do
    if trigger == "error" and scene.error not in (*WAITING_HELPS, ErrorKind.RATE_LIMIT, None):
        # No retry mends a missing login, an empty account, a full context or a refusal.
        do = "ignore" if do == "ignore" else "escalate"
    if do == "ignore":
        return replace(stuck, due=None), ()
    if do == "escalate" or tries >= rule.attempts:
        return _escalate(stuck, scene, trigger, exhausted=do != "escalate")
    counted = {**stuck.tries, trigger: tries + 1}
    stuck = replace(stuck, tries=counted, nudged_at=now, due=now + max(rule.cooldown, NUDGE_ECHO), size=scene.size)
    if do == "nudge":
        return stuck, (Nudge(rule.text or TEXTS[trigger]),)
    return stuck, (Restart(f"on_{trigger}: {do}", resume=do == "resume"),)


def _escalate(stuck: Stuck, scene: Scene, trigger: Trigger, *, exhausted: bool) -> tuple[Stuck, tuple[Remedy, ...]]:
    reason = f"{trigger}: exhausted" if exhausted else trigger
    stuck = replace(stuck, due=None)
    if stuck.escalated == reason:
        return stuck, ()
    return replace(stuck, escalated=reason), (Escalate(reason, scene.detail),)


def _moved(stuck: Stuck, scene: Scene, now: float) -> tuple[Stuck, tuple[Remedy, ...]]:
    """It works, or nobody minds: timers end; real progress resets the counters and closes an escalation."""
    if stuck.trigger is None and not stuck.escalated:
        return stuck, ()
    progress = scene.state in (AgentState.BUSY, AgentState.COMPACTING) and now > stuck.nudged_at + NUDGE_ECHO
    after = replace(stuck, trigger=None, due=None)
    if progress:
        after = replace(after, tries={})
    done = progress or scene.signalled or scene.state is AgentState.IDLE
    if stuck.escalated and done:
        return replace(after, escalated=""), (Settle(),)
    return after, ()
