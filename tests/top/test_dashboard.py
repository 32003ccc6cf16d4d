"""The dashboard at work: what keys do, what it shows when things change, and what it does while nothing does."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from textual.pilot import Pilot

from nbs_fleet.attention.queue import Item, Need, Queue
from nbs_fleet.errors import FleetError
from nbs_fleet.nbs.chat_format import ChatMessage
from nbs_fleet.top.acts import Done
from tests.screenshots import words
from tests.top import sample
from tests.top.sample import NOW
from tests.top.stage import Stage

SIZE = (80, 24)


async def until(pilot: Pilot[None], holds: Callable[[], bool], within: float = 120.0) -> None:
    """Let the dashboard work until it holds."""
    end = time.monotonic() + within
    while not holds():
        assert time.monotonic() < end, shown(pilot)
        await pilot.pause(0.1)


def shown(pilot: Pilot[None]) -> str:
    return words(pilot.app.export_screenshot())


async def test_keys_run_the_commands_of_the_command_line() -> None:
    stage = Stage(done=Done(1, "error: [bold]refused[/]"))
    async with stage.app().run_test(size=SIZE, notifications=True) as pilot:
        await until(pilot, lambda: "bo-1" in shown(pilot))
        await pilot.press("down", "enter")
        await until(pilot, lambda: "with these words" in shown(pilot))
        await pilot.press("down", "down", "tab", *"no", "enter")
        await until(pilot, lambda: len(stage.acts) == 1)
        await until(pilot, lambda: "error: [bold]refused[/]" in shown(pilot))
        await pilot.press("p", "k", "s")
        await until(pilot, lambda: "what to say" in shown(pilot))
        await pilot.press(*"hello", "enter")
        await until(pilot, lambda: len(stage.acts) == 4)
        await pilot.press("r")
        await until(pilot, lambda: "Restart bo-1?" in shown(pilot))
        await pilot.press("n")
        await until(pilot, lambda: "Restart bo-1?" not in shown(pilot))
        await pilot.press("r")
        await until(pilot, lambda: "Restart bo-1?" in shown(pilot))
        await pilot.press("y")
        await until(pilot, lambda: len(stage.acts) == 5)
    assert [act.words for act in stage.acts] == [
        ("answer", "-m", "no", "--", "a7", "3"),
        ("pause", "--", "bo-1"),
        ("skip", "--", "a7"),
        ("send", "--stdin", "--", "bo-1"),
        ("restart", "--", "bo-1"),
    ]
    assert stage.acts[3].given == "hello"
    assert stage.closed


async def test_the_list_of_agents_has_the_rows_it_needs_and_no_more() -> None:
    stage = Stage()
    rows = len(sample.look().fleet.agents)
    async with stage.app().run_test(size=(80, 60)) as pilot:
        await until(pilot, lambda: pilot.app.query_one("#agents").outer_size.height == rows + 3)
        await pilot.resize_terminal(200, 60)
        await until(pilot, lambda: pilot.app.query_one("#agents").outer_size.height > rows + 3)
        await pilot.resize_terminal(80, rows + 4)
        await until(pilot, lambda: pilot.app.query_one("#agents").outer_size.height == (rows + 2) // 2)


async def test_it_shows_what_changes_and_sleeps_in_between() -> None:
    stage = Stage(sample.look(queue=Queue()))
    async with stage.app().run_test(size=SIZE) as pilot:
        await until(pilot, lambda: "Nothing waits" in shown(pilot))
        stage.change(FleetError("the supervisor [pid 7] hangs"))
        await until(pilot, lambda: "the supervisor [pid 7] hangs" in shown(pilot))
        stage.change(sample.look())
        await until(pilot, lambda: "resets 11am" in shown(pilot) and "hangs" not in shown(pilot))
        await pilot.press("1", "down")  # to the second item of the queue: its agent is the chosen one
        await pilot.press("2")
        await until(pilot, lambda: "proceed" in shown(pilot))
        await pilot.press("1")
        await until(pilot, lambda: "resets" in shown(pilot))
        looks, mirrors = stage.looks, stage.mirrors
        await asyncio.sleep(1.2)
        assert (stage.looks, stage.mirrors) == (looks, mirrors)  # nothing changed, and no screen is shown


async def test_what_others_wrote_is_no_markup() -> None:
    evil = "[bold]x[/bold] [@click=app.quit]y[/]"
    need = Need("question", NOW, evil, evil, ((evil, evil),), evil)
    look = sample.look(
        queue=Queue((Item("a1", "ana", need, NOW, NOW),)),
        chats=(evil,),
        chat=evil,
        messages=(ChatMessage(evil, int(NOW), evil),),
    )
    async with Stage(look).app().run_test(size=(150, 30)) as pilot:
        await until(pilot, lambda: f"Chat {evil}" in shown(pilot))
        assert shown(pilot).count("[@click=app.quit]y[/]") == 3  # in the queue, in the chat's title and text
        await pilot.press("enter")
        await until(pilot, lambda: "with these words" in shown(pilot))
        assert evil in shown(pilot)
        await pilot.press("escape", "question_mark")
        await until(pilot, lambda: "the team goes on" in shown(pilot))


async def test_it_may_begin_in_the_queue_beside_the_screen_of_who_has_waited_the_longest() -> None:
    stage = Stage()
    async with stage.app(queue_first=True).run_test(size=(150, 30)) as pilot:
        await until(pilot, lambda: "Screen of bo-1" in shown(pilot))
        await pilot.press("down")
        await until(pilot, lambda: "Screen of oracle" in shown(pilot))
