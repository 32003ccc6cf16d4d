"""Judges notices that were seen late: by what the model said at some moment shortly before each was given."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from tests.support.notice_model import FAR, Model, Summary, said

LATE = 5.0
"""Seconds by which what a notice says may be older than the notice, on a loaded machine."""
EARLY = 0.05
"""Clocks are read one after the other, and rounded."""
AGAIN = ("reminder", "recovery", "catch-up")
"""Reasons to tell an agent what it has been told."""


@dataclass(frozen=True)
class Shot:
    """What waited for one agent from `since` on: it may be seen from then on, and no other from `known` on."""

    since: float
    known: float
    summary: Summary
    items: frozenset[str]
    urgent: frozenset[str]


@dataclass
class Story:
    """One agent: what waited for it, and what it was told of, surely and maybe."""

    shots: list[Shot] = field(default_factory=list)
    sure: set[str] = field(default_factory=set)
    maybe: set[str] = field(default_factory=set)
    last: float = FAR
    notices: int = 0


class Hindsight:
    """Wraps the model of a team that runs: each change is bracketed by `change()`, each notice given to `judge`."""

    def __init__(self, model: Model, clock: Callable[[], float]) -> None:
        self.model, self._clock = model, clock
        self.stories = {handle: Story() for handle in model.people}
        self._shoot(FAR, FAR)

    @contextmanager
    def change(self, since: float | None = None) -> Iterator[None]:
        """Something is done to the files and told to the model; `since` when it may have begun, now if nothing is said."""
        begun = self._clock() if since is None else since
        yield
        self._shoot(begun, self._clock())

    def _shoot(self, since: float, known: float) -> None:
        for handle, story in self.stories.items():
            items = self.model.people[handle].items
            urgent = frozenset(key for key, item in items.items() if item.urgent)
            shot = Shot(since, known, self.model.expected(handle), frozenset(items), urgent)
            if not story.shots or (shot.summary, shot.items) != (story.shots[-1].summary, story.shots[-1].items):
                story.shots.append(shot)

    def _near(self, story: Story, at: float) -> list[Shot]:
        """What may have been seen at that moment, newest first."""
        found: list[Shot] = []
        for shot in reversed(story.shots):
            if shot.since <= at + EARLY:
                found.append(shot)
            if shot.known < at - LATE:
                break
        return found

    def judge(self, handle: str, summary: str, why: str, at: float) -> None:
        """A notice was given: what it says was so, it tells something new, and it came when it may come."""
        story = self.stories[handle]
        near = self._near(story, at)
        told = f"{handle} at {at:.3f}: {why}: {summary}; it was {[shot.summary for shot in near[:20]]}"
        unread, number, kinds = said(summary)
        assert unread or number, told
        sure: set[str] = set()
        maybe: set[str] = set()
        # Chats and events are not looked at in one moment.
        for part in (*self.model.chats, ""):
            if part:
                right = [s for s in near if s.summary[0].get(part) == unread.get(part)]
            else:
                right = [s for s in near if s.summary[1:] == (number, kinds)]
            assert right, f"{part or 'events'}: {told}"
            of_it = [{key for key in shot.items if _part(key) == part} for shot in right]
            sure |= set.intersection(*of_it)
            maybe |= set.union(*of_it)
        assert set(unread) <= set(self.model.chats), told
        fresh = maybe - story.sure
        assert fresh or why in AGAIN, f"told twice: {told}"
        if why == "new":
            assert at >= story.last + self.model.cooldown - EARLY, f"too soon: {told}"
        if why == "urgent":
            assert any(fresh & shot.urgent for shot in near), told
        story.sure |= sure
        story.maybe |= maybe
        story.last = at
        story.notices += 1

    def untold(self, handle: str) -> set[str]:
        """What waits for an agent and was in no notice."""
        return set(self.model.people[handle].items) - self.stories[handle].maybe


def _part(key: str) -> str:
    """The chat of an item; nothing for an event."""
    return key.partition("#")[0] if "#" in key else ""
