"""What a hook call costs, beside a bare shell that writes the same file: `python benchmarks/hooks.py [--json]`."""

from __future__ import annotations

import argparse
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from nbs_fleet.hooks.files import programs

ROUNDS = 150
LIMIT_SECONDS = 300
BARE = '#!/bin/sh\ncat >"$1/.new.$$"\nmv -f "$1/.new.$$" "$1/$2.$$.json"\n'
FOLDERS = ("queue", "mail", "claimed", "inbox", "spool")
PAYLOAD = {
    "session_id": "6d0b9c1e-3f6a-4f0e-9a35-0c5f3f6d7a10",
    "transcript_path": "/nowhere/session.jsonl",
    "cwd": "/nowhere",
    "prompt_id": "1e2b061d-3f1d-4f2e-99ef-5b48e088910f",
    "hook_event_name": "Stop",
    "stop_hook_active": False,
    "last_assistant_message": "hi",
}


class Figure(NamedTuple):
    """One measured value: `baseline` in the same unit, `ratio` to it, the goal in words and whether it is met."""

    name: str
    value: float
    unit: str
    baseline: float | None = None
    goal: str = ""
    met: bool | None = None

    @property
    def ratio(self) -> float | None:
        """How many times the baseline it is."""
        return self.value / self.baseline if self.baseline else None


class Case(NamedTuple):
    """One kind of call: what to do before each, the arguments, the exit code that is right."""

    name: str
    argv: tuple[str, ...]
    before: Callable[[], None]
    code: int = 0


def nothing() -> None:
    """No preparation."""


def agent_at(run: Path) -> Path:
    """A run directory with one agent `ana`, its hooks and a bare script to compare with."""
    agent = run / "agents" / "ana"
    for name in FOLDERS:
        (agent / name).mkdir(parents=True)
    (run / "bin").mkdir()
    for name, text in {**programs(sys.executable), "bare": BARE}.items():
        path = run / "bin" / name
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        path.chmod(0o700)
    (agent / "hooks.json").write_text('{"asks": [],\n"dialect": "claude", "stop": "free"}\n', encoding="utf-8")
    (agent / "mail" / "tok").touch()
    return agent


def cases(run: Path, agent: Path) -> tuple[Case, ...]:
    """Everything that is measured; the first two are the baselines."""
    hook = str(run / "bin" / "nbs-hook")

    def token(place: str) -> Callable[[], None]:
        def put() -> None:
            (agent / "queue" / "d-1.json").write_text("{}", encoding="utf-8")
            (agent / place / "000001-d-1.msg").write_text("[nbs:d-1] message from bo:\nhello", encoding="utf-8")

        return put

    return (
        Case("bare sh, same write", (str(run / "bin" / "bare"), str(agent / "spool"), "Stop"), nothing),
        Case("bare python, json", (sys.executable, "-I", "-S", "-c", "import json"), nothing),
        Case("hook, nothing waiting", (hook, "Stop"), nothing),
        Case("drain, nothing waiting", (hook, "drain"), nothing),
        Case("drain, one message", (hook, "drain"), token("mail"), 2),
        Case("hook, a message waiting", (hook, "Stop"), token("inbox")),
    )


def measure(
    pair: tuple[Case, Case], env: dict[str, str], clean: Callable[[], None], rounds: int
) -> tuple[float, float]:
    """Median milliseconds of both, which take turns, so that a busy moment hits both.

    No third one runs between them: a Python start throws out of the processor's caches what the next shell uses.
    """
    payload = json.dumps(PAYLOAD).encode()
    taken: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for case, times in zip(pair, taken, strict=True):
            case.before()
            began = time.perf_counter()
            # No timeout here: with one, Python looks for the end in growing steps of up to 50 ms.
            done = subprocess.run(case.argv, input=payload, env=env, capture_output=True, check=False, close_fds=False)
            times.append((time.perf_counter() - began) * 1000)
            if done.returncode != case.code:
                raise SystemExit(f"{case.name}: exit {done.returncode}, {done.stderr!r}")
            clean()
    return statistics.median(taken[0]), statistics.median(taken[1])


def figures(rounds: int = ROUNDS) -> list[Figure]:
    """Run everything once in a private folder."""
    with tempfile.TemporaryDirectory(prefix="nbs-bench-") as folder:
        run = Path(folder)
        agent = agent_at(run)

        def clean() -> None:
            for name in ("spool", "claimed", "inbox"):
                for path in (agent / name).iterdir():
                    path.unlink()
            # A prompt's stops are held back a few times only; each call is to be the first one.
            (agent / "stops.json").unlink(missing_ok=True)

        shell, python, *calls = cases(run, agent)
        env = {"PATH": os.defpath, "NBS_FLEET_RUN": str(run), "NBS_HANDLE": "ana"}
        found = []
        for case in calls:
            beside = python if case.name == "hook, a message waiting" else shell
            base, value = measure((beside, case), env, clean, rounds)
            limit, goal = (1.2 * base, "<= 1.2 x bare sh") if case.code == 0 and beside is shell else (25, "<= 25 ms")
            found.append(Figure(f"{case.name} / {beside.name}", value, "ms", base, goal, value <= limit))
    return found


def main() -> None:
    """Print a table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of a table")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="calls of each kind (default: %(default)s)")
    given = parser.parse_args()
    signal.alarm(LIMIT_SECONDS)
    found = figures(given.rounds)
    if given.json:
        rows = [{**f._asdict(), "ratio": f.ratio} for f in found]
        sys.stdout.write(json.dumps({"schema": 1, "figures": rows}, indent=1) + "\n")
        return
    for f in found:
        ratio = f"{f.ratio:5.2f} x" if f.ratio else ""
        verdict = "" if f.met is None else "met" if f.met else "MISSED"
        sys.stdout.write(f"{f.name:50} {f.value:7.2f} {f.unit}  {ratio:8} {f.goal:18} {verdict}".rstrip() + "\n")


if __name__ == "__main__":
    main()
