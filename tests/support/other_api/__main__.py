"""Serve by hand: prints the port, then a line per request, until it is ended."""

from __future__ import annotations

import argparse
import json
import time

from tests.support.other_api.server import OtherApi


def main() -> None:
    """Run until the process is ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--bodies", action="store_true", help="print each request whole")
    given = parser.parse_args()
    with OtherApi(port=given.port) as api:
        print(api.port, flush=True)
        shown = 0
        while True:
            for seen in api.requests()[shown:]:
                shown += 1
                print(f"{seen.at:.3f} {seen.who} {seen.path} -> {seen.answer}", flush=True)
                if given.bodies:
                    print(json.dumps(seen.body), flush=True)
            time.sleep(0.1)


if __name__ == "__main__":
    main()
