"""Messages on their way, what delivery sees and what it may ask for: values only."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct

from nbs_fleet.model import AgentState, Message, Outcome

Place = Literal["queue", "mail", "inbox", "claimed"]


class Parcel(Struct, frozen=True):
    """One message on its way. `place` is where its token lies; `since` the monotonic second it got there.

    `typing`: keys for it are in flight; `typed`: they were sent and nothing has proved it yet.
    """

    message: Message
    place: Place = "queue"
    since: float = 0.0
    typing: bool = False
    typed: bool = False
    pasted: bool = False
    """Its text may stand in the input box: only keys can take it further, until another client runs."""
    entered: bool = False
    """Enter was pressed a second time."""
    held: bool = False
    """Typed or taken, and nothing proves that it was used: shown to a person, and not sent to the same client again."""
    heard: str = ""
    """A hook told that the client was given it. A client that dies now may not have kept it."""
    via: str = "mail"
    """The rung its token was last put on: a claimed token does not show it."""
    bells: int = 0
    asked_back: float | None = None
    """When it was last asked back from where it lies."""
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
    confirm: bool = False
    """The client's transcript has the last word: what is not in it is gone when the client dies."""
    inbox: bool = False
    """The client has a way in of its own that is no folder: what is given to it counts as taken."""


class View(Struct, frozen=True):
    """The agent as far as delivery cares."""

    state: AgentState
    ready: bool
    draft: bool = False
    """Text that nobody has submitted is in the input box: a person's, or ours from a try that was given up."""
    quiet: float = 0.0
    """Seconds for which it has been in this state."""
    session: bool = False
    """The client has told which session it is in: without that its own inbox can't be named."""


class Ending(Struct, frozen=True):
    """A message that arrived: how it is put into the archive, and since when that is tried (monotonic seconds)."""

    finish: Finish
    at: float


class Post(Struct, frozen=True):
    """All messages of one agent that have not arrived, oldest first; and whether its mail is armed."""

    means: Means
    parcels: tuple[Parcel, ...] = ()
    armed: bool | None = None
    probed_at: float | None = None
    refused: int = 0
    """Times in a row that the client's own inbox took nothing."""
    endings: tuple[Ending, ...] = ()
    """What has arrived and still lies among what waits: it must not be sent again, however long that lasts."""


class Counted(Struct, frozen=True, tag=True):
    """The files as they are: each message that waits, and where its token lies."""

    found: tuple[tuple[Message, Place], ...]


class ProbeTaken(Struct, frozen=True, tag=True):
    """The client's hook took the probe: mail is armed."""


class Proved(Struct, frozen=True, tag=True):
    """The client has used a message: its id was seen in a submitted prompt or in the transcript.

    `final`: also a client that dies now has it.
    """

    id: str
    proof: str
    final: bool = True


FROZEN = "the client does not read its keyboard"
HIDDEN = "pasted, and the client does not show it"
REFUSALS = ("busy", "draft", "dialog", "copy mode", FROZEN, HIDDEN)
"""Why nothing was submitted, as seen on the screen and at the terminal."""


class Typed(Struct, frozen=True, tag=True):
    """What came of typing: `sent`, `taken` (the box was emptied), one of REFUSALS, `gone`, or an error.

    `pasted`: whatever went wrong, the text may be in the input box.
    """

    id: str
    result: str
    pasted: bool = False


class Handed(Struct, frozen=True, tag=True):
    """What came of giving a message to the client's own inbox: nothing to say, or why it took nothing."""

    id: str
    problem: str = ""


class Renewed(Struct, frozen=True, tag=True):
    """A sidecar begins with the files as they are.

    `orphans`: what a client took that is dead now; whether it was used is undecided. `pasted` and `entered`: the
    message that the sidecar before this one typed last into this client, without and with its Enter.
    """

    found: tuple[tuple[Message, Place], ...]
    orphans: tuple[str, ...] = ()
    kept: tuple[str, ...] = ()
    """What this client has in an inbox of its own, since another process of its session was given it."""
    pasted: str = ""
    entered: str = ""


class Sought(Struct, frozen=True, tag=True):
    """The transcripts and hooks of these messages were searched; what was found came as Proved before."""

    ids: tuple[str, ...]


PostEvent = Counted | ProbeTaken | Proved | Typed | Renewed | Sought | Handed


class PutMail(Struct, frozen=True, tag=True):
    """Put the token of a message into mail/, and ring."""

    id: str


class PutInbox(Struct, frozen=True, tag=True):
    """Put the token where the client's next hook finds it."""

    id: str


class Hand(Struct, frozen=True, tag=True):
    """Give a message to the client's own inbox."""

    id: str


class TakeBack(Struct, frozen=True, tag=True):
    """Take a token away before anyone claims it (claimed ones stay claimed)."""

    id: str


class Ring(Struct, frozen=True, tag=True):
    """Ring the bell of mail/."""


class Probe(Struct, frozen=True, tag=True):
    """Put the probe into mail/."""


class Type(Struct, frozen=True, tag=True):
    """Type a message: after a fresh look, under the pane's lock. `interrupt`: Esc after it.

    `stash`: a draft that is in the way is put aside.
    """

    id: str
    interrupt: bool = False
    stash: bool = False


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


Carried = PutMail | PutInbox | Hand | TakeBack | Ring | Probe | Type | Enter | Seek | PutBack | Finish
"""What the postman does; Rehook is for the sidecar, which knows the client's settings."""

PostAction = Carried | Rehook
