"""What really reached each agent: the requests its client made, read as a ledger of arrivals."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from nbs_fleet.drivers.proofs import MARK
from tests.support.claude_api.directives import summary_wanted, texts
from tests.support.clients import Client

Body = dict[str, Any]
TOKEN = re.compile(r"\btk[0-9a-f]{12}\b")
"""What tests put into the text of each message, so that it is known by more than its id."""
QUOTED = re.compile(r"<command-.*?</command-\w+>|<local-command-\w+>.*?</local-command-\w+>", re.DOTALL)


class Ledger(Protocol):
    """Reads on where it stopped, so that asking often is cheap."""

    def texts(self) -> dict[str, str]:
        """The text of each message that arrived, by id: from its mark to the end of its block."""
        ...

    def times(self) -> Counter[str]:
        """How often each id, and each token, came anew into a conversation."""
        ...


class Requests:
    """Arrivals by the requests for turns: what was not in the conversation's request before has come anew.

    A conversation may be cut by a compaction or a restart; what disappears and comes again counts twice.
    """

    def __init__(self) -> None:
        self._last: dict[str, Counter[str]] = {}
        self._times: Counter[str] = Counter()
        self._texts: dict[str, str] = {}

    def take(self, session: str, body: Body) -> None:
        """One request of a session."""
        if summary_wanted(body):
            return
        now: Counter[str] = Counter()
        for message in body.get("messages") or []:
            if message.get("role") in ("user", "system"):
                for block in texts(message.get("content")):
                    self._block(block, now)
        self._times += now - self._last.get(session, Counter())
        self._last[session] = now

    def _block(self, block: str, now: Counter[str]) -> None:
        marks = list(MARK.finditer(block))
        now.update(mark[1] for mark in marks)
        now.update(TOKEN.findall(block))
        for mark, after in zip(marks, [*marks[1:], None], strict=False):
            self._texts[mark[1]] = block[mark.start() : after.start() if after else len(block)]

    def texts(self) -> dict[str, str]:
        """The text of each message that arrived."""
        return self._texts

    def times(self) -> Counter[str]:
        """How often each id and token came."""
        return self._times


class Lines:
    """Whole lines that were added to a file since the last look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._at = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._at)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._at += len(line)
                yield json.loads(line)


class ApiLedger(Requests):
    """Of the real client: the scripted API's log."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self._folder = log
        self._lines = Lines(log / "requests.jsonl")

    def read(self) -> None:
        """Read what is new."""
        for line in self._lines:
            if line["method"] == "POST" and line["session"]:
                text = (self._folder / f"{line['n']:04d}.json").read_text(encoding="utf-8", errors="surrogatepass")
                body = json.loads(text)
                if body.get("tools"):
                    self.take(line["session"], body)


class SimLedger(Requests):
    """Of the simulator: its own log of what its model was asked."""

    def __init__(self, log: Path) -> None:
        super().__init__()
        self._lines = Lines(log)

    def read(self) -> None:
        """Read what is new."""
        for line in self._lines:
            self.take(line["session"], line)


class TranscriptLedger(Requests):
    """Of claudeless: its transcripts, which only grow; a turn is written when it is over."""

    def __init__(self, base: Path) -> None:
        super().__init__()
        self._base = base

    def read(self) -> None:
        """Read all of them anew."""
        self._times, self._texts = Counter(), {}
        for path in self._base.rglob("projects/*/*.jsonl"):
            for line in Lines(path):
                message = line.get("message")
                if line.get("type") == "user" and isinstance(message, dict):
                    for block in texts(message.get("content")):
                        self._block(block, self._times)


def ledger(client: Client, sim_log: Path) -> ApiLedger | SimLedger | TranscriptLedger:
    """The ledger of this client."""
    if client.name == "sim":
        return SimLedger(sim_log)
    if client.api is not None:
        return ApiLedger(client.api.log.folder)
    return TranscriptLedger(client.base)
