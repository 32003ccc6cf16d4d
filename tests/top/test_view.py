"""What the dashboard shows, as data."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from nbs_fleet.attention.queue import Item, Need, Queue
from nbs_fleet.cli import output
from nbs_fleet.model import AgentState
from nbs_fleet.nbs.chat_format import ChatMessage
from nbs_fleet.supervisor.status import SupervisorStatus
from nbs_fleet.top import view
from nbs_fleet.top.look import Mirror
from nbs_fleet.top.pace import FIRST, LAST, Pace
from nbs_fleet.top.view import Line
from tests.top import sample
from tests.top.sample import NOW


def plain(line: Line) -> str:
    return "".join(piece if isinstance(piece, str) else piece.text for piece in line)


def row(width: int, handle: str) -> dict[str, str]:
    """The cells of an agent by heading."""
    grid = view.agents(sample.look(), NOW, width)
    found = next(row for row in grid.rows if row.key == handle)
    return {name.strip(): cell.text.strip() for (name, _), cell in zip(grid.columns, found.cells, strict=True)}


def test_each_agent_has_a_row_with_all_that_matters() -> None:
    assert row(78, "bo-1") == {
        "HANDLE": "bo-1",
        "STATE": "blocked: permission",
        "SINCE": "3m",
        "CONTEXT": "74%",
        "TOKENS": "412k",
        "UNREAD": "2",
        "RESTARTS": "·",
    }
    assert row(170, "dora")[""] == "crash (exit 7): Error: ENOSPC: no space left on device"
    assert row(160, "ana")["CONTEXT"] == "━━━╌╌╌  48%"


def test_a_context_is_coloured_by_the_marks_of_the_team_file() -> None:
    grid = view.agents(sample.look(), NOW, 78)
    column = [name.strip() for name, _ in grid.columns].index("CONTEXT")
    colours = {row.key: row.cells[column].style for row in grid.rows}
    assert colours == {"ana": "green", "bo-1": "yellow", "bo-2": "green", "cy": "red", "dora": "", "oracle": ""}


@pytest.mark.parametrize(
    ("tokens", "text"),
    [
        (0, "·"),
        (950, "950"),
        (1_000, "1k"),
        (48_499, "48k"),
        (999_499, "999k"),
        (999_500, "1.0M"),
        (12_340_000, "12.3M"),
    ],
)
def test_tokens_are_short(tokens: int, text: str) -> None:
    assert view.amount(tokens) == text


@given(width=st.integers(20, 250), trouble=st.text(max_size=40))
def test_the_header_is_one_line_of_the_given_width(width: int, trouble: str) -> None:
    line = plain(view.header(sample.look(), trouble, NOW, width, sample.HOME))
    assert "\n" not in line
    assert output.width_of(line) <= width


def test_the_header_says_what_is_wrong() -> None:
    dead = sample.look(supervisor=SupervisorStatus("dead"), queue=Queue())
    fleet = replace(dead.fleet, tmux=False, file_changed=True)
    line = plain(view.header(replace(dead, fleet=fleet), "", NOW, 120, sample.HOME))
    assert line.startswith(" review  ~/widget ")
    assert line.endswith("supervisor dead  not up  file changed since up  6 agents ")
    assert plain(view.header(None, "no plan", NOW, 80)).strip() == "no plan"


def test_the_queue_shows_what_is_not_hidden_and_counts_the_rest() -> None:
    look = sample.look()
    assert [row.key for row in view.queue(look, NOW, 80).rows] == ["a7", "a4", "a2"]
    assert view.queue_title(look, NOW) == "Waits for you (3), 1 later"
    assert [row.key for row in view.queue(look, NOW + 601, 80).rows] == ["a7", "a4", "a2", "a8"]
    team = Item("a9", "", Need("budget", NOW, "used up"), NOW, NOW)
    assert [cell.text.strip() for cell in view.queue(sample.look(queue=Queue((team,))), NOW, 80).rows[0].cells][
        1
    ] == "team"


def test_an_item_is_found_by_its_id_else_by_its_agent() -> None:
    look = sample.look()
    by_id, by_handle = view.find_item(look, NOW, "a2", "bo-1"), view.find_item(look, NOW, "", "bo-1")
    assert by_id is not None
    assert by_handle is not None
    assert (by_id.id, by_handle.id) == ("a2", "a7")
    assert view.find_item(look, NOW, "", "ana") is None


def test_a_question_has_title_text_and_last_words_as_far_as_they_fit() -> None:
    item = sample.QUEUE.items[0]
    whole = [plain(line) for line in view.question(item, 70, 20)]
    assert whole[0] == "bo-1: permission  Bash: rm -rf build && python -m build"
    assert whole[2:4] == ["rm -rf build && python -m build", "Build the package anew"]
    assert whole[5].startswith("It sleeps")
    short = view.question(item, 70, 3)
    assert (len(short), plain(short[-1])) == (3, "… the rest is on its screen")


def test_text_of_others_is_shown_as_it_is_and_steers_nothing() -> None:
    evil = "\x1b[2J[bold red]you\x07[/]\u202e"
    look = sample.look(messages=(ChatMessage(evil, int(NOW), evil),), queue=Queue())
    lines = [*view.chat(look, NOW, 60), *view.screen(Mirror("ana", (evil,)), NOW, 60)]
    need = Need("question", NOW, evil, evil, ((evil, evil),), evil)
    lines += [
        *view.question(Item("a1", "ana", need, NOW, NOW), 60, 20),
        *view.options(Item("a1", "ana", need, NOW, NOW), 60),
    ]
    for line in lines:
        text = plain(line)
        assert text.isprintable()
        assert "[bold red]you" in text or not text.strip() or "\\u202e" in text


def test_a_screen_is_cut_and_loses_its_empty_end() -> None:
    rows = ("one", "x" * 30, "", "")
    assert [plain(line) for line in view.screen(Mirror("ana", rows), NOW, 10)] == ["one", "xxxxxxxxx…"]
    assert plain(view.screen(Mirror("ana", remark="no pane"), NOW, 10)[0]) == "no pane"
    kept = view.screen(Mirror("ana", ("one",), at=NOW - 90), NOW, 60)
    assert [plain(line) for line in kept] == ["the last screen kept, 1m 30s old", "one"]


def test_nothing_to_show_is_said() -> None:
    empty = sample.look(agents=(), queue=Queue(), messages=(), story=())
    assert plain(view.chat(empty, NOW, 60)[0]) == "Nobody has said anything here."
    assert plain(view.chat(replace(empty, chat=""), NOW, 60)[0]) == "The team has no chat."
    assert plain(view.story(empty, NOW, 60)[0]) == "Nothing has happened yet."
    assert view.agents(empty, NOW, 60).rows == ()


def test_it_rests_until_something_on_it_would_look_different() -> None:
    idle = tuple(sample.agent(h, AgentState.IDLE, ago) for h, ago in (("ana", 3_700.0), ("bo", 90.0)))
    quiet = sample.look(agents=idle, queue=Queue(), supervisor=SupervisorStatus("running", 1, NOW - 7_210.0))
    assert view.rest(quiet, NOW) == 30.0  # bo's 1m becomes 2m
    assert view.rest(sample.look(), NOW) == 1.0  # cy is busy for seconds
    assert view.rest(None, NOW) == 1.0


@given(ages=st.lists(st.floats(0, 400_000), min_size=1, max_size=4))
def test_nothing_on_it_changes_before_it_has_rested(ages: list[float]) -> None:
    agents = tuple(sample.agent(f"a{i}", AgentState.IDLE, age) for i, age in enumerate(ages))
    look = sample.look(agents=agents, queue=Queue(), supervisor=SupervisorStatus("running"))
    rest = view.rest(look, NOW)
    if rest > 1.0:
        assert view.agents(look, NOW, 80) == view.agents(look, NOW + rest - 0.01, 80)


def test_a_screen_that_does_not_change_is_looked_at_more_and_more_rarely() -> None:
    pace, waits = Pace(), []
    for _ in range(5):
        pace = pace.after(changed=False)
        waits.append(pace.seconds)
    assert waits == [1.0, 2.0, 4.0, LAST, LAST]
    assert pace.after(changed=True).seconds == FIRST
