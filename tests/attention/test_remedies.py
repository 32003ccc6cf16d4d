"""What a person may choose where an agent needs one and no dialog is open."""

from __future__ import annotations

import pytest

from nbs_fleet.attention.remedies import REMEDIES, Deed, find, options


@pytest.mark.parametrize("kind", sorted(REMEDIES))
def test_each_option_of_a_reason_is_found_by_key_by_label_and_only_one_of_them(kind: str) -> None:
    offered = options(kind)
    assert len({key for key, _ in offered}) == len(offered)
    for key, label in offered:
        by_key, by_label = find(kind, key), find(kind, label.upper())
        assert by_key is not None
        assert by_key == by_label
        assert by_key.option == (key, label)


def test_the_beginning_of_a_label_is_enough_where_only_one_begins_so() -> None:
    found = find("limit", "try")
    assert found is not None
    assert found.deed is Deed.GO_ON
    assert find("limit", "") is None
    assert find("limit", "t" * 3) is None


def test_every_reason_but_a_dialog_has_a_way_out() -> None:
    """The reasons that `queue` documents, less the dialogs, which have options of their own."""
    for kind in ("login", "limit", "error", "crash", "failed", "escalation", "idle-done"):
        assert find(kind, "stop") is not None, kind
        assert len(options(kind)) > 1, kind
    assert options("permission") == ()


def test_what_is_said_to_an_agent_needs_a_text() -> None:
    reply = find("escalation", "reply")
    assert reply is not None
    assert reply.needs_text
