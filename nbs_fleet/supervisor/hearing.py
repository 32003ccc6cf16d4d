"""How panes are heard that nothing but their screen tells of: by the clock of tmux, or by their output. Pure.

tmux looks at a subscription once a second, and works for that as long as it stands. Output is told at once and costs
nothing while there is none, but each line of it costs: so it is listened to as long as the panes are quiet.
"""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from nbs_fleet.model import Moment

LOUD = 40
"""Lines of output within one second that are too many: then tmux's look once a second is cheaper."""
OVERLAP = 2.5
"""Seconds in which both tell, so that nothing falls between them: tmux tells of a change within one, and of what
followed it within another."""
PAUSE = 5.0
"""Seconds until it is listened to again after it was loud; twice as many each time,"""
LONG_PAUSE = 300.0
"""up to so many."""
CALM = 60.0
"""Seconds of listening without noise after which the first pause is due again."""


class Mode(StrEnum):
    """What tells of the panes now."""

    CLOCK = "clock"
    BOTH = "both"
    OUTPUT = "output"


class Wanted(Struct, frozen=True):
    """Whether there is a pane that is heard by nothing else."""

    on: bool


class Listening(Struct, frozen=True):
    """Output is told from now on."""


class Deaf(Struct, frozen=True):
    """Output is not told any more, or could not be."""


class Heard(Struct, frozen=True):
    """A line of output came."""


class Ticked(Struct, frozen=True):
    """Something is due."""


Event = Wanted | Listening | Deaf | Heard | Ticked


class Listen(Struct, frozen=True):
    """Have tmux tell of all output."""


class Hush(Struct, frozen=True):
    """Have it do so no longer."""


class Subscribe(Struct, frozen=True):
    """Have tmux look at these panes once a second."""


class Unsubscribe(Struct, frozen=True):
    """Have it do so no longer."""


Action = Listen | Hush | Subscribe | Unsubscribe


class Hearing(Struct, frozen=True):
    """What is known of it; times are monotonic seconds."""

    mode: Mode = Mode.CLOCK
    wanted: bool = False
    since: float | None = None
    """When output began to be told."""
    second: float = 0.0
    """When the second began in which `lines` lines came."""
    lines: int = 0
    pause: float = 0.0
    """The last pause."""
    wake_at: float | None = None


Step = tuple[Hearing, tuple[Action, ...]]


def decide(hearing: Hearing, event: Event, now: Moment) -> Step:
    """What is known after `event`, and what to do."""
    match event:
        case Wanted():
            return _want(hearing, event.on)
        case Listening() if hearing.mode is Mode.BOTH:
            told = replace(hearing, since=now.mono, second=now.mono, lines=0, wake_at=now.mono + OVERLAP)
            return told, ()
        case Heard() if hearing.mode is not Mode.CLOCK:
            if now.mono >= hearing.second + 1.0:
                return replace(hearing, second=now.mono, lines=1), ()
            hearing = replace(hearing, lines=hearing.lines + 1)
            return _give_up(hearing, now) if hearing.lines > LOUD else (hearing, ())
        case Deaf() if hearing.mode is not Mode.CLOCK:
            return _give_up(hearing, now)
        case Ticked() if hearing.wake_at is not None and now.mono >= hearing.wake_at:
            hearing = replace(hearing, wake_at=None)
            if hearing.mode is Mode.BOTH:
                return replace(hearing, mode=Mode.OUTPUT), (Unsubscribe(),)
            return _want(hearing, hearing.wanted)
    return hearing, ()


def _want(hearing: Hearing, on: bool) -> Step:
    hearing = replace(hearing, wanted=on)
    if on and hearing.mode is Mode.CLOCK and hearing.wake_at is None:
        return replace(hearing, mode=Mode.BOTH, since=None), (Listen(),)
    if not on and hearing.mode is not Mode.CLOCK:
        return replace(hearing, mode=Mode.CLOCK, since=None, wake_at=None), (Hush(),)
    return hearing, ()


def _give_up(hearing: Hearing, now: Moment) -> Step:
    """Back to the clock, for longer each time unless there was long calm before."""
    calm = hearing.since is not None and now.mono - hearing.since >= CALM
    pause = PAUSE if calm or not hearing.pause else min(2 * hearing.pause, LONG_PAUSE)
    told: tuple[Action, ...] = (Subscribe(), Hush()) if hearing.mode is Mode.OUTPUT else (Hush(),)
    return replace(hearing, mode=Mode.CLOCK, since=None, pause=pause, wake_at=now.mono + pause), told
