"""The HTTP side: takes requests on loopback, logs each, and streams the reply that is due."""

from __future__ import annotations

import json
import socket
import sys
import threading
import time
import uuid
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from nbs_fleet.sim.scenario import Scenario
from tests.support.claude_api import directives, scenarios
from tests.support.claude_api.directives import Directive
from tests.support.claude_api.log import Request, RequestLog
from tests.support.claude_api.replies import STREAMS

KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    503: "api_error",
    529: "overloaded_error",
}
SAID = {
    400: "prompt is too long: 250000 tokens > 200000 maximum",
    401: "invalid x-api-key",
    429: "This request would exceed your account's rate limit. Please try again later.",
    500: "Internal server error",
    529: "Overloaded",
}


@dataclass
class Control:
    """What a test may set from outside: a forced directive for the next turns, and how long a summary takes."""

    force: Directive | None = None
    left: int = 0
    compact_seconds: float = 0.0
    folder: Path = Path()
    """Where the files that `until` waits for are looked for."""
    obliging: bool = False
    """Say the one word that a message asks for, as a model does that heeds it."""
    scenario: Scenario | None = None
    """Answers what holds no directive, as the simulators do."""
    failed: dict[str, int] = field(default_factory=dict)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def due(self, body: dict[str, Any]) -> Directive:
        """The directive for this request."""
        side = directives.side_request(body, compact_seconds=self.compact_seconds)
        if side is not None:
            return side
        with self.lock:
            if self.force is not None and self.left > 0:
                self.left -= 1
                return self.force
        wish = directives.wished_word(body) if self.obliging else None
        if wish:
            return directives.Directive("say", wish)
        if self.scenario is not None:
            return scenarios.pick(self.scenario, body)
        return directives.pick(body)

    def fails_again(self, step: Directive) -> bool:
        """Count one more failure of an `err` step; False once it has failed as often as it should."""
        if step.key is None:
            return True
        often = int(step.words[1] or 99)
        with self.lock:
            done = self.failed.get(step.key, 0)
            self.failed[step.key] = done + 1
        return done < often


class ScriptedApi:
    """The server, running in a thread of this process between `start` and `close` (or as a context manager)."""

    def __init__(self, log: Path, *, port: int = 0) -> None:
        self.log = RequestLog(log)
        self.control = Control()
        self.closing = threading.Event()
        self._server = _Server(("127.0.0.1", port), self)
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True)

    @property
    def port(self) -> int:
        """The port it listens on, on 127.0.0.1."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """The base address for the client."""
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> Self:
        """Begin to serve."""
        self._thread.start()
        return self

    def close(self) -> None:
        """Stop serving; replies that are pausing end at once."""
        self.closing.set()
        if self._thread.is_alive():
            self._server.shutdown()
            self._thread.join(10)
        self._server.server_close()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def force(self, directive: str, count: int) -> None:
        """Answer the next `count` turns with this directive, whatever their prompts say."""
        step = directives.parse(directive)
        if step is None:
            raise ValueError(f"not a directive: {directive}")
        with self.control.lock:
            self.control.force, self.control.left = step, count

    def requests(self) -> list[Request]:
        """Every request so far."""
        return self.log.read()

    def turns(self) -> list[Request]:
        """The requests that belong to conversations."""
        return [request for request in self.requests() if request.is_turn]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(self, address: tuple[str, int], api: ScriptedApi) -> None:
        super().__init__(address, _Handler)
        self.api = api

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that was killed in the middle of a request is no news here."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Say nothing: the request log has it all."""

    def do_HEAD(self) -> None:
        self._note({}, "200")
        self.send_response(200)
        self.send_header("content-length", "0")
        self.end_headers()

    def do_GET(self) -> None:
        self._note({}, "404")
        self._refuse(404, f"no {self.path}")

    def do_POST(self) -> None:
        data = self.rfile.read(int(self.headers.get("content-length") or 0))
        try:
            body = json.loads(data or b"{}")
        except ValueError:
            body = {}
        if "/count_tokens" in self.path:
            self._note(body, "count")
            self._json(200, {"input_tokens": max(1, len(data) // 4)})
        elif not self.path.startswith("/v1/messages"):
            self._note(body, "404")
            self._refuse(404, f"no {self.path}")
        else:
            step = self.server.api.control.due(body)
            self._note(body, str(step))
            try:
                self._answer(step, body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

    def _note(self, body: dict[str, Any], answer: str) -> None:
        session = self.headers.get("x-claude-code-session-id")
        seen = {"t": round(time.time(), 3), "method": self.command, "path": self.path}
        agent = self.headers.get("user-agent")
        self.server.api.log.add({**seen, "session": session, "agent": agent, "answer": answer}, body)

    def _answer(self, step: Directive, body: dict[str, Any]) -> None:
        if step.verb == "err":
            if self.server.api.control.fails_again(step):
                status = int(step.words[0])
                self._refuse(status, SAID.get(status, f"scripted error {status}"))
                return
            step = Directive("say", f"recovered after {step.words[1] or 99} errors")
        if step.verb == "until":
            self._await_file(step.words[0])
            step = Directive("say", step.words[1] or "there it is")
        if not body.get("stream"):
            self._whole(step, body)
            return
        opened = False
        for event in STREAMS[step.verb](step, body):
            if isinstance(event, float):
                if self.server.api.closing.wait(event):
                    raise BrokenPipeError
                continue
            if not opened:
                self._open_stream()
                opened = True
            name, payload = event
            self.wfile.write(f"event: {name}\ndata: {json.dumps(payload)}\n\n".encode())
            self.wfile.flush()
        if step.verb == "drop":
            self.connection.shutdown(socket.SHUT_RDWR)

    def _await_file(self, name: str) -> None:
        api = self.server.api
        while not (api.control.folder / name).exists():
            if api.closing.wait(0.05):
                raise BrokenPipeError

    def _open_stream(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("cache-control", "no-cache")
        self.send_header("request-id", f"req_{uuid.uuid4().hex[:16]}")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True

    def _whole(self, step: Directive, body: dict[str, Any]) -> None:
        head = {"id": f"msg_{uuid.uuid4().hex[:20]}", "type": "message", "role": "assistant"}
        content = [{"type": "text", "text": step.arg or "done"}]
        usage = {"input_tokens": 10, "output_tokens": 5}
        end = {"stop_reason": "end_turn", "stop_sequence": None, "usage": usage}
        self._json(200, {**head, "model": body.get("model"), "content": content, **end})

    def _refuse(self, status: int, message: str) -> None:
        error = {"type": KINDS.get(status, "api_error"), "message": message}
        headers = {"retry-after": "1", "x-should-retry": "true"} if status == 429 else {}
        self._json(status, {"type": "error", "error": error}, headers)

    def _json(self, status: int, value: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        data = json.dumps(value).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        self.send_header("request-id", f"req_{uuid.uuid4().hex[:16]}")
        for name, text in (headers or {}).items():
            self.send_header(name, text)
        self.end_headers()
        self.wfile.write(data)
