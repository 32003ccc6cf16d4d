"""Runs the scripted API by hand until interrupted; the first line it prints is its address."""

from __future__ import annotations

import argparse
import contextlib
import signal
import threading
from pathlib import Path

from nbs_fleet.sim.scenario import load as read_scenario
from tests.support.claude_api.server import ScriptedApi


def main() -> None:
    """Serve until SIGINT or SIGTERM."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--log", type=Path, default=Path("api-log"), help="folder of the request log")
    parser.add_argument("--scenario", help="a simulator's scenario that says what is answered")
    given = parser.parse_args()
    done = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: done.set())
    with ScriptedApi(given.log, port=given.port) as api, contextlib.suppress(KeyboardInterrupt):
        api.control.scenario = read_scenario(given.scenario) if given.scenario else None
        print(f"{api.port} {api.url}", flush=True)
        done.wait()


if __name__ == "__main__":
    main()
