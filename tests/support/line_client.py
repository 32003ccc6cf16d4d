"""A small client for tests of the generic driver: reads a line, works, may ask back; writes down all it was told.

`line_client.py LOG`: each line goes into LOG as JSON. `[[work]]` in a line: it works until a file LOG.go is there;
`[[ask]]`: it asks for a permission first, and writes the answer down as well.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path


def main() -> int:
    """Serve until the input ends."""
    log = Path(sys.argv[1])
    print("line client, ready", flush=True)
    while True:
        try:
            line = input("> ")
        except EOFError:
            return 0
        note(log, line)
        if "[[ask]]" in line:
            note(log, "answer: " + input("Run it? [y/N] "))
        while "[[work]]" in line and not log.with_suffix(".go").exists():
            print("working", flush=True)
            time.sleep(0.2)
        print("done", flush=True)


def note(log: Path, text: str) -> None:
    """Write down what was said."""
    with log.open("a", encoding="utf-8") as file:
        file.write(json.dumps(text) + "\n")


if __name__ == "__main__":
    sys.exit(main())
