"""`metrics`: what it prints is what Prometheus reads, and its socket answers nobody but this user."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from nbs_fleet.model import AgentState
from nbs_fleet.plan.paths import RunPaths
from tests.support.cli_world import agent, call, make_team, write_record


@pytest.fixture
def paths(tmp_path: Path) -> RunPaths:
    paths = make_team(tmp_path / "root", "review", (agent("ana"),))
    write_record(paths, "ana", state=AgentState.STOPPED, since=5.0, restarts=2, queued=3)
    return paths


def parsed(text: str) -> dict[str, float]:
    """The value of each sample that has no other labels than team and handle."""
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    assert all(sample.labels["team"] == "review" for sample in samples)
    return {sample.name: sample.value for sample in samples if set(sample.labels) <= {"team", "handle"}}


def test_it_prints_what_prometheus_reads(paths: RunPaths) -> None:
    said = call("metrics")
    assert said.code == 0, said.err
    values = parsed(said.out)
    assert values["nbs_fleet_agent_restarts"] == 2
    assert values["nbs_fleet_agent_queued"] == 3
    assert values["nbs_fleet_supervisor_up"] == 0
    assert values["nbs_fleet_delivery_seconds_count"] == 0
    assert 'nbs_fleet_agent_state{handle="ana",state="stopped",team="review"} 1.0' in said.out


class OverUnix(http.client.HTTPConnection):
    """HTTP on a Unix socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost", timeout=10)
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(self.path)


def get(path: str, url: str) -> tuple[int, str]:
    link = OverUnix(path)
    link.request("GET", url)
    answer = link.getresponse()
    text = answer.read().decode()
    link.close()
    return answer.status, text


def test_it_is_served_on_a_socket_of_this_user_alone_and_leaves_nothing(paths: RunPaths, tmp_path: Path) -> None:
    path = str(tmp_path / "m.sock")
    with socket.socket(socket.AF_UNIX) as left_behind:
        left_behind.bind(path)
    argv = [sys.executable, "-m", "nbs_fleet", "metrics", "--serve", path]
    with subprocess.Popen(argv, env=dict(os.environ), stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            assert "serving on" in server.stderr.readline()
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
            code, text = get(path, "/metrics")
            assert code == 200
            assert parsed(text)["nbs_fleet_agent_queued"] == 3
            assert get(path, "/else")[0] == 404
            again = call("metrics", "--serve", path)
            assert (again.code, "already" in again.err) == (1, True)
        finally:
            server.send_signal(signal.SIGINT)
            assert server.wait(20) == 130
    assert not os.path.lexists(path)


def test_what_is_no_socket_is_left_alone(paths: RunPaths, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_text("mine", encoding="utf-8")
    said = call("metrics", "--serve", str(mine))
    assert said.code == 1
    assert "no socket" in said.err
    assert mine.read_text(encoding="utf-8") == "mine"
