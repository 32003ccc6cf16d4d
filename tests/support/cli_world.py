"""Run directories made by hand, and the command line called in-process: a world without tmux or supervisor."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import msgspec

from nbs_fleet.cli import app
from nbs_fleet.launch import rundir
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import AgentPlan, AgentRecord, Plan
from nbs_fleet.spec.team import Agent, Layout
from nbs_fleet.supervisor import store


@dataclass(frozen=True)
class Said:
    """How one command line ended."""

    code: int
    out: str
    err: str


def call(*argv: str) -> Said:
    """Run a command line in this process."""
    out, err = StringIO(), StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = app.run(list(argv))
    return Said(code, out.getvalue(), err.getvalue())


def agent(handle: str, **more: Any) -> Agent:
    """An agent of the simulator."""
    return Agent(handle, **({"base": handle, "role": None, "driver": "sim", "dir": "/"} | more))


def make_team(
    root: Path, name: str, agents: tuple[Agent, ...], environ: Mapping[str, str] = os.environ, file: str = ""
) -> RunPaths:
    """A run directory as `up` leaves it, without any process."""
    root.mkdir(parents=True, exist_ok=True)
    real = os.path.realpath(root)
    paths = rundir.run_paths(real, name, environ)
    rundir.prepare(paths, real)
    plans = tuple(AgentPlan(a, {}, None, 0, a.handle, 0) for a in agents)
    store.write_plan(paths, Plan(name, file or f"{real}/{name}.yaml", real, "", paths, Layout(), plans))
    return paths


def write_record(paths: RunPaths, handle: str, **more: Any) -> AgentRecord:
    """The record of one agent."""
    record = AgentRecord(handle, **more)
    store.write_record(paths, record)
    return record


def write_story(path: str, *entries: dict[str, Any]) -> None:
    """Append entries to a story."""
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "ab") as file:
        file.writelines(msgspec.json.encode(entry) + b"\n" for entry in entries)
