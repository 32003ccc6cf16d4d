"""The one developer command: style, types, layers, sizes, fast tests and generated docs; exit 1 if anything is wrong."""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
MODULE_LINES = 400
FUNCTION_LINES = 60
FAST = "not tmux and not e2e and not real and not long and not browser"
SECONDS = 600.0


@dataclass(frozen=True)
class Outcome:
    """How one step ended: `said` is shown only when it failed."""

    name: str
    ok: bool
    said: str
    seconds: float


@dataclass(frozen=True)
class Step:
    """One check: `run` returns (whether all is well, what to show if not)."""

    name: str
    run: Callable[[], tuple[bool, str]]

    def perform(self) -> Outcome:
        """Run it and take the time."""
        begun = time.monotonic()
        ok, said = self.run()
        return Outcome(self.name, ok, said, time.monotonic() - begun)


def command(*argv: str) -> Callable[[], tuple[bool, str]]:
    """A step's work that is a program: well if it exits 0."""

    def run() -> tuple[bool, str]:
        try:
            done = subprocess.run(
                argv,
                cwd=ROOT,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                text=True,
                errors="replace",
                timeout=SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as late:
            return False, f"{' '.join(argv)}: not done after {SECONDS:.0f} s\n{late.output or ''}"
        return done.returncode == 0, f"$ {' '.join(argv)}\n{done.stdout}"

    return run


def sources(*folders: str) -> Iterator[Path]:
    """The Python files of these folders, sorted."""
    for folder in folders:
        yield from sorted((ROOT / folder).rglob("*.py"))


def functions_over(tree: ast.Module, limit: int) -> Iterator[tuple[int, str, int]]:
    """(line, name, length) of each function with more lines than `limit`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > limit:
                yield node.lineno, node.name, length


def sizes() -> tuple[bool, str]:
    """No module over 400 lines, no function over 60."""
    wrong: list[str] = []
    for path in sources("benchmarks", "nbs_fleet", "tests"):
        text = path.read_text(encoding="utf-8")
        where = path.relative_to(ROOT)
        lines = text.count("\n")
        if lines > MODULE_LINES:
            wrong.append(f"{where}: {lines} lines (at most {MODULE_LINES})")
        for line, name, length in functions_over(ast.parse(text, str(path)), FUNCTION_LINES):
            wrong.append(f"{where}:{line}: {name} has {length} lines (at most {FUNCTION_LINES})")
    return not wrong, "\n".join(wrong)


def pytest(*args: str) -> Callable[[], tuple[bool, str]]:
    """A step's work that is a pytest run in this interpreter."""
    return command(sys.executable, "-m", "pytest", "-q", *args)


def steps() -> tuple[Step, ...]:
    """All steps; the long ones first, so that the short ones fill in beside them."""
    return (
        Step("fast tests", pytest("-m", FAST, "-n", str(min(4, os.cpu_count() or 1)))),
        Step("mypy", command(sys.executable, "-m", "mypy")),
        Step("ruff check", command(str(BIN / "ruff"), "check", ".")),
        Step("ruff format", command(str(BIN / "ruff"), "format", "--check", ".")),
        Step("import layers", command(str(BIN / "lint-imports"))),
        Step("sizes", sizes),
        Step("generated docs", command(sys.executable, "tests/generate_docs.py", "--check")),
    )


def main() -> int:
    """Run the steps, two at a time; one line each, then what the failed ones said."""
    every = steps()
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("only", nargs="*", help=f"steps to run (default all): {', '.join(s.name for s in every)}")
    names = parser.parse_args().only
    unknown = set(names) - {step.name for step in every}
    if unknown:
        parser.error(f"no such step: {', '.join(sorted(unknown))}")
    begun = time.monotonic()
    failed: list[Outcome] = []
    with ThreadPoolExecutor(2) as pool:
        waiting = [pool.submit(step.perform) for step in every if not names or step.name in names]
        for future in as_completed(waiting):
            outcome = future.result()
            print(f"{'ok  ' if outcome.ok else 'FAIL'}  {outcome.name:<16}{outcome.seconds:6.1f} s", flush=True)
            if not outcome.ok:
                failed.append(outcome)
    for outcome in failed:
        print(f"\n== {outcome.name}\n{outcome.said.rstrip()}")
    print(f"\n{'all well' if not failed else f'{len(failed)} failed'} in {time.monotonic() - begun:.1f} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
