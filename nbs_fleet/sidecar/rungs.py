"""Which way a message can take now, from the highest rung down; and whose text stands in the input box. Pure."""

from __future__ import annotations

from typing import Literal

from nbs_fleet.model import AgentState, MessageKind
from nbs_fleet.sidecar.parcels import Means, Parcel, Post, View

INBOX_TRIES = 2
"""Times in a row that a client's own inbox may take nothing before other ways are used for this run."""


def rung_for(parcel: Parcel, post: Post, view: View) -> Literal["mail", "native", "hook", "keys", "wait"]:
    """The highest rung that is possible for this message now.

    Commands and interrupts can only be typed; mail goes in whatever the client does; the hook rung needs a turn
    that runs, and is sooner then than a client's own inbox, which waits for the turn's end; keys need an idle client
    with an empty box. `wait`: none is possible yet.
    """
    message = parcel.message
    interrupts = message.interrupt and view.state is AgentState.BUSY
    may_type = _may_type(post.means, view, interrupt=interrupts, pasted=parcel.pasted)
    if message.kind is MessageKind.COMMAND or interrupts or post.means.keys_only or parcel.pasted:
        return "keys" if may_type else "wait"
    if post.means.mail and post.armed:
        return "mail"
    if post.means.mail and post.armed is None:
        return "wait"
    if post.means.stop_hook and view.state is AgentState.BUSY:
        return "hook"
    if view.ready and view.state in (AgentState.IDLE, AgentState.BUSY) and takes(post, session=view.session):
        return "native"
    return "keys" if may_type else "wait"


def takes(post: Post, *, session: bool) -> bool:
    """Whether the client's own inbox can be used: it has one, its session is known, and it has not refused of late."""
    return post.means.inbox and session and post.refused < INBOX_TRIES


def _may_type(means: Means, view: View, *, interrupt: bool, pasted: bool) -> bool:
    if not view.ready:
        return False
    # The draft may be ours; a look decides.
    if view.state is AgentState.IDLE or (view.draft and (means.stash or pasted)):
        return True
    return interrupt and view.state is AgentState.BUSY


def is_left_behind(post: Post, draft: str | None) -> bool:
    """Whether the text in the input box is a message of ours that came to be shown after it was given up.

    No Enter was pressed on it, so it is no turn, however the client draws one.
    """
    tried = (p for p in post.parcels if p.pasted and not (p.typing or p.typed or p.heard))
    return bool(draft) and any(str(draft).startswith(f"[nbs:{p.message.id}]") for p in tried)
