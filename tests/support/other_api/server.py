"""The HTTP side: takes requests on loopback, keeps each, and streams the reply that is due."""

from __future__ import annotations

import gzip
import json
import threading
import time
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Self

from tests.support.claude_api import directives
from tests.support.claude_api.directives import Directive
from tests.support.other_api import replies
from tests.support.other_api.dialects import Asked, Json, read, sample
from tests.support.other_api.replies import Reply

TAGGED = 3
"""Parts of a path that begins with the word of whoever asks."""


@dataclass(frozen=True)
class Seen:
    """One request as it came in. `at`: wall seconds; `who`: the word in its address; `answer`: what it was given."""

    at: float
    who: str
    path: str
    asked: Asked | None
    answer: str
    body: Json


class OtherApi:
    """The server, running in a thread of this process while the context manager is open."""

    def __init__(self, *, port: int = 0) -> None:
        self.closing = threading.Event()
        self._seen: list[Seen] = []
        self._failed: dict[str, int] = {}
        self._lock = threading.Lock()
        self._server = _Server(("127.0.0.1", port), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def port(self) -> int:
        """The port it listens on, on 127.0.0.1."""
        return int(self._server.server_address[1])

    def url(self, who: str) -> str:
        """The base address for a client that is called `who` here; an OpenAI client wants `/v1` added."""
        return f"http://127.0.0.1:{self.port}/{who}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.closing.set()
        self._server.shutdown()
        self._thread.join(10)
        self._server.server_close()

    def requests(self, who: str | None = None) -> list[Seen]:
        """Every request so far, or those of one client."""
        with self._lock:
            return [seen for seen in self._seen if who in (None, seen.who)]

    def turns(self, who: str | None = None) -> list[Asked]:
        """The requests that belong to conversations."""
        return [seen.asked for seen in self.requests(who) if seen.asked is not None and seen.asked.is_turn]

    def told(self, who: str, text: str) -> int:
        """How often this text stands in the last request of a conversation: what the model knows of it."""
        turns = self.turns(who)
        return "\n".join(turns[-1].texts).count(json.dumps(text, ensure_ascii=False)[1:-1]) if turns else 0

    def note(self, seen: Seen) -> None:
        """Keep a request."""
        with self._lock:
            self._seen.append(seen)

    def fails_again(self, step: Directive) -> bool:
        """Count one more failure of an `err` step; False once it has failed as often as it should."""
        often = int(step.words[1] or 99)
        with self._lock:
            done = self._failed.get(step.key or "", 0)
            self._failed[step.key or ""] = done + 1
        return done < often


def due(asked: Asked) -> Directive:
    """The directive for a request."""
    if asked.wanted is not None:
        return Directive("say", json.dumps(sample(asked.wanted)))
    if not asked.tools:
        return Directive("say", "a side answer")
    return directives.pick({"messages": asked.messages, "tools": ["some"]})


def reply_to(step: Directive, asked: Asked) -> Reply:
    """What the model does at this step."""
    head, rest = step.words
    match step.verb:
        case "slow":
            return Reply(rest, seconds=float(head))
        case "wait":
            return Reply(rest or "waited", before=float(head))
        case "bash":
            return Reply(call=asked.shell(step.arg))
        case "tool":
            return Reply(call=(head, json.loads(rest or "{}")))
        case "say":
            return Reply(step.arg)
        case _:
            return Reply(f"the directive {step.verb} is not known here")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], api: OtherApi) -> None:
        super().__init__(address, _Handler)
        self.api = api


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing: what was asked is kept."""

    def do_GET(self) -> None:
        self.server.api.note(Seen(time.time(), self._who(), self.path, None, "", {}))
        if "/models" in self.path:
            model = {"id": "fake-model", "object": "model", "created": 1, "owned_by": "test"}
            self._json(200, {"object": "list", "data": [model], "models": []})
        else:
            self._json(404, {"error": {"message": f"no {self.path}"}})

    def do_POST(self) -> None:
        try:
            body = json.loads(self._data() or b"{}")
        except ValueError:
            body = {}
        asked = read(self.path, body)
        step = due(asked) if asked is not None else None
        self.server.api.note(Seen(time.time(), self._who(), self.path, asked, str(step or ""), body))
        try:
            if asked is not None and step is not None:
                self._answer(step, asked)
            elif self.path.partition("?")[0].endswith(":countTokens"):
                self._json(200, {"totalTokens": 42})
            else:
                self._json(404, {"error": {"message": f"no {self.path}"}})
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True

    def _who(self) -> str:
        parts = self.path.split("/")
        return parts[1] if len(parts) >= TAGGED else ""

    def _data(self) -> bytes:
        if self.headers.get("transfer-encoding") == "chunked":
            data = b""
            while size := int(self.rfile.readline().strip() or b"0", 16):
                data += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        else:
            data = self.rfile.read(int(self.headers.get("content-length") or 0))
        return gzip.decompress(data) if self.headers.get("content-encoding") == "gzip" else data

    def _answer(self, step: Directive, asked: Asked) -> None:
        if step.verb == "err":
            if self.server.api.fails_again(step):
                status = int(step.words[0])
                self._json(status, {"error": {"message": f"scripted error {status}", "type": "server_error"}})
                return
            step = Directive("say", "recovered")
        reply = reply_to(step, asked)
        if not asked.stream:
            self._pause(reply.before + reply.seconds)
            self._json(200, replies.whole(reply, asked))
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-cache")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for event in replies.stream(reply, asked):
            if isinstance(event, float):
                self._pause(event)
                continue
            name, data = event
            head = f"event: {name}\n" if name else ""
            text = data if isinstance(data, str) else json.dumps(data)
            self.wfile.write(f"{head}data: {text}\n\n".encode())
            self.wfile.flush()

    def _pause(self, seconds: float) -> None:
        if seconds and self.server.api.closing.wait(seconds):
            raise BrokenPipeError

    def _json(self, status: int, value: Json) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
