"""What a hook call costs, beside a bare shell that writes the same file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from benchmarks.figures import Benchmark, Beside, Figure, Options, median
from benchmarks.teams import BenchmarkError
from nbs_fleet.hooks.files import programs

ROUNDS = 100
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
) -> tuple[list[float], list[float]]:
    """Milliseconds of both, which take turns, so that a busy moment hits both.

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
                raise BenchmarkError(f"{case.name}: exit {done.returncode}, {done.stderr!r}")
            clean()
    return taken


def figures(options: Options) -> list[Figure]:
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
            base = python if case.name == "hook, a message waiting" else shell
            alone, ours = measure((base, case), env, clean, options.some(ROUNDS, 10))
            quick = case.code == 0 and base is shell
            beside = Beside(base.name, median(alone), at_most=1.2 if quick else None)
            found.append(Figure(case.name, "ms", median(ours), at_most=None if quick else 25.0, beside=(beside,)))
        return found


BENCHMARK = Benchmark(
    "hooks",
    "The hook programs as a client calls them, with a payload on standard input, each in turn with a bare `sh` that does "
    "the same file write (or, where the hook has to think, with a Python that imports json).",
    figures,
)
