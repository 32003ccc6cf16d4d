"""What `make test` runs: the developer checks, then every suite against every client, and a table of what really ran."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from xml.etree import ElementTree as ET

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.clients.install import BASIC, CLAUDE, CLAUDELESS, CODEX, OTHERS, SMOKE, Client, obtain  # noqa: E402 - the path is set above

IN_CI = os.environ.get("CI") == "true"
NO_TESTS = 5
SECONDS = 3600.0
E2E = ("tests/e2e",)


@dataclass(frozen=True)
class Suite:
    """One pytest run. `workers` is how many may run at once; `needs` a client that must be installed."""

    name: str
    against: str
    select: str
    client: str | None = None
    needs: Client | None = None
    workers: int = 2
    paths: tuple[str, ...] = ()
    """Where its tests are; everywhere if empty."""
    scripted: bool = False
    """It is `nbs-fleet test` on the scripted teams, not pytest."""


@dataclass(frozen=True)
class Line:
    """One row of the table."""

    name: str
    against: str
    ran: int
    failed: int
    skipped: int
    seconds: float
    remark: str = ""

    @property
    def ok(self) -> bool:
        """Whether this row lets the whole succeed."""
        return not self.failed and not (IN_CI and self.remark)


SCRIPTED = (
    Suite("scripted teams", "simulator", "", client="sim", workers=4, scripted=True),
    Suite("scripted teams", f"claudeless {CLAUDELESS.version}", "", "claudeless", CLAUDELESS, 3, scripted=True),
    Suite("scripted teams", f"Claude Code {CLAUDE.version}", "", "claude", CLAUDE, 2, scripted=True),
)


def suites(*, long: bool) -> tuple[Suite, ...]:
    """Every suite after the checks."""
    rest = "" if long else " and not long"
    e2e = f"e2e{rest}"
    return (
        Suite("tmux", "tmux", f"tmux and not e2e and not real{rest}"),
        Suite("browser", "Chromium", f"browser{rest}", workers=1, paths=("tests/top",)),
        *((Suite("long", "no client", "long and not tmux and not e2e and not real"),) if long else ()),
        Suite("real clients", "Claude Code, claudeless", f"real and not e2e{rest}", needs=CLAUDE),
        Suite("end to end", "simulator", e2e, client="sim", workers=4, paths=E2E),
        Suite("end to end", f"claudeless {CLAUDELESS.version}", e2e, "claudeless", CLAUDELESS, workers=4, paths=E2E),
        Suite("end to end", f"Claude Code {CLAUDE.version}", e2e, "claude", CLAUDE, workers=3, paths=E2E),
        # They need much memory each: one after the other, where there are many cases.
        Suite("other clients", names(long=long), f"real and {e2e}", None, CODEX, 1 if long else 3, ("tests/others",)),
        *(replace(suite, select="long" if long else "") for suite in SCRIPTED),
    )


def names(*, long: bool) -> str:
    """The other clients with their versions."""
    return ", ".join(f"{client.name} {client.version}" for client in (OTHERS if long else SMOKE))


def counts(report: Path) -> tuple[int, int, int]:
    """(ran, failed, skipped) of a JUnit file."""
    if not report.exists():
        return 0, 0, 0
    ran = failed = skipped = 0
    for suite in ET.parse(report).getroot().iter("testsuite"):
        skipped += int(suite.get("skipped", "0"))
        failed += int(suite.get("failures", "0")) + int(suite.get("errors", "0"))
        ran += int(suite.get("tests", "0")) - int(suite.get("skipped", "0"))
    return ran, failed, skipped


def command(suite: Suite, report: Path) -> list[str]:
    """The command line of a suite."""
    client = ["--client", suite.client] if suite.client else []
    if suite.scripted:
        every = ["--long"] if suite.select else []
        return [sys.executable, "tests/scripted.py", *client, *every, "-j", str(suite.workers), "--junit", str(report)]
    argv = [sys.executable, "-m", "pytest", "-q", *suite.paths, "-m", suite.select, f"--junitxml={report}"]
    return [*argv, *(["-n", str(suite.workers)] if suite.workers > 1 else []), *client]


def perform(suite: Suite, folder: Path) -> Line:
    """Run one suite, its output going straight through."""
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    argv = command(suite, report)
    print(f"\n== {suite.name} against {suite.against}", flush=True)
    begun = time.monotonic()
    code = subprocess.run(argv, cwd=ROOT, timeout=SECONDS, check=False).returncode
    ran, failed, skipped = counts(report)
    remark = "no tests" if code == NO_TESTS else ""
    if code not in (0, NO_TESTS) and not failed:
        failed = 1
        remark = f"it ended with {code}"
    return Line(suite.name, suite.against, ran, failed, skipped, time.monotonic() - begun, remark)


def table(lines: list[Line]) -> str:
    """The rows, aligned."""
    head = ("SUITE", "AGAINST", "RAN", "FAILED", "SKIPPED", "SECONDS", "")
    rows = [(x.name, x.against, str(x.ran), str(x.failed), str(x.skipped), f"{x.seconds:.0f}", x.remark) for x in lines]
    widths = [max(len(row[i]) for row in [head, *rows]) for i in range(len(head))]
    aligned = []
    for row in [head, *rows]:
        cells = [
            text.ljust(w) if i in (0, 1, 6) else text.rjust(w)
            for i, (text, w) in enumerate(zip(row, widths, strict=True))
        ]
        aligned.append("  ".join(cells).rstrip())
    return "\n".join(aligned)


def checks() -> Line:
    """The developer checks as one row."""
    begun = time.monotonic()
    code = subprocess.run([sys.executable, "tests/check.py"], cwd=ROOT, timeout=SECONDS, check=False).returncode
    return Line("checks", "style, types, layers, fast tests", 1, int(code != 0), 0, time.monotonic() - begun)


def main() -> int:
    """Run everything, even after a failure; exit 1 if a suite failed, or with CI=true was not run."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--long", action="store_true", help="the long tests too")
    long = parser.parse_args().long
    refused: dict[str, str] = {}
    for client in (*BASIC, *(OTHERS if long else SMOKE)):
        there, line = obtain(client)
        print(line, flush=True)
        if not there:
            refused[client.name] = line.partition(": ")[2].splitlines()[0]
    lines = [checks()]
    with tempfile.TemporaryDirectory(prefix="nbs-fleet-suites-") as folder:
        for suite in suites(long=long):
            if suite.needs is not None and suite.needs.name in refused:
                lines.append(Line(suite.name, suite.against, 0, 0, 0, 0, refused[suite.needs.name]))
            else:
                lines.append(perform(suite, Path(folder)))
    print(f"\n{table(lines)}")
    bad = [line for line in lines if not line.ok]
    print(f"\n{'all suites passed' if not bad else f'{len(bad)} of {len(lines)} suites failed'}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
