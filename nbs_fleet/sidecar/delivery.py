"""Getting messages in: which rung, when, and what proves it. Pure; the ladder of keys, hooks and mail."""

from __future__ import annotations

from collections.abc import Callable
from typing import assert_never

from msgspec.structs import replace

from nbs_fleet.model import AgentState, Outcome
from nbs_fleet.sidecar.parcels import (
    FROZEN,
    HIDDEN,
    REFUSALS,
    Carried,
    Counted,
    Ending,
    Enter,
    Finish,
    Hand,
    Handed,
    Means,
    Parcel,
    Place,
    Post,
    PostAction,
    PostEvent,
    Probe,
    ProbeTaken,
    Proved,
    PutBack,
    PutInbox,
    PutMail,
    Rehook,
    Renewed,
    Ring,
    Seek,
    Sought,
    TakeBack,
    Type,
    Typed,
    View,
)
from nbs_fleet.sidecar.rungs import INBOX_TRIES, is_left_behind, rung_for, takes

PROBE_SECONDS = 5.0
"""How long a client may take to claim the probe once it accepts input (measured: 0.7 s, 1.3 s under load)."""
BELL_SECONDS = 2.0
"""Mail that an idle client has not claimed after this long gets another ring."""
BELLS = 5
"""Rings after which mail counts as not armed."""
PROOF_SECONDS = 10.0
"""How long typed text may take to be acknowledged before Enter is pressed once more."""
RETRY_SECONDS = 5.0
"""The pause after a try that failed."""
REFUSED_SECONDS = 3.0
"""The pause after a try that was refused by what was on the screen."""
CONFIRM_SECONDS = 5.0
"""How long a transcript may take to confirm what a hook told (measured: 0.1 s); then the hook's word is enough."""
LIMBO_SECONDS = 60.0
"""A client that was idle for so long uses nothing any more of what it took before."""
SOON = 0.05
"""What is due already, in seconds from now."""
UNPROVED = "typed, never acknowledged"
UNUSED = "taken by its client, never used"

__all__ = [
    "BELLS",
    "BELL_SECONDS",
    "CONFIRM_SECONDS",
    "FROZEN",
    "HIDDEN",
    "INBOX_TRIES",
    "LIMBO_SECONDS",
    "PROBE_SECONDS",
    "PROOF_SECONDS",
    "REFUSALS",
    "REFUSED_SECONDS",
    "RETRY_SECONDS",
    "UNPROVED",
    "UNUSED",
    "Carried",
    "Counted",
    "Enter",
    "Finish",
    "Hand",
    "Handed",
    "Means",
    "Parcel",
    "Place",
    "Post",
    "PostAction",
    "PostEvent",
    "Probe",
    "ProbeTaken",
    "Proved",
    "PutBack",
    "PutInbox",
    "PutMail",
    "Rehook",
    "Renewed",
    "Ring",
    "Seek",
    "Sought",
    "TakeBack",
    "Type",
    "Typed",
    "View",
    "dispatch",
    "find",
    "is_left_behind",
    "receive",
    "rung_for",
    "takes",
    "wake",
]


def receive(post: Post, event: PostEvent, now: float) -> tuple[Post, tuple[PostAction, ...]]:
    """Take in one event; `dispatch` then decides what to do."""
    match event:
        case Counted():
            return _counted(post, event, now), ()
        case ProbeTaken():
            return replace(post, armed=True), ()
        case Proved():
            return _proved(post, event, now)
        case Typed(id=message_id, result="taken"):
            return _proved(post, Proved(message_id, "the input box was emptied"), now)
        case Typed():
            return _put(post, event.id, lambda p: _typed(p, event, now)), ()
        case Renewed():
            return _renewed(_counted(post, Counted(event.found), now), event, now)
        case Sought():
            return _sought(post, event, now)
        case Handed():
            return _handed(post, event, now), ()
        case _:
            assert_never(event)


def _handed(post: Post, event: Handed, now: float) -> Post:
    refused = post.refused + 1 if event.problem else 0
    wait = now + RETRY_SECONDS if event.problem else 0.0
    post = _put(post, event.id, lambda p: replace(p, typing=False, wait_until=wait, note=event.problem))
    return replace(post, refused=refused)


def _counted(post: Post, event: Counted, now: float) -> Post:
    known = {p.message.id: p for p in post.parcels}
    waiting = {message.id for message, _ in event.found}
    endings = tuple(e for e in post.endings if e.finish.id in waiting)
    ending = {e.finish.id for e in endings}
    parcels: list[Parcel] = []
    for message, place in event.found:
        if message.id in ending:
            continue
        parcel = known.get(message.id) or Parcel(message, place, now)
        if parcel.place != place:
            parcel = replace(parcel, place=place, since=now, bells=0, asked_back=None)
        parcels.append(parcel)
    return replace(post, parcels=tuple(parcels), endings=endings)


def _proved(post: Post, event: Proved, now: float) -> tuple[Post, tuple[PostAction, ...]]:
    parcel = find(post, event.id)
    if parcel is None:
        return post, ()
    if not event.final and parcel.seeking:
        # It may have been told to a client that is dead: what is sought decides.
        return post, ()
    if not event.final:
        heard = replace(parcel, heard=parcel.heard or event.proof, since=now, typing=False, typed=False, held=False)
        return _put(post, event.id, lambda _: heard), ()
    rung = {"claimed": parcel.via, "mail": "mail", "inbox": "hook", "queue": "keys"}[parcel.place]
    rest = tuple(p for p in post.parcels if p.message.id != event.id)
    finish = Finish(event.id, Outcome.DELIVERED, rung, event.proof)
    return replace(post, parcels=rest, endings=(*post.endings, Ending(finish, now))), (finish,)


def _typed(parcel: Parcel, event: Typed, now: float) -> Parcel:
    if parcel.heard:
        # Its proof overtook it.
        return parcel
    if event.result == "sent":
        return replace(parcel, typing=False, typed=True, since=now, note="")
    # A refused try costs nothing.
    pause = REFUSED_SECONDS if event.result in REFUSALS else RETRY_SECONDS
    pasted = event.pasted or parcel.pasted
    return replace(parcel, typing=False, pasted=pasted, wait_until=now + pause, note=event.result)


def _renewed(post: Post, event: Renewed, now: float) -> tuple[Post, tuple[PostAction, ...]]:
    """Whatever waits may have arrived already: that is looked for before anything is sent again."""
    parcels = tuple(
        replace(
            p,
            typing=False,
            typed=p.message.id == event.entered,
            since=now if p.message.id == event.entered else p.since,
            pasted=p.message.id == event.pasted,
            entered=False,
            held=False,
            heard="",
            bells=0,
            seeking=True,
            orphan=p.message.id in event.orphans,
            via="native" if p.message.id in event.kept else p.via,
        )
        for p in post.parcels
    )
    post = replace(post, parcels=parcels, armed=None, probed_at=None)
    return post, ((Seek(tuple(p.message.id for p in parcels)),) if parcels else ())


def _sought(post: Post, event: Sought, now: float) -> tuple[Post, tuple[PostAction, ...]]:
    back = tuple(PutBack(p.message.id) for p in post.parcels if p.message.id in event.ids and p.orphan)
    parcels = tuple(
        replace(p, seeking=False, orphan=False, wait_until=max(p.wait_until, now)) if p.message.id in event.ids else p
        for p in post.parcels
    )
    return replace(post, parcels=parcels), back


def find(post: Post, message_id: str) -> Parcel | None:
    """The parcel with this id."""
    return next((p for p in post.parcels if p.message.id == message_id), None)


def _put(post: Post, message_id: str, change: Callable[[Parcel], Parcel]) -> Post:
    parcels = tuple(change(p) if p.message.id == message_id else p for p in post.parcels)
    return replace(post, parcels=parcels)


def dispatch(post: Post, view: View, now: float) -> tuple[Post, tuple[PostAction, ...]]:
    """What to do now for the messages that wait; at most one is typed at a time, in order."""
    before = post.armed
    post, actions = _probe(post, view, now)
    post, again = _end(post, now)
    post, heard = _confirm(post, now)
    parcels: list[Parcel] = []
    done: list[PostAction] = [*actions, *again, *heard]
    # What was typed and only a hook has told of is being submitted: text that comes now would be in its way.
    typing = any(p.typing or ((p.typed or p.heard) and p.place == "queue") for p in post.parcels)
    armed = post.armed
    for old in post.parcels:
        parcel, more, typing = _advance(old, post, view, now, typing=typing)
        parcels.append(parcel)
        if parcel.bells >= BELLS:
            armed = False
        done.extend(more)
    if armed is False and post.armed is not False:
        # A client that only hung for a while takes this one later, and its mail counts as armed again.
        done.append(Probe())
    if armed is False and before is not False and post.means.stop_hook:
        done.append(Rehook())
    return replace(post, parcels=tuple(parcels), armed=armed), tuple(done)


def _end(post: Post, now: float) -> tuple[Post, tuple[PostAction, ...]]:
    """Put once more into the archive what is not there yet: the disk may have been full."""
    late = [e for e in post.endings if now >= e.at + RETRY_SECONDS]
    endings = tuple(replace(e, at=now) if e in late else e for e in post.endings)
    return replace(post, endings=endings), tuple(e.finish for e in late)


def _confirm(post: Post, now: float) -> tuple[Post, tuple[PostAction, ...]]:
    """End what hooks told of and no transcript has confirmed, after a while."""
    late = tuple(p for p in post.parcels if p.heard and now >= p.since + CONFIRM_SECONDS)
    done: list[PostAction] = []
    for parcel in late:
        post, more = _proved(post, Proved(parcel.message.id, parcel.heard), now)
        done.extend(more)
    return post, tuple(done)


def _probe(post: Post, view: View, now: float) -> tuple[Post, tuple[PostAction, ...]]:
    """Find out whether the client's mail hook works, once it accepts input."""
    if not post.means.mail or post.means.keys_only or post.armed is not None or not view.ready:
        return post, ()
    if post.probed_at is None:
        return replace(post, probed_at=now), (Probe(),)
    if now >= post.probed_at + PROBE_SECONDS and view.state in (AgentState.IDLE, AgentState.BUSY):
        return replace(post, armed=False), ()
    return post, ()


def _advance(
    parcel: Parcel, post: Post, view: View, now: float, *, typing: bool
) -> tuple[Parcel, tuple[PostAction, ...], bool]:
    """One message: the next parcel, the actions, and whether something is being typed."""
    message_id = parcel.message.id
    if parcel.heard or parcel.typing or parcel.seeking or parcel.held:
        return parcel, (), typing
    if parcel.place == "claimed":
        return (*_in_limbo(parcel, view, now), typing)
    if parcel.typed:
        return (*_await_proof(parcel, view, now), True)
    if parcel.place == "mail":
        return (*_in_mail(parcel, post, view, now), typing)
    if parcel.place == "inbox":
        if view.state is AgentState.BUSY:
            return parcel, (), typing
        return (*_take_back(parcel, now), typing)
    if now < parcel.wait_until:
        return parcel, (), typing
    rung = rung_for(parcel, post, view)
    if rung == "mail":
        return replace(parcel, via="mail", wait_until=now + BELL_SECONDS), (PutMail(message_id),), typing
    if rung == "hook":
        return replace(parcel, via="hook", wait_until=now + BELL_SECONDS), (PutInbox(message_id),), typing
    if rung == "native" and not typing:
        return replace(parcel, via="native", typing=True), (Hand(message_id),), True
    if rung == "keys" and not typing:
        interrupt = parcel.message.interrupt and view.state is AgentState.BUSY
        return replace(parcel, typing=True), (Type(message_id, interrupt, post.means.stash),), True
    return parcel, (), typing


def _in_limbo(parcel: Parcel, view: View, now: float) -> tuple[Parcel, tuple[PostAction, ...]]:
    """Taken and not used: a person is told once the client can't be about to use it any more."""
    if view.state is not AgentState.IDLE or now < _limbo(parcel, view, now):
        return parcel, ()
    return replace(parcel, held=True, note=UNUSED), (Seek((parcel.message.id,)),)


def _limbo(parcel: Parcel, view: View, now: float) -> float:
    return max(parcel.since, now - view.quiet) + LIMBO_SECONDS


def _in_mail(parcel: Parcel, post: Post, view: View, now: float) -> tuple[Parcel, tuple[PostAction, ...]]:
    if post.armed is False:
        return _take_back(parcel, now)
    held = view.state not in (AgentState.IDLE, AgentState.BUSY)
    if held or not view.ready or now < parcel.since + BELL_SECONDS * (parcel.bells + 1):
        return parcel, ()
    return replace(parcel, bells=parcel.bells + 1), (Ring(),)


def _take_back(parcel: Parcel, now: float) -> tuple[Parcel, tuple[PostAction, ...]]:
    """Ask for it until it is back: a full disk may be in the way."""
    if now < _back_at(parcel, now):
        return parcel, ()
    return replace(parcel, asked_back=now), (TakeBack(parcel.message.id),)


def _back_at(parcel: Parcel, now: float) -> float:
    return now if parcel.asked_back is None else parcel.asked_back + RETRY_SECONDS


def _goes_back(parcel: Parcel, post: Post, view: View) -> bool:
    """Whether it lies where its client does not look any more."""
    if parcel.seeking or parcel.held:
        return False
    mute = parcel.place == "mail" and post.armed is False
    return mute or (parcel.place == "inbox" and view.state is not AgentState.BUSY)


def _await_proof(parcel: Parcel, view: View, now: float) -> tuple[Parcel, tuple[PostAction, ...]]:
    """Typed and not proved: look in the transcript and press Enter once more; then hold it, since it may be there."""
    if now < parcel.since + PROOF_SECONDS or view.state is AgentState.BUSY:
        return parcel, ()
    message_id = parcel.message.id
    if not parcel.entered:
        return replace(parcel, entered=True, since=now), (Seek((message_id,)), Enter(message_id))
    return replace(parcel, typed=False, held=True, note=UNPROVED), (Seek((message_id,)),)


def wake(post: Post, view: View, now: float) -> float | None:
    """The next monotonic second after `now` at which `dispatch` may have something to do without an event."""
    times = [e.at + RETRY_SECONDS for e in post.endings]
    if post.means.mail and post.armed is None and post.probed_at is not None and view.ready:
        times.append(post.probed_at + PROBE_SECONDS)
    for parcel in post.parcels:
        if parcel.heard:
            times.append(parcel.since + CONFIRM_SECONDS)
        elif parcel.place == "claimed" and view.state is AgentState.IDLE and not parcel.held:
            times.append(_limbo(parcel, view, now))
        elif parcel.typed:
            times.append(parcel.since + PROOF_SECONDS)
        elif _goes_back(parcel, post, view):
            times.append(max(_back_at(parcel, now), now + SOON))
        elif parcel.place == "mail":
            times.append(parcel.since + BELL_SECONDS * (parcel.bells + 1))
        elif parcel.place == "queue" and not (parcel.typing or parcel.seeking or parcel.held):
            times.append(parcel.wait_until)
    future = [at for at in times if at > now]
    return min(future) if future else None
