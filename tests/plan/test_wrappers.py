"""bin/nbs-fleet and supervise.sh, run with a stand-in for the interpreter."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest
import tenacity

from nbs_fleet.launch.processes import identify
from nbs_fleet.plan.wrappers import FAILED, bin_wrapper, segment_script, supervise_script

SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]


def until(check: Callable[[], bool]) -> None:
    """Wait for a condition, ten seconds at most."""
    retry = tenacity.Retrying(
        wait=tenacity.wait_fixed(0.01),
        stop=tenacity.stop_after_delay(10),
        retry=tenacity.retry_if_result(lambda result: not result),
    )
    retry(check)


class Stage:
    """A run directory whose name is a trap, and an interpreter that does as told."""

    def __init__(self, path: Path, shell: str) -> None:
        self.run = path / "run it's $x"
        self.run.mkdir()
        self.calls = path / "calls"
        self.path = path
        self.shell = shell
        self.started: list[subprocess.Popen[str]] = []

    def supervise(self, body: str, *, unit: int = 1) -> subprocess.Popen[str]:
        """Start supervise.sh; each run of its interpreter notes its arguments and does `body`."""
        python = self.path / "a python"
        python.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >>"{self.calls}"\n{body}\n')
        python.chmod(0o755)
        script = self.path / "supervise.sh"
        script.write_text(supervise_script(str(python), str(self.run)))
        script.chmod(0o700)
        process = subprocess.Popen(
            [self.shell, str(script)],
            env={"PATH": f"{self.path}:{os.environ['PATH']}", "NBS_SUPERVISE_UNIT": str(unit)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.started.append(process)
        return process

    def count(self) -> int:
        return len(self.calls.read_text().splitlines()) if self.calls.exists() else 0

    def end(self) -> None:
        for process in self.started:
            if process.poll() is None:
                process.kill()
            process.communicate()


@pytest.fixture(params=SHELLS)
def stage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stage]:
    made = Stage(tmp_path, str(request.param))
    yield made
    made.end()


def test_the_wrapper_runs_its_own_interpreter_in_isolation(tmp_path: Path) -> None:
    python = tmp_path / "it's python"
    python.write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    python.chmod(0o755)
    wrapper = tmp_path / "nbs-fleet"
    wrapper.write_text(bin_wrapper(str(python)))
    wrapper.chmod(0o755)
    out = subprocess.run([str(wrapper), "ps", "", "a b"], capture_output=True, text=True, check=True, timeout=20).stdout
    assert out == "<-I><-m><nbs_fleet><ps><><a b>"


def test_a_good_end_is_the_end(stage: Stage) -> None:
    process = stage.supervise("exit 0")
    assert process.wait(10) == 0
    assert stage.calls.read_text() == f"-I -m nbs_fleet.supervisor {stage.run}\n"


def test_a_dead_supervisor_is_started_again(stage: Stage) -> None:
    process = stage.supervise(f'[ "$(wc -l <"{stage.calls}")" -ge 4 ] && exit 0; kill -9 $$')
    assert process.wait(10) == 0
    assert stage.count() == 4


def test_the_tenth_death_within_ten_minutes_is_the_last(stage: Stage) -> None:
    (stage.run / "supervisor.log").write_text("".join(f"line {i}\n" for i in range(30)))
    process = stage.supervise("echo 'the reason' >&2; exit 3")
    _, errors = process.communicate(timeout=10)
    assert process.returncode == 1
    assert stage.count() == 10
    assert errors == f"nbs-fleet: the supervisor keeps dying; see {stage.run}/{FAILED}\n"
    said = (stage.run / FAILED).read_text().splitlines()
    assert said[0] == "the supervisor died 10 times within 10 minutes (last exit 3); the end of its log:"
    assert said[-1] == "the reason"
    assert len(said) == 21


def test_a_new_beginning_forgets_the_old_failure(stage: Stage) -> None:
    (stage.run / FAILED).write_text("old")
    assert stage.supervise("exit 0").wait(10) == 0
    assert not (stage.run / FAILED).exists()


def test_waits_double_up_to_a_minute(stage: Stage) -> None:
    sleeps = stage.path / "sleeps"
    fake = stage.path / "sleep"
    fake.write_text(f'#!/bin/sh\necho "$1" >>"{sleeps}"\n')
    fake.chmod(0o755)
    assert stage.supervise("exit 1", unit=1000).wait(10) == 1
    assert sleeps.read_text().split() == ["1", "2", "4", "8", "16", "32", "60", "60", "60"]


def clock(stage: Stage, step: int) -> None:
    """A `date` that is `step` seconds later at each call."""
    now = stage.path / "now"
    now.write_text("1000\n")
    fake = stage.path / "date"
    fake.write_text(f'#!/bin/sh\nread -r now <"{now}"\necho $((now + {step})) | tee "{now}"\n')
    fake.chmod(0o755)


def test_deaths_that_are_far_apart_are_borne(stage: Stage) -> None:
    clock(stage, 40)  # two looks at the clock per death: 80 s each, so 720 s for ten
    process = stage.supervise(f'[ "$(wc -l <"{stage.calls}")" -ge 14 ] && exit 0; exit 1')
    assert process.wait(10) == 0


def test_after_a_good_run_it_is_quick_again(stage: Stage) -> None:
    clock(stage, 61)
    sleeps = stage.path / "sleeps"
    fake = stage.path / "sleep"
    fake.write_text(f'#!/bin/sh\necho "$1" >>"{sleeps}"\n')
    fake.chmod(0o755)
    body = f'[ "$(wc -l <"{stage.calls}")" -ge 4 ] && exit 0; exit 1'
    assert stage.supervise(body, unit=1000).wait(10) == 0
    assert sleeps.read_text().split() == ["1", "1", "1"]


@pytest.mark.parametrize(("number", "status"), [(signal.SIGHUP, 129), (signal.SIGTERM, 143)])
def test_a_signal_ends_it_with_its_child(stage: Stage, number: signal.Signals, status: int) -> None:
    process = stage.supervise("exec sleep 60")
    until(lambda: stage.count() == 1 and len(psutil.Process(process.pid).children()) == 1)
    (child,) = psutil.Process(process.pid).children()
    process.send_signal(number)
    assert process.wait(10) == status
    assert not child.is_running()


def test_a_signal_ends_it_while_it_waits(stage: Stage) -> None:
    process = stage.supervise("exit 1", unit=60_000)
    until(lambda: [c.name() for c in psutil.Process(process.pid).children()] == ["sleep"])
    (child,) = psutil.Process(process.pid).children()
    process.send_signal(signal.SIGHUP)
    assert process.wait(10) == 129
    assert not child.is_running()


def test_a_key_in_its_window_does_not_end_it(stage: Stage) -> None:
    process = stage.supervise("exec sleep 60")
    until(lambda: stage.count() == 1)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGHUP)
    assert process.wait(10) == 129


def test_an_interpreter_that_is_gone_is_told(stage: Stage) -> None:
    script = supervise_script("/no/such/python", str(stage.run))
    done = subprocess.run(
        [stage.shell, "-c", script],
        env={"PATH": os.environ["PATH"], "NBS_SUPERVISE_UNIT": "1"},
        capture_output=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 1
    assert "/no/such/python" in (stage.run / FAILED).read_text()


@pytest.mark.parametrize("shell", SHELLS)
def test_both_scripts_are_valid_shell(shell: str) -> None:
    for text in (bin_wrapper(sys.executable), supervise_script(sys.executable, "/run")):
        subprocess.run([shell, "-n"], input=text, text=True, check=True, timeout=20)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_status_segment_counts_is_blank_or_says_down(tmp_path: Path, shell: str) -> None:
    waiting = tmp_path / "it's waiting"
    script = tmp_path / "segment"
    script.write_text(segment_script(str(waiting)))
    me = identify(os.getpid())
    assert me is not None

    def says() -> str:
        return subprocess.run([shell, script], capture_output=True, text=True, timeout=5, check=True).stdout.strip()

    assert says() == "down"
    for text, expected in (
        (f"{me.pid} {me.start} 0\n", ""),
        (f"{me.pid} {me.start} 3\n", "3 waiting"),
        (f"{me.pid} {me.start + 1} 3\n", "down"),
        (f"{2**22 + 1} {me.start} 3\n", "down"),
        ("", "down"),
    ):
        waiting.write_text(text)
        assert says() == expected, text
