"""Records on disk: state.json per agent, the plan, the captures; written by the owner of the lock only."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Sequence
from typing import TypeVar

import msgspec

from nbs_fleet import jsontext
from nbs_fleet.errors import FleetError
from nbs_fleet.launch.environment import mask, read_secrets
from nbs_fleet.launch.files import write_atomic
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.sharing import share_parts
from nbs_fleet.plan.types import AgentRecord, Plan
from nbs_fleet.supervisor.story import Story

T = TypeVar("T")
CAPTURES = 20


class Where(msgspec.Struct, frozen=True):
    """What of a plan need not be the whole plan."""

    paths: RunPaths


_PLAN = msgspec.json.Decoder(Plan)
_WHERE = msgspec.json.Decoder(Where)
_RECORD = msgspec.json.Decoder(AgentRecord)
"""Made at import: what msgspec makes of a type at its first use is not safe where two threads come first (0.22, seen)."""


def read_plan(paths: RunPaths) -> Plan | None:
    """The plan that was last asked for; None before the first `up`."""
    return read_plan_in(paths.run)


def read_plan_in(run: str) -> Plan | None:
    """The plan of the run directory `run`, which names all other paths; None before the first `up`."""
    plan = _read_plan(run, _PLAN)
    return None if plan is None else share_parts(plan)


def read_paths(run: str) -> RunPaths | None:
    """Of the plan of the run directory `run` only where everything is."""
    where = _read_plan(run, _WHERE)
    return None if where is None else where.paths


def _read_plan(run: str, decoder: msgspec.json.Decoder[T]) -> T | None:
    path = os.path.join(run, "plan.json")
    try:
        with open(path, "rb") as file:
            return decoder.decode(file.read())
    except FileNotFoundError:
        return None
    except (OSError, *jsontext.MALFORMED) as error:
        raise FleetError(
            f"{path}: can't be read ({error})", hint="run `nbs-fleet up FILE` to write it again"
        ) from error


def readable_plan(paths: RunPaths) -> Plan | None:
    """The plan, or None where it can't be read: for those who can go on without it."""
    with contextlib.suppress(FleetError):
        return read_plan(paths)
    return None


def write_plan(paths: RunPaths, plan: Plan) -> None:
    """Write the plan, whole or not at all."""
    write_atomic(paths.plan, msgspec.json.format(jsontext.encode(plan)), durable=True)


def read_record(paths: RunPaths, handle: str) -> AgentRecord | None:
    """What is known of one agent; None if nothing is, or the file is damaged (it is a cache of the truth)."""
    try:
        with open(paths.agent(handle).state, "rb") as file:
            return _RECORD.decode(file.read())
    except (OSError, *jsontext.MALFORMED):
        return None


def read_records(paths: RunPaths) -> tuple[AgentRecord, ...]:
    """All records of the run directory, by handle."""
    try:
        handles = sorted(os.listdir(os.path.join(paths.run, "agents")))
    except OSError:
        return ()
    found = (read_record(paths, handle) for handle in handles)
    return tuple(record for record in found if record is not None)


def write_record(paths: RunPaths, record: AgentRecord) -> None:
    """Write one record, whole or not at all; folders of the agent that are missing are made."""
    make_folders(paths, record.handle)
    put_record(paths, record)


def put_record(paths: RunPaths, record: AgentRecord) -> None:
    """The same where the agent's folders have just been made."""
    write_atomic(paths.agent(record.handle).state, jsontext.encode(record))


def make_folders(paths: RunPaths, handle: str) -> None:
    """Make the folders of one agent (0700)."""
    for folder in paths.agent(handle).folders:
        if not os.path.isdir(folder):
            os.makedirs(folder, mode=0o700, exist_ok=True)


class Records:
    """The records as a supervisor writes them: what it found at its start is on disk, and left as it is."""

    def __init__(self, paths: RunPaths) -> None:
        self._paths = paths
        self._known: set[str] = set()
        """Agents whose records were written, or seen on disk."""

    def write(self, record: AgentRecord) -> None:
        """As `write_record`."""
        # To replace a file takes more than all else of a takeover.
        if record.handle in self._known or not self._stands(record):
            write_record(self._paths, record)
        self._known.add(record.handle)

    def _stands(self, record: AgentRecord) -> bool:
        """Whether the file says this already, to the byte."""
        try:
            with open(self._paths.agent(record.handle).state, "rb") as file:
                return file.read() == jsontext.encode(record)
        except OSError:
            return False


def forget(paths: RunPaths, handle: str) -> None:
    """Remove what would start an agent that left the team again; its story and captures stay."""
    agent = paths.agent(handle)
    for path in (agent.values, agent.state, agent.launch, agent.prompt, agent.settings):
        with contextlib.suppress(OSError):
            os.unlink(path)


def secrets(paths: RunPaths, handles: Iterable[str]) -> tuple[str, ...]:
    """The secret values in the environments of these agents, longest first."""
    found = {secret for handle in handles for secret in read_secrets(paths.agent(handle).values)}
    return tuple(sorted(found, key=lambda secret: (-len(secret), secret)))


def masked(paths: RunPaths, handle: str, rows: Sequence[str]) -> tuple[str, ...]:
    """The rows of an agent's screen without its secret values."""
    known = secrets(paths, (handle,))
    return tuple(mask(row, known) for row in rows)


def story(paths: RunPaths, handle: str) -> Story:
    """The story of an agent; its secret values are masked in it."""
    return Story(paths.agent(handle).story, mask=secrets(paths, (handle,)))


def keep_capture(paths: RunPaths, handle: str, at: float, rows: Sequence[str]) -> None:
    """Keep a screen for later, secret values masked; the newest CAPTURES stay. A full disk loses it, nothing else."""
    folder = paths.agent(handle).captures
    try:
        write_atomic(os.path.join(folder, f"{at:.3f}.txt"), "\n".join(masked(paths, handle, rows)) + "\n")
        for old in sorted(os.listdir(folder))[:-CAPTURES]:
            os.unlink(os.path.join(folder, old))
    except (OSError, FleetError):
        return
