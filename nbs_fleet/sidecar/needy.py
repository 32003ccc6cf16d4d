"""What a person is told of an agent that needs one: the open dialog, and the agent's last words. Pure."""

from __future__ import annotations

from nbs_fleet.model import AgentState, Asking
from nbs_fleet.sidecar.mind import Mind
from nbs_fleet.sidecar.weigh import is_recent

WORDS = 2_000
"""Most characters of an agent's words, and of the rows above a dialog's options (the last ones count)."""


def asking(mind: Mind) -> Asking | None:
    """The dialog on the screen, with what a hook told of it; None as long as no dialog was read."""
    dialog = mind.screen.dialog
    if dialog is None:
        return None
    news = mind.hook
    told = news is not None and news.reading.blocked is dialog.kind and is_recent(mind)
    return Asking(
        dialog.kind.value,
        dialog.mark,
        dialog.text[-WORDS:],
        dialog.keyed(),
        news.request if news is not None and told else "",
    )


def words(mind: Mind, state: AgentState) -> str:
    """The agent's last words, where a person may have to know them; else nothing, since they change all the time."""
    needy = state in (AgentState.BLOCKED, AgentState.LIMITED) or mind.failure or mind.stuck.escalated or mind.signal
    if not needy or state is AgentState.BUSY:
        return ""
    return (mind.turns.last_text or "")[-WORDS:]
