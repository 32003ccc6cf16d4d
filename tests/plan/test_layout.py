"""Places: windows and slots that stay where they are."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.plan.layout import SUPERVISOR_WINDOW, Place, place
from nbs_fleet.spec.team import Layout


def test_one_pane_per_window_names_the_window_after_the_agent() -> None:
    assert place(["ana", "bo-1"], Layout(), {}) == {"ana": ("ana", 0), "bo-1": ("bo-1", 0)}


def test_no_agent_takes_the_supervisors_window() -> None:
    ((window, _),) = place([SUPERVISOR_WINDOW], Layout(), {}).values()
    assert window == "fleet~"


def test_tiled_windows_fill_one_after_the_other() -> None:
    assert place(["a", "b", "c"], Layout(panes_per_window=2), {}) == {
        "a": ("agents-1", 0),
        "b": ("agents-1", 1),
        "c": ("agents-2", 0),
    }


def test_a_newcomer_in_the_middle_of_the_file_moves_nobody() -> None:
    layout = Layout(panes_per_window=2)
    before = place(["a", "b", "c"], layout, {})
    after = place(["a", "new", "b", "c"], layout, before)
    assert after == before | {"new": ("agents-2", 1)}


def test_a_newcomer_takes_the_place_of_one_who_left() -> None:
    layout = Layout(panes_per_window=2)
    before = place(["a", "b", "c"], layout, {})
    del before["b"]
    assert place(["a", "c", "new"], layout, before)["new"] == ("agents-1", 1)


def test_a_new_layout_is_for_new_panes_only() -> None:
    before = place(["a", "b"], Layout(), {})
    after = place(["a", "b", "c", "d"], Layout(panes_per_window=2), before)
    assert after == before | {"c": ("agents-1", 0), "d": ("agents-1", 1)}


handles = st.lists(st.sampled_from("abcdefgh"), unique=True)


@given(handles, handles, st.integers(1, 4), st.integers(1, 4))
def test_places_are_kept_free_and_never_shared(first: list[str], second: list[str], one: int, two: int) -> None:
    before: dict[str, Place] = place(first, Layout(panes_per_window=one), {})
    after = place(second, Layout(panes_per_window=two), before)
    assert list(after) == second
    assert {h: after[h] for h in second if h in before} == {h: before[h] for h in second if h in before}
    everything = before | after
    assert len(set(everything.values())) == len(everything)
