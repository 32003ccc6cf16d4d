"""JSON of other programs is read as values that can be written, and what we say can always be written."""

from __future__ import annotations

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet import jsontext
from nbs_fleet.model import Message


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (r'"\ud83d\ude42"', "🙂"),
        (r'"cut \ud83d"', "cut \ufffd"),
        (r'"\ude42 cut"', "\ufffd cut"),
        (r'"\uD83D\uD83D\uDE42"', "\ufffd🙂"),
        (r'"\\ud83d"', r"\ud83d"),
        (r'"\\\ud83d"', "\\\ufffd"),
        ('{"a": 1e999, "b": NaN, "c": -Infinity, "d": 1.5}', {"a": None, "b": None, "c": None, "d": 1.5}),
    ],
)
def test_what_few_readers_expect_is_read(text: str, value: object) -> None:
    assert jsontext.loads(text) == value


@pytest.mark.parametrize("text", ["", "[" * 20_000, '{"a":' * 20_000, "nonsense", "[1] 2", "[1,2]", "9" * 5000])
def test_what_holds_no_object_is_an_empty_one(text: str) -> None:
    assert jsontext.load_object(text) == {}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        st.lists,
        max_leaves=8,
    )
)
def test_any_other_value_is_the_one_that_json_reads(value: object) -> None:
    assert jsontext.loads(json.dumps(value)) == value


@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_can_be_written_and_what_was_well_stays(text: str) -> None:
    written = msgspec.json.decode(jsontext.encode({"at": 1.5, "text": [text]}))
    assert written == {"at": 1.5, "text": ["".join("\ufffd" if "\ud800" <= c <= "\udfff" else c for c in text)]}


def test_a_value_type_is_written_as_its_fields() -> None:
    message = Message("d-0-1", "ana", "b\udcff", "hi", 1.0)
    assert msgspec.json.decode(jsontext.encode(message), type=Message) == msgspec.structs.replace(
        message, sender="b\ufffd"
    )
