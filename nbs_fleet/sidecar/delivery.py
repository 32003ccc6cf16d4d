"""Getting messages in: which rung, when, and what proves it. Pure; the ladder of keys, hooks and mail."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, assert_never

from msgspec import Struct
from msgspec.structs import replace

from nbs_fleet.model import AgentState, Message, MessageKind, Outcome

Place = Literal["queue", "mail", "inbox", "claimed"]

PROBE_SECONDS = 5.0
"""How long a client may take to claim the probe once it accepts input (measured: 0.7 s, 1.3 s under load)."""
BELL_SECONDS = 2.0
"""Mail that an idle client has not claimed after this long gets another ring."""
BELLS = 5
"""Rings after which mail counts as not armed."""
PROOF_SECONDS = 10.0
"""How long typed text may take to be acknowledged before Enter is pressed once more."""
RETRY_SECONDS = 15.0
"""The pause after a try that failed before anything was typed."""
REFUSED_SECONDS = 3.0
"""The pause after a try that was refused by what was on the screen."""
UNPROVED = "typed, never acknowledged"


class Parcel(Struct, frozen=True):
    """One message on its way. `place` is where its token lies; `since` the monotonic second it got there.

    `typing`: keys for it are in flight; `typed`: they were sent and nothing has proved it yet.
    """

    message: Message
    place: Place = "queue"
    since: float = 0.0
    typing: bool = False
    typed: bool = False
    entered: bool = False
    """Enter was pressed a second time."""
    held: bool = False
    """Typed, and nothing proves that it arrived: shown to a person, and not typed again into the same client."""
    via: str = "mail"
    """The rung its token was last put on: a claimed token does not show it."""
    bells: int = 0
    wait_until: float = 0.0
    note: str = ""
    seeking: bool = False
    """Nothing is done with it until the transcript was searched."""
    orphan: bool = False
    """A client that is dead had taken it."""


class Means(Struct, frozen=True):
    """What this client and this team allow: does not change during a run."""

    mail: bool
    stop_hook: bool
    keys_only: bool = False
    stash: bool = False
    """A person's draft may be put aside (the client gives it back after the submit)."""


class View(Struct, frozen=True):
    """The agent as far as delivery cares."""

    state: AgentState
    ready: bool
    draft: bool = False
    """A person's half-typed text is in the input box."""


class Post(Struct, frozen=True):
    """All messages of one agent that have not arrived, oldest first; and whether its mail is armed."""

    means: Means
    parcels: tuple[Parcel, ...] = ()
    armed: bool | None = None
    probed_at: float | None = None


class Counted(Struct, frozen=True, tag=True):
    """The files as they are: each message that waits, and where its token lies."""

    found: tuple[tuple[Message, Place], ...]


class ProbeTaken(Struct, frozen=True, tag=True):
    """The client's hook took the probe: mail is armed."""


class Proved(Struct, frozen=True, tag=True):
    """The client has used a message: its id was seen in a submitted prompt or in the transcript."""

    id: str
    proof: str


class Typed(Struct, frozen=True, tag=True):
    """What came of typing: `sent`, `taken` (the box was emptied), or why not: `dialog`, `draft`, `busy`, `copy mode`, `gone`, or an error."""

    id: str
    result: str


class Renewed(Struct, frozen=True, tag=True):
    """A sidecar begins. `died`: the client before this one is gone, and what it had taken is undecided."""

    died: bool


class Sought(Struct, frozen=True, tag=True):
    """The transcripts and hooks of these messages were searched; what was found came as Proved before."""

    ids: tuple[str, ...]


PostEvent = Counted | ProbeTaken | Proved | Typed | Renewed | Sought


class PutMail(Struct, frozen=True, tag=True):
    """Put the token of a message into mail/, and ring."""

    id: str


class PutInbox(Struct, frozen=True, tag=True):
    """Put the token where the client's next hook finds it."""

    id: str


class TakeBack(Struct, frozen=True, tag=True):
    """Take a token away before anyone claims it (claimed ones stay claimed)."""

    id: str


class Ring(Struct, frozen=True, tag=True):
    """Ring the bell of mail/."""


class Probe(Struct, frozen=True, tag=True):
    """Put the probe into mail/."""


class Type(Struct, frozen=True, tag=True):
    """Type a message: after a fresh look, under the pane's lock. `interrupt`: Esc after it."""

    id: str
    interrupt: bool = False


class Enter(Struct, frozen=True, tag=True):
    """Press Enter once more, if the message is still in the input box."""

    id: str


class Seek(Struct, frozen=True, tag=True):
    """Look in the transcript for proof of these messages."""

    ids: tuple[str, ...]


class PutBack(Struct, frozen=True, tag=True):
    """A dead client took it and never used it: back to the queue, with the same id."""

    id: str


class Finish(Struct, frozen=True, tag=True):
    """Move a message to the archive."""

    id: str
    outcome: Outcome
    rung: str
    proof: str = ""


class Rehook(Struct, frozen=True, tag=True):
    """Mail is not armed: have the client's hooks hand messages over at tool boundaries from its next prompt on."""


Carried = PutMail | PutInbox | TakeBack | Ring | Probe | Type | Enter | Seek | PutBack | Finish
"""What the postman does; Rehook is for the sidecar, which knows the client's settings."""

PostAction = Carried | Rehook


def receive(post: Post, event: PostEvent, now: float) -> tuple[Post, tuple[PostAction, ...]]:
    """Take in one event; `dispatch` then decides what to do."""
    match event:
        case Counted():
            return _counted(post, event, now), ()
        case ProbeTaken():
            return replace(post, armed=True), ()
        case Proved():
            return _proved(post, event)
        case Typed(id=message_id, result="taken"):
            return _proved(post, Proved(message_id, "the input box was emptied"))
        case Typed():
            return _put(post, event.id, lambda p: _typed(p, event.result, now)), ()
        case Renewed():
            return _renewed(post, event)
        case Sought():
            return _sought(post, event, now)
        case _:
            assert_never(event)


def _counted(post: Post, event: Counted, now: float) -> Post:
    known = {p.message.id: p for p in post.parcels}
    parcels: list[Parcel] = []
    for message, place in event.found:
        parcel = known.get(message.id) or Parcel(message, place, now)
        if parcel.place != place:
            parcel = replace(parcel, place=place, since=now, bells=0)
        parcels.append(parcel)
    return replace(post, parcels=tuple(parcels))


def _proved(post: Post, event: Proved) -> tuple[Post, tuple[PostAction, ...]]:
    parcel = find(post, event.id)
    if parcel is None:
        return post, ()
    rung = {"claimed": parcel.via, "mail": "mail", "inbox": "hook", "queue": "keys"}[parcel.place]
    rest = tuple(p for p in post.parcels if p.message.id != event.id)
    return replace(post, parcels=rest), (Finish(event.id, Outcome.DELIVERED, rung, event.proof),)


def _typed(parcel: Parcel, result: str, now: float) -> Parcel:
    if result == "sent":
        return replace(parcel, typing=False, typed=True, since=now, note="")
    # A refused try costs nothing: nothing was typed.
    pause = RETRY_SECONDS if result not in ("busy", "draft", "dialog", "copy mode") else REFUSED_SECONDS
    return replace(parcel, typing=False, wait_until=now + pause, note=result)


def _renewed(post: Post, event: Renewed) -> tuple[Post, tuple[PostAction, ...]]:
    """Whatever waits may have arrived already: that is looked for before anything is sent again."""
    parcels = tuple(
        replace(
            p,
            typing=False,
            typed=False,
            entered=False,
            held=False,
            bells=0,
            seeking=True,
            orphan=event.died and p.place == "claimed",
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


def rung_for(parcel: Parcel, post: Post, view: View) -> Literal["mail", "hook", "keys", "wait"]:
    """The highest rung that is possible for this message now.

    Commands and interrupts can only be typed; mail goes in whatever the client does; the hook rung needs a turn
    that runs; keys need an idle client with an empty box. `wait`: none is possible yet.
    """
    message = parcel.message
    interrupts = message.interrupt and view.state is AgentState.BUSY
    may_type = _may_type(post.means, view, interrupt=interrupts)
    if message.kind is MessageKind.COMMAND or interrupts or post.means.keys_only:
        return "keys" if may_type else "wait"
    if post.means.mail and post.armed:
        return "mail"
    if post.means.mail and post.armed is None:
        return "wait"
    if post.means.stop_hook and view.state is AgentState.BUSY:
        return "hook"
    return "keys" if may_type else "wait"


def _may_type(means: Means, view: View, *, interrupt: bool) -> bool:
    if not view.ready:
        return False
    if view.state is AgentState.IDLE or (view.draft and means.stash):
        return True
    return interrupt and view.state is AgentState.BUSY


def dispatch(post: Post, view: View, now: float) -> tuple[Post, tuple[PostAction, ...]]:
    """What to do now for the messages that wait; at most one is typed at a time, in order."""
    before = post.armed
    post, actions = _probe(post, view, now)
    parcels: list[Parcel] = []
    done: list[PostAction] = list(actions)
    typing = any(p.typing or (p.typed and p.place == "queue") for p in post.parcels)
    armed = post.armed
    for old in post.parcels:
        parcel, more, typing = _advance(old, post, view, now, typing=typing)
        parcels.append(parcel)
        if parcel.bells >= BELLS:
            armed = False
        done.extend(more)
    if armed is False and before is not False and post.means.stop_hook:
        done.append(Rehook())
    return replace(post, parcels=tuple(parcels), armed=armed), tuple(done)


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
    if parcel.place == "claimed" or parcel.typing or parcel.seeking or parcel.held:
        return parcel, (), typing
    if parcel.typed:
        return (*_await_proof(parcel, view, now), True)
    if parcel.place == "mail":
        return (*_in_mail(parcel, post, view, now), typing)
    if parcel.place == "inbox":
        if view.state is AgentState.BUSY:
            return parcel, (), typing
        return parcel, (TakeBack(message_id),), typing
    if now < parcel.wait_until:
        return parcel, (), typing
    rung = rung_for(parcel, post, view)
    if rung == "mail":
        return replace(parcel, via="mail", wait_until=now + BELL_SECONDS), (PutMail(message_id),), typing
    if rung == "hook":
        return replace(parcel, via="hook", wait_until=now + BELL_SECONDS), (PutInbox(message_id),), typing
    if rung == "keys" and not typing:
        interrupt = parcel.message.interrupt and view.state is AgentState.BUSY
        return replace(parcel, typing=True), (Type(message_id, interrupt),), True
    return parcel, (), typing


def _in_mail(parcel: Parcel, post: Post, view: View, now: float) -> tuple[Parcel, tuple[PostAction, ...]]:
    if post.armed is False:
        return parcel, (TakeBack(parcel.message.id),)
    held = view.state not in (AgentState.IDLE, AgentState.BUSY)
    if held or not view.ready or now < parcel.since + BELL_SECONDS * (parcel.bells + 1):
        return parcel, ()
    return replace(parcel, bells=parcel.bells + 1), (Ring(),)


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
    times: list[float] = []
    if post.means.mail and post.armed is None and post.probed_at is not None and view.ready:
        times.append(post.probed_at + PROBE_SECONDS)
    for parcel in post.parcels:
        if parcel.typed:
            times.append(parcel.since + PROOF_SECONDS)
        elif parcel.place == "mail" and post.armed is not False:
            times.append(parcel.since + BELL_SECONDS * (parcel.bells + 1))
        elif parcel.place == "queue" and not (parcel.typing or parcel.seeking or parcel.held):
            times.append(parcel.wait_until)
    future = [at for at in times if at > now]
    return min(future) if future else None
