"""How changes of a record are told in the agent's story."""

from __future__ import annotations

from nbs_fleet.model import Moment
from nbs_fleet.plan.types import AgentRecord
from nbs_fleet.supervisor.story import Story


def tell(story: Story, old: AgentRecord | None, new: AgentRecord, now: Moment) -> None:
    """Append what a person wants to know of the way from `old` to `new`; nothing if nothing changed."""
    if new.proc is not None and (old is None or old.proc != new.proc):
        story.tell(now.wall, "started", pid=new.proc.pid, pane=new.pane, session=new.session_id, number=len(new.starts))
    if new.last_exit is not None and (old is None or old.last_exit != new.last_exit):
        end = new.last_exit
        story.tell(now.wall, "ended", text=end.describe(), code=end.code, signal=end.signal, lines=end.lines[-5:])
    if old is None or _shown(old) != _shown(new):
        story.tell(
            now.wall, "state", state=new.state, blocked=new.blocked, ready=new.ready, detail=new.detail, until=new.until
        )


def _shown(record: AgentRecord) -> tuple[object, ...]:
    return (record.state, record.blocked, record.ready)
