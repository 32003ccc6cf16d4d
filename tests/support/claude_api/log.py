"""The request log: one line per request in requests.jsonl, each body whole in NNNN.json."""

from __future__ import annotations

import json
import re
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.claude_api.directives import strip_reminders, texts


@dataclass(frozen=True)
class Request:
    """One request as it came in. `at` is wall seconds; `session` the client's session header; `body` the JSON."""

    number: int
    at: float
    method: str
    path: str
    session: str | None
    answer: str
    body: dict[str, Any]

    @property
    def is_turn(self) -> bool:
        """Whether it belongs to a conversation (tools are offered), not to a title or a summary."""
        return self.method == "POST" and self.path.startswith("/v1/messages") and bool(self.body.get("tools"))

    @property
    def user_blocks(self) -> list[str]:
        """Every text block of the user's messages, in order, byte for byte, the client's own reminders included."""
        messages = self.body.get("messages") or []
        return [block for m in messages if m.get("role") == "user" for block in texts(m.get("content"))]

    @property
    def user_texts(self) -> list[str]:
        """The user's text blocks without those that are only reminders of the client."""
        return [block for block in self.user_blocks if strip_reminders(block).strip()]


class RequestLog:
    """Writes and reads the log in one folder; numbering goes on where an earlier server stopped."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir(parents=True, exist_ok=True)
        self._lock = threading.Lock()
        numbers = [int(p.stem) for p in folder.iterdir() if re.fullmatch(r"\d{4,}\.json", p.name)]
        self._last = max(numbers, default=0)

    def add(self, request: dict[str, Any], body: dict[str, Any]) -> int:
        """Append one request and return its number."""
        with self._lock:
            self._last += 1
            number = self._last
            record = {"n": number, **request, "model": body.get("model"), "n_messages": len(body.get("messages") or [])}
            text = json.dumps(body, indent=1, ensure_ascii=False)
            (self.folder / f"{number:04d}.json").write_text(text, encoding="utf-8", errors="surrogatepass")
            with (self.folder / "requests.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(record, ensure_ascii=False) + "\n")
        return number

    def read(self) -> list[Request]:
        """Every request so far, oldest first."""
        path = self.folder / "requests.jsonl"
        if not path.exists():
            return []
        with self._lock:
            lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
        return [self._request(line) for line in lines]

    def _request(self, line: dict[str, Any]) -> Request:
        path = self.folder / f"{line['n']:04d}.json"
        body = json.loads(path.read_text(encoding="utf-8", errors="surrogatepass"))
        return Request(line["n"], line["t"], line["method"], line["path"], line["session"], line["answer"], body)
