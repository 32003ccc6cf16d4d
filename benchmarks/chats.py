"""Chats of the nbs tools: what a look for unread messages and one more message cost, by the chat's length."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from functools import partial
from unittest import mock

from benchmarks.figures import Benchmark, Beside, Figure, Options, median
from nbs_fleet.nbs import chat_file, chat_format
from nbs_fleet.nbs.chat import Chat
from nbs_fleet.nbs.files import replace, write_new

LENGTHS = (10, 1000, 10_000)
TEXT = "I looked at what changed since the last release; two of the tests fail. @bo, will you take it? " * 2
UNREAD_GOAL = 0.1
APPEND_GOAL = 3.0


def chat_of(path: str, length: int) -> Chat:
    """A chat with so many messages, of which all but the last are read by ana."""
    lines = b"".join(chat_format.encode_line("bo", 1, f"{number}: {TEXT}") + b"\n" for number in range(length))
    header = chat_format.Header("bo", "2026-01-01T00:00:00+0000", (("bo", length),))
    write_new(path, chat_format.head(header, len(lines)), lines)
    chat = Chat(path)
    chat.set_cursor("ana", length - 2)
    return chat


def unread(chat: Chat, rounds: int) -> list[float]:
    """Milliseconds of a look for what is unread while nothing changed."""
    chat.unread("ana")
    return [_timed(lambda: chat.unread("ana")) for _ in range(rounds)]


def appended(chat: Chat, rounds: int) -> tuple[list[float], list[float], list[float]]:
    """Milliseconds of a message more, of writing a file of that size once, of another's look that sees the message."""
    other = Chat(chat.path)
    other.unread("ana")
    sent, written, seen = [], [], []
    for number in range(rounds):
        sent.append(_timed(partial(chat.send, "bo", f"more {number}: {TEXT}")))
        with open(chat.path, "rb") as file:
            data = file.read()
        written.append(_timed(partial(replace, f"{chat.path}.copy", data)))
        seen.append(_timed(lambda: other.unread("ana")))
    return sent, written, seen


def _timed(call: Callable[[], object]) -> float:
    began = time.perf_counter()
    call()
    return (time.perf_counter() - began) * 1000


def figures(options: Options) -> list[Figure]:
    """All lengths; archiving is put off, since it would keep every chat below 2,000 messages."""
    found = []
    with (
        tempfile.TemporaryDirectory(prefix="nbs-bench-") as folder,
        mock.patch.object(chat_file, "ARCHIVE_ABOVE", 10**9),
    ):
        for length in LENGTHS[:2] if options.quick else LENGTHS:
            chat = chat_of(os.path.join(folder, f"{length}.chat"), length)
            at = f"{length:,} messages"
            looks = median(unread(chat, options.some(500, 100)))
            sent, written, seen = appended(chat, options.some(30, 5))
            beside = Beside("writing the file once", median(written), at_most=APPEND_GOAL if length == 10_000 else None)
            goal = UNREAD_GOAL if length == 10_000 else None
            found += [
                Figure(f"chat: unread check, nothing new, {at}", "ms", looks, at_most=goal),
                Figure(f"chat: unread check, one message new, {at}", "ms", median(seen)),
                Figure(f"chat: append, {at}", "ms", median(sent), beside=(beside,)),
            ]
    return found


BENCHMARK = Benchmark(
    "chats",
    "One chat object, as the supervisor keeps it, in this process. A look while nothing changed; a look after somebody "
    "else appended a message; an append under the nbs tools' lock, beside writing a file of the same bytes once the same "
    "way (new file, flush, rename). Archiving, which keeps chats below 2,000 messages, is put off.",
    figures,
)
