"""`python -m tests.chaos`: soaks of a team on real processes, with a table of what was done to it and what came of it."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Iterable

import msgspec

from tests.chaos.soak import Outcome, soak

SHOWN = 2000


def table(outcomes: Iterable[Outcome]) -> str:
    """Each kind of fault with its count, over all soaks, and what became of the messages."""
    parts: dict[str, Counter[str]] = {"FAULTS": Counter(), "DAMAGED FILES": Counter(), "MESSAGES": Counter()}
    missed: Counter[str] = Counter()
    for outcome in outcomes:
        parts["FAULTS"].update(outcome.faults)
        parts["DAMAGED FILES"].update(outcome.files)
        parts["MESSAGES"].update(outcome.messages)
        missed.update(outcome.missed)
    parts["NOT THERE TO BE STRUCK"] = missed
    lines: list[str] = []
    for head, counts in parts.items():
        lines += [head, *(f"  {what:<52}{number:>7}" for what, number in counts.items())]
    return "\n".join(lines)


def main(argv: list[str]) -> int:
    """Exit 1 if a soak broke a law, or if a kind of fault never came."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="how long faults come, about")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=1, help="so many soaks, each with the next seed")
    parser.add_argument("--json", metavar="FILE", help="append each soak's outcome there, a line each")
    parser.add_argument("--keep", metavar="FOLDER", default="", help="copy what is left of a soak that failed there")
    parser.add_argument("-v", "--verbose", action="store_true", help="say each fault as it comes")
    args = parser.parse_args(argv)
    outcomes: list[Outcome] = []
    for seed in range(args.seed, args.seed + args.repeat):
        say = (lambda text: print(text, flush=True)) if args.verbose else (lambda _: None)
        outcome = soak(seed, args.seconds, say, keep=args.keep)
        outcomes.append(outcome)
        print(line(outcome), flush=True)
        for wrong in outcome.wrong:
            print(f"  {wrong[:SHOWN]}", flush=True)
        if args.json:
            with open(args.json, "a", encoding="utf-8") as file:
                file.write(json.dumps(msgspec.to_builtins(outcome)) + "\n")
    print(f"\n{table(outcomes)}\n{outcomes[0].remarks[0]}")
    return 1 if any(outcome.wrong for outcome in outcomes) else 0


def line(outcome: Outcome) -> str:
    """One soak in one line."""
    word = f"{len(outcome.wrong)} wrong" if outcome.wrong else "ok"
    number = sum(outcome.faults.values())
    directives = sum(
        n for what, n in outcome.messages.items() if what.startswith("directives ") and "again" not in what
    )
    return (
        f"seed {outcome.seed}: {word}; {number} faults, {directives} directives, "
        f"right again after {outcome.recovered:.1f} s, {outcome.seconds:.0f} s in all"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
