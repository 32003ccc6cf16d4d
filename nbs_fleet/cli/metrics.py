"""`nbs-fleet metrics`: the team in numbers as Prometheus text, printed or served on a Unix socket."""

from __future__ import annotations

import os
import socket
import stat
import sys
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingMixIn, UnixStreamServer
from typing import TYPE_CHECKING, Annotated

import typer

from nbs_fleet.cli import output
from nbs_fleet.cli.lookup import Found, find_team
from nbs_fleet.cli.params import TeamName
from nbs_fleet.cli.queue import current
from nbs_fleet.errors import FleetError, UnknownNameError
from nbs_fleet.launch.messages import Mailbox
from nbs_fleet.supervisor.measures import Measure, Spread, measures
from nbs_fleet.supervisor.status import status

if TYPE_CHECKING:
    from prometheus_client import Metric

KEPT = 1_000
"""Ended messages of one agent that are counted: as many as are kept."""
CONTENT = "text/plain; version=0.0.4; charset=utf-8"
ASKED_SECONDS = 5.0
"""How long a caller may take for its request."""

Serve = Annotated[
    str | None,
    typer.Option("--serve", metavar="SOCKET", help="answer HTTP requests on this Unix socket (0600) until Ctrl-C"),
]


def metrics(*, serve: Serve = None, team: TeamName = None) -> None:
    """Print the team in numbers, in the text form that Prometheus reads. Works while the supervisor is dead.

    Each value is what it is now: numbers of messages are those that are still kept. With --serve it is counted anew
    for each request.

    For example:
        nbs-fleet metrics
        nbs-fleet metrics --serve /run/user/1000/fleet-metrics.sock
    """
    found = find_team(team)
    if serve is None:
        for line in exposition(found).splitlines():
            output.say(line)
        return
    _serve(found, os.path.abspath(serve))


def exposition(found: Found) -> str:
    """Everything as Prometheus text; raises UnknownNameError for a team that was never up."""
    from prometheus_client import CollectorRegistry, generate_latest

    now = time.time()
    fleet = status(found.paths, now)
    if fleet is None:
        raise UnknownNameError(f"{found.team} was never up", hint="nbs-fleet up FILE starts it")
    ended = (one for row in fleet.agents for one in Mailbox(found.paths.agent(row.handle)).archived(KEPT))
    every = measures(fleet, current(found).visible(now), ended, now)

    class Team:
        def collect(self) -> Iterator[Metric]:
            return (_family(one, found.team) for one in every)

    registry = CollectorRegistry(auto_describe=False)
    registry.register(Team())
    return generate_latest(registry).decode()


def _family(one: Measure | Spread, team: str) -> Metric:
    from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily

    name = f"nbs_fleet_{one.name}"
    if isinstance(one, Spread):
        bounds = [f"{bound:g}" for bound in one.bounds] + ["+Inf"]
        spread = HistogramMetricFamily(name, one.help, labels=["team"])
        spread.add_metric([team], list(zip(bounds, [*one.counts, one.number], strict=True)), one.total)
        return spread
    names = [label for label, _ in one.samples[0].labels] if one.samples else []
    gauge = GaugeMetricFamily(name, one.help, labels=["team", *names])
    for sample in one.samples:
        gauge.add_metric([team, *(value for _, value in sample.labels)], sample.value)
    return gauge


class _Server(ThreadingMixIn, UnixStreamServer):
    daemon_threads = True

    def __init__(self, path: str, found: Found) -> None:
        self.found = found
        super().__init__(path, _Handler)

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 - the library's own
        """A caller that went away is nobody's news."""
        error = sys.exception()
        if not isinstance(error, OSError):
            output.note(f"a request failed: {error}")


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    timeout = ASKED_SECONDS

    def do_GET(self) -> None:
        """Answer `/metrics` and `/`."""
        if self.path not in ("/", "/metrics"):
            self.send_error(404)
            return
        try:
            body = exposition(self.server.found).encode()
        except FleetError as error:
            self.send_error(503, error.message)
            return
        self.send_response(200)
        self.send_header("Content-Type", CONTENT)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def address_string(self) -> str:
        """A Unix socket has no address of its caller."""
        return "local"

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's name
        """Nothing: a scrape each few seconds is no news."""


def _serve(found: Found, path: str) -> None:
    _free(path)
    # Made with 0600 from the first moment on: a socket has the mode that the mask leaves it.
    mask = os.umask(0o177)
    try:
        server = _Server(path, found)
    except OSError as error:
        raise FleetError(f"can't listen on {path}: {error.strerror or error}") from error
    finally:
        os.umask(mask)
    output.note(f"serving on {path} until Ctrl-C")
    try:
        server.serve_forever()
    finally:
        server.server_close()
        os.unlink(path)


def _free(path: str) -> None:
    """Remove a socket that nobody listens on any more; FleetError for anything else that is in the way."""
    try:
        there = os.lstat(path)
    except FileNotFoundError:
        return
    # Asked of the file itself: Linux refuses a connection to a plain file as it does to a socket nobody listens on.
    if not stat.S_ISSOCK(there.st_mode) or there.st_uid != os.geteuid():
        raise FleetError(f"{path} is there already, and is no socket of yours")
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
            return
        except OSError as error:
            raise FleetError(f"can't tell who listens on {path}: {error.strerror}") from error
    raise FleetError(f"somebody serves on {path} already")
