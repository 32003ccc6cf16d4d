"""Starts that are asked for at one moment are one batch, and each asker gets its own results."""

from __future__ import annotations

import asyncio

import pytest

from nbs_fleet.supervisor.fleet import Launched, StartOne
from nbs_fleet.supervisor.launches import Launches

Batches = list[tuple[str, ...]]


def launches(batches: Batches) -> Launches:
    """Notes the handles of each batch."""

    def start(starts: tuple[StartOne, ...]) -> tuple[Launched, ...]:
        batches.append(tuple(one.handle for one in starts))
        return tuple(Launched(one.handle) for one in starts)

    return Launches(start)


def one(*handles: str) -> tuple[StartOne, ...]:
    return tuple(StartOne(handle, fresh=False) for handle in handles)


async def test_starts_of_one_moment_are_one_batch() -> None:
    batches: Batches = []
    made = launches(batches)
    results = await asyncio.gather(made.start(one("ana", "bo")), made.start(one("cy")))
    assert batches == [("ana", "bo", "cy")]
    assert [[result.handle for result in some] for some in results] == [["ana", "bo"], ["cy"]]


async def test_a_later_start_is_a_batch_of_its_own() -> None:
    batches: Batches = []
    made = launches(batches)
    await made.start(one("ana"))
    await made.start(one("bo"))
    assert batches == [("ana",), ("bo",)]


async def test_who_is_cancelled_leaves_the_others_their_batch() -> None:
    batches: Batches = []
    made = launches(batches)
    first, second = asyncio.create_task(made.start(one("ana"))), asyncio.create_task(made.start(one("bo")))
    await asyncio.sleep(0)
    first.cancel()
    assert [result.handle for result in await second] == ["bo"]
    assert batches == [("ana", "bo")]


async def test_what_goes_wrong_is_told_to_all_of_the_batch() -> None:
    def fail(_starts: tuple[StartOne, ...]) -> tuple[Launched, ...]:
        raise OSError("no room")

    made = Launches(fail)
    results = await asyncio.gather(made.start(one("ana")), made.start(one("bo")), return_exceptions=True)
    assert [type(result) for result in results] == [OSError, OSError]
    with pytest.raises(OSError, match="no room"):
        await made.start(one("cy"))
