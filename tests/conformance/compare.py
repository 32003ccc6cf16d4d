"""Plays the table of interactions on the simulator and on the real Claude Code, and says where they differ.

`python -m tests.conformance.compare [-j N] [--record [--stale]] [--recorded] [-k WORD] [--list]`
"""

from __future__ import annotations

import argparse
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from subprocess import SubprocessError

from tests.conformance import records
from tests.conformance.steps import LostError
from tests.conformance.table import INTERACTIONS
from tests.conformance.table.entry import Interaction
from tests.support import clients

_PRINTING = threading.Lock()


def compare(interaction: Interaction, *, record: bool, recorded: bool) -> list[str]:
    """The differences of one interaction, or what went wrong in playing it."""
    try:
        if recorded:
            real = records.load(interaction)
        else:
            real = records.perform("claude", interaction)
            if record:
                records.save(interaction, real)
    except (LostError, LookupError, OSError, SubprocessError) as error:
        return [f"the real client: {error}"]
    try:
        return records.differences(interaction, real, records.perform("sim", interaction))
    except (LostError, OSError, SubprocessError) as error:
        return [f"the simulator: {error}"]


def main() -> int:
    """Exit 0 if there is no difference, 1 if there is one, 3 without the real client."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-j", type=int, default=1, metavar="N", help="how many interactions at a time")
    parser.add_argument("-k", action="append", default=[], metavar="WORD", help="only those whose name holds this word")
    parser.add_argument("--record", action="store_true", help="keep what the real client did as the new record")
    parser.add_argument("--recorded", action="store_true", help="take the records in place of the real client")
    parser.add_argument("--stale", action="store_true", help="only those without a record of their present steps")
    parser.add_argument("--list", action="store_true", help="only list the interactions")
    given = parser.parse_args()
    chosen = [i for i in INTERACTIONS if not given.k or any(word in i.name for word in given.k)]
    if given.stale:
        chosen = [interaction for interaction in chosen if not records.fresh(interaction)]
    if given.list:
        print("\n".join(f"{i.name:<28} {i.about}" for i in chosen))
        return 0
    missing = None if given.recorded else clients.missing("claude")
    if missing:
        print(missing, file=sys.stderr)
        return 3
    wrong = 0

    def one(interaction: Interaction) -> bool:
        found = compare(interaction, record=given.record, recorded=given.recorded)
        with _PRINTING:
            print(f"{'differs' if found else 'same':<8} {interaction.name}", flush=True)
            for line in found:
                print(f"    {line}", flush=True)
        return bool(found)

    with ThreadPoolExecutor(given.j) as pool:
        wrong = sum(pool.map(one, chosen))
    print(f"\n{len(chosen)} interactions, {wrong} differ")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
