"""What every tmux must do, be it the real one or the stand-in: subclasses give the fixtures `tmux` and `control`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from nbs_fleet.errors import TmuxError
from nbs_fleet.launch.layout import PaneWanted, start_lines
from nbs_fleet.launch.tmux_text import Pane
from nbs_fleet.spec.team import Layout
from tests.support.waiting import eventually

LIVES = "echo hello\nexec sleep 1000\n"
ENDS = "exit 7\n"
ENVIRON = {"PATH": "/usr/bin:/bin", "HOME": "/", "SHELL": "/bin/sh"}


def start(tmux: Any) -> None:
    """A server with the session `team` and nothing but the window `fleet`."""
    tmux.start("team", (200, 50), ["sleep", "1000"], ENVIRON)


def wants(folder: Path, handles: Sequence[str], window: str | None = None, text: str = LIVES) -> list[PaneWanted]:
    """Panes to start, each with a script of its own."""
    made = []
    for slot, handle in enumerate(handles):
        script = folder / f"{handle}.sh"
        script.write_text(text, encoding="utf-8")
        made.append(PaneWanted(handle, window or handle, slot if window else 0, str(script)))
    return made


def bring_up(tmux: Any, wanted: Sequence[PaneWanted], layout: Layout | None = None) -> dict[str, Pane]:
    """Start panes as `up` does; our panes by handle."""
    found = tmux.source_and_look(start_lines("team", wanted, tmux.panes(), layout or Layout()))
    return {pane.handle: pane for pane in found if pane.handle}


def settled(tmux: Any, pane: str) -> Pane | None:
    """The dead pane once its exit status is known, asking Debian's tmux to look."""
    found: Pane | None = next((p for p in tmux.panes() if p.id == pane), None)
    if found is not None and found.dead and (found.status, found.signal) != (None, None):
        return found
    tmux.nudge_sigchld(drained=found is not None and found.dead)
    return None


class TmuxSuite:
    """The server: sessions, windows, panes, screens."""

    def test_before_the_start_there_is_nothing(self, tmux: Any) -> None:
        assert tmux.server_pid() is None
        assert tmux.panes() == ()
        assert not tmux.has_session("team")
        assert not tmux.nudge_sigchld()

    def test_a_started_server_has_one_window_of_the_size_asked_for(self, tmux: Any) -> None:
        start(tmux)
        (pane,) = tmux.panes()
        assert (pane.window, pane.width, pane.height, pane.handle, pane.team) == ("fleet", 200, 50, "", "")
        assert tmux.has_session("team")
        assert not tmux.has_session("te")
        assert tmux.server_pid()

    def test_a_session_is_not_made_twice(self, tmux: Any) -> None:
        start(tmux)
        with pytest.raises(TmuxError, match="duplicate session"):
            start(tmux)

    def test_each_agent_gets_a_marked_pane_in_a_window_of_its_name(self, tmux: Any, tmp_path: Path) -> None:
        start(tmux)
        found = bring_up(tmux, wants(tmp_path, ["agent-1", "agent-10", "agent"]))
        assert {handle: (pane.window, pane.team) for handle, pane in found.items()} == {
            handle: (handle, "team") for handle in ("agent-1", "agent-10", "agent")
        }
        assert len({pane.pid for pane in found.values()}) == 3

    def test_what_lives_is_not_started_again(self, tmux: Any, tmp_path: Path) -> None:
        start(tmux)
        wanted = wants(tmp_path, ["ana", "bo"])
        first, second = bring_up(tmux, wanted), bring_up(tmux, wanted)
        # What runs in it by name is another thing a moment later: the script becomes its last program.
        assert {handle: (pane.id, pane.pid) for handle, pane in first.items()} == {
            handle: (pane.id, pane.pid) for handle, pane in second.items()
        }

    def test_tiled_panes_stand_in_the_order_of_their_slots(self, tmux: Any, tmp_path: Path) -> None:
        start(tmux)
        handles = ["d", "a", "c", "b", "e"]
        bring_up(tmux, wants(tmp_path, handles, "agents-1"), Layout(panes_per_window=5))
        assert [pane.handle for pane in tmux.panes() if pane.window == "agents-1"] == handles

    def test_a_late_agent_joins_the_window_that_is_there(self, tmux: Any, tmp_path: Path) -> None:
        start(tmux)
        layout = Layout(panes_per_window=4)
        wanted = wants(tmp_path, ["a", "b", "c", "d"], "agents-1")
        before = bring_up(tmux, wanted[:2], layout)
        after = bring_up(tmux, wanted, layout)
        assert {pane.window_id for pane in after.values()} == {before["a"].window_id}
        assert [pane.handle for pane in tmux.panes() if pane.window == "agents-1"] == ["a", "b", "c", "d"]
        assert (before["a"].pid, before["b"].pid) == (after["a"].pid, after["b"].pid)

    def test_an_agent_may_be_named_like_the_window_of_the_supervisor(self, tmux: Any, tmp_path: Path) -> None:
        start(tmux)
        found = bring_up(tmux, wants(tmp_path, ["fleet"]))
        assert found["fleet"].window == "fleet"
        assert [pane.handle for pane in tmux.panes()] == ["", "fleet"]

    def test_a_window_may_have_a_name_that_is_no_target(self, tmux: Any, tmp_path: Path) -> None:
        start(tmux)
        found = bring_up(tmux, wants(tmp_path, ["a", "b"], "fleet~ x.y:z"))
        assert {pane.window for pane in found.values()} == {"fleet~ x.y:z"}
        assert len({pane.window_id for pane in found.values()}) == 1

    def test_an_exit_status_is_read(self, tmux: Any, tmp_path: Path) -> None:
        start(tmux)
        found = bring_up(tmux, wants(tmp_path, ["ana"], text=ENDS))
        dead = eventually(lambda: settled(tmux, found["ana"].id))
        assert (dead.status, dead.signal, dead.handle) == (7, None, "ana")

    def test_a_dead_pane_is_used_again_without_its_old_title(self, tmux: Any, tmp_path: Path) -> None:
        start(tmux)
        dead = bring_up(tmux, wants(tmp_path, ["ana"], text=ENDS))["ana"]
        eventually(lambda: settled(tmux, dead.id))
        found = bring_up(tmux, wants(tmp_path, ["ana"]))["ana"]
        assert (found.id, found.window_id, found.dead, found.title) == (dead.id, dead.window_id, False, "")
        assert found.pid != dead.pid
        eventually(lambda: tmux.capture(found.id)[0] == "hello")

    def test_screens_are_captured_one_by_one_and_together(self, tmux: Any, tmp_path: Path) -> None:
        start(tmux)
        found = bring_up(tmux, wants(tmp_path, ["ana", "bo"]))
        eventually(lambda: [tmux.capture(pane.id)[0] for pane in found.values()] == ["hello", "hello"])
        screens = tmux.capture_all([found["ana"].id, "%99", found["bo"].id])
        assert list(screens) == [found["ana"].id, found["bo"].id]
        assert screens[found["bo"].id] == tmux.capture(found["bo"].id)
        assert len(screens[found["bo"].id]) == 50
        assert tmux.capture_all([]) == {}

    def test_a_pane_that_is_gone_can_not_be_captured(self, tmux: Any) -> None:
        start(tmux)
        with pytest.raises(TmuxError, match="tmux capture-pane: can't find pane: %99"):
            tmux.capture("%99")
        with pytest.raises(ValueError, match="not a pane id"):
            tmux.capture("team:0.0")

    def test_panes_and_windows_are_closed(self, tmux: Any, tmp_path: Path) -> None:
        start(tmux)
        found = bring_up(tmux, wants(tmp_path, ["ana", "bo", "cy"]))
        tmux.kill_pane(found["ana"].id)
        tmux.kill_window(found["bo"].window_id)
        assert [pane.handle for pane in tmux.panes()] == ["", "cy"]

    def test_a_line_that_fails_keeps_no_other_from_running(self, tmux: Any, tmp_path: Path) -> None:
        start(tmux)
        lines = start_lines("team", wants(tmp_path, ["ana"]), tmux.panes(), Layout())
        with pytest.raises(TmuxError, match="source-file"):
            tmux.source(["rename-window -t %99 x", *lines])
        assert [pane.handle for pane in tmux.panes()] == ["", "ana"]

    def test_what_is_seen_together_with_a_change_is_what_is_seen_after_it(self, tmux: Any, tmp_path: Path) -> None:
        start(tmux)
        lines = start_lines("team", wants(tmp_path, ["ana", "bo"]), tmux.panes(), Layout())
        identities = [(pane.id, pane.handle, pane.pid) for pane in tmux.source_and_look(lines)]
        assert [handle for _, handle, _ in identities] == ["", "ana", "bo"]
        assert identities == [(pane.id, pane.handle, pane.pid) for pane in tmux.panes()]
        with pytest.raises(TmuxError, match="source-file"):
            tmux.source_and_look(["rename-window -t %99 x"])

    def test_a_killed_server_is_gone_and_may_be_started_at_once(self, tmux: Any, tmp_path: Path) -> None:
        start(tmux)
        bring_up(tmux, wants(tmp_path, ["ana"]))
        tmux.kill_server()
        assert tmux.server_pid() is None
        tmux.kill_server()
        start(tmux)
        assert [pane.window for pane in tmux.panes()] == ["fleet"]


class ControlSuite:
    """The control client: calls, keys, and its end."""

    async def test_it_tells_the_same_as_the_server(self, tmux: Any, control: Callable[[], Any], tmp_path: Path) -> None:
        start(tmux)
        found = bring_up(tmux, wants(tmp_path, ["ana"]))
        client = await control().connect(tmux.socket, "team")
        eventually(lambda: tmux.capture(found["ana"].id)[0] == "hello")
        assert await client.panes() == tmux.panes()
        assert await client.capture(found["ana"].id) == tmux.capture(found["ana"].id)
        await client.close()

    async def test_one_pane_is_told_alone_whether_it_lives_or_not(
        self, tmux: Any, control: Callable[[], Any], tmp_path: Path
    ) -> None:
        start(tmux)
        found = bring_up(tmux, [*wants(tmp_path, ["ana", "cy"], "both"), *wants(tmp_path, ["bo"], text=ENDS)])
        eventually(lambda: settled(tmux, found["bo"].id))
        client = await control().connect(tmux.socket, "team")
        for pane in await client.panes():
            assert await client.pane(pane.id) == pane
        assert await client.pane("%99") is None
        await client.close()

    async def test_replies_come_in_order_and_errors_stay_with_their_command(
        self, tmux: Any, control: Callable[[], Any]
    ) -> None:
        start(tmux)
        client = await control().connect(tmux.socket, "team")
        replies = await client.run("display-message -p one", "rename-window -t %99 x", "display-message -p two")
        assert [(reply.ok, reply.lines) for reply in replies] == [
            (True, ("one",)),
            (False, ("can't find pane: %99",)),
            (True, ("two",)),
        ]
        await client.close()

    async def test_no_key_goes_to_a_pane_in_copy_mode_or_dead_or_gone(
        self, tmux: Any, control: Callable[[], Any], tmp_path: Path
    ) -> None:
        start(tmux)
        found = bring_up(tmux, [*wants(tmp_path, ["ana"]), *wants(tmp_path, ["bo"], text=ENDS)])
        eventually(lambda: settled(tmux, found["bo"].id))
        tmux.run("copy-mode", "-t", found["ana"].id)
        client = await control().connect(tmux.socket, "team")
        for pane in (found["ana"].id, found["bo"].id):
            with pytest.raises(TmuxError, match="no key was sent"):
                await client.press(pane, ("Enter",))
            with pytest.raises(TmuxError, match="nothing was pasted"):
                await client.paste(pane, "x")
        for call in (client.press("%99", ("Enter",)), client.paste("%99", "x"), client.capture("%99")):
            with pytest.raises(TmuxError, match="can't find pane"):
                await call
        await client.close()

    async def test_it_ends_with_the_server(self, tmux: Any, control: Callable[[], Any]) -> None:
        start(tmux)
        client = await control().connect(tmux.socket, "team")
        assert client.alive
        tmux.kill_server()
        assert await asyncio.wait_for(client.closed, 10)
        with pytest.raises(TmuxError, match="tmux -C"):
            await client.panes()
        await client.close()
        assert not client.alive

    async def test_it_attaches_to_no_session_of_another_name(self, tmux: Any, control: Callable[[], Any]) -> None:
        start(tmux)
        client = control()
        with pytest.raises(TmuxError, match="can't find session"):
            await client.connect(tmux.socket, "te")
        assert client.closed.done()
