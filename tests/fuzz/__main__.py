"""Fuzz the readers of files, clients and sockets: `python -m tests.fuzz chat screens --inputs 20000 --seconds 300`."""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
from pathlib import Path

from tests.fuzz.run import Result, run
from tests.fuzz.targets import TARGETS
from tests.support import private


def _chosen(names: list[str]) -> list[str]:
    """The targets of these names; one that ends in `*` stands for all that begin so."""
    found: list[str] = []
    for name in names or list(TARGETS):
        fits = [n for n in TARGETS if n == name or (name.endswith("*") and n.startswith(name[:-1]))]
        if not fits:
            sys.exit(f"no such target: {name}; --list shows all")
        found += [n for n in fits if n not in found]
    return found


def _tell(result: Result, keep: Path) -> None:
    rate = result.inputs / max(result.seconds, 0.001)
    end = "FOUND" if result.found else "well"
    print(f"{result.target:<24}{result.inputs:>9,} inputs{result.seconds:>8.1f} s{rate:>9,.0f}/s  {end}", flush=True)
    if result.found:
        path = keep / f"{result.target}.input"
        path.write_bytes(result.found.data)
        print(f"{result.found.trace}\nkept as {path}: {result.found.data[:300]!r}", flush=True)


def main() -> int:
    """Exit 1 if something was found."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="what to fuzz (default: everything); `screen-*`")
    parser.add_argument("--inputs", type=int, default=20_000, help="inputs for each target")
    parser.add_argument("--seconds", type=float, default=300.0, help="seconds for each target, if they are over first")
    parser.add_argument("--seed", type=int, default=0, help="the first seed; each round of inputs has the next one")
    parser.add_argument("--list", action="store_true", help="show the targets and end")
    parser.add_argument("--keep", type=Path, default=Path(), help="the folder for inputs that were found")
    asked = parser.parse_args()
    if asked.list:
        print("\n".join(f"{name:<24}{target.what}" for name, target in TARGETS.items()))
        return 0
    names = _chosen(asked.targets)
    keep = asked.keep.resolve()
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="nbs-fleet-fuzz-") as folder:
        (Path(folder) / "run").mkdir(mode=0o700)
        os.environ.update(private.surrounding(Path(folder), Path(folder) / "run"))
        for name in names:
            results.append(run(TARGETS[name], asked.inputs, asked.seconds, asked.seed))
            _tell(results[-1], keep)
    broken = [result.target for result in results if result.found]
    total = sum(result.inputs for result in results)
    print(
        f"{total:,} inputs for {len(results)} targets from seed {asked.seed}; found in: {', '.join(broken) or 'none'}"
    )
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
