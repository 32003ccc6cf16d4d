"""Records on disk: what stands there already is not written again."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec.structs import replace

from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import AgentRecord
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.store import Records


def test_what_a_supervisor_finds_is_left_as_it_is_and_all_else_is_written(tmp_path: Path) -> None:
    paths = RunPaths(str(tmp_path), str(tmp_path), "", "")
    found = AgentRecord("ana", boot="b")
    store.write_record(paths, found)
    path = Path(paths.agent("ana").state)
    before = path.stat().st_ino

    records = Records(paths)
    records.write(found)
    assert path.stat().st_ino == before

    changed = replace(found, boot="c")
    records.write(changed)
    assert store.read_record(paths, "ana") == changed

    # Somebody else wrote it since: what is known here counts.
    store.write_record(paths, found)
    records.write(changed)
    os.unlink(path)
    records.write(changed)
    assert store.read_record(paths, "ana") == changed


def test_a_record_that_was_mended_or_is_written_otherwise_is_written(tmp_path: Path) -> None:
    paths = RunPaths(str(tmp_path), str(tmp_path), "", "")
    store.write_record(paths, AgentRecord("ana"))
    path = Path(paths.agent("ana").state)
    Records(paths).write(AgentRecord("ana", pane="%1"))
    assert store.read_record(paths, "ana") == AgentRecord("ana", pane="%1")
    # As another version left it.
    path.write_bytes(path.read_bytes().replace(b"{", b'{"unknown":1,', 1))
    Records(paths).write(AgentRecord("ana", pane="%1"))
    assert b"unknown" not in path.read_bytes()
    Records(paths).write(AgentRecord("bo"))
    assert store.read_record(paths, "bo") == AgentRecord("bo")
