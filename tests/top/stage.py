"""The dashboard on a stage: a source that says what it is told to, a clock that stands still."""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from nbs_fleet.errors import FleetError
from nbs_fleet.top.acts import Act, Done
from nbs_fleet.top.app import Top
from nbs_fleet.top.look import Look, Mirror, Wish
from tests.top import sample


class Stage:
    """A source whose team is `seen`; `change` puts another in its place. `acts` is what a person had done."""

    def __init__(self, seen: Look | None = None, *, done: Done | None = None) -> None:
        self.seen: Look | FleetError = seen or sample.look()
        self.acts: list[Act] = []
        self.looks = 0
        self.mirrors = 0
        self.closed = False
        self._done = done or Done(0, "done")
        self._changed: Callable[[], None] = lambda: None

    def look(self, wish: Wish) -> Look:
        self.looks += 1
        if isinstance(self.seen, FleetError):
            raise self.seen
        handles = [row.handle for row in self.seen.fleet.agents]
        handle = wish.handle if wish.handle in handles else next(iter(handles), "")
        return replace(self.seen, handle=handle, chat=wish.chat or self.seen.chat)

    def mirror(self, handle: str) -> Mirror:
        self.mirrors += 1
        return sample.mirror(handle)

    def watch(self, look: Look, changed: Callable[[], None]) -> None:
        self._changed = changed

    def close(self) -> None:
        self.closed = True

    def change(self, seen: Look | FleetError) -> None:
        """Something happened to the team."""
        self.seen = seen
        self._changed()

    async def perform(self, act: Act) -> Done:
        self.acts.append(act)
        return self._done

    def app(self, *, queue_first: bool = False) -> Top:
        """The dashboard of this team."""
        return Top(
            self,
            self.perform,
            clock=lambda: sample.NOW,
            attach=lambda handle: ["true", handle],
            home=sample.HOME,
            queue_first=queue_first,
        )
