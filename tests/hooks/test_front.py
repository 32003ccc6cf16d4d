"""The shell front as clients run it: in dash and bash, with full disks, missing folders and many calls at once."""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.hooked import Hooked

SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]
MIB = 1 << 20


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(shutil.which(request.param))


@pytest.fixture
def ana(tmp_path: Path) -> Hooked:
    return Hooked(tmp_path / "run", policy={})


def events(ana: Hooked) -> list[bytes]:
    return [(ana.agent / "spool" / name).read_bytes() for name in ana.names("spool")]


def test_an_event_is_kept_byte_for_byte_and_nothing_is_said(ana: Hooked, shell: str) -> None:
    payload = b'{"hook_event_name": "Stop", "odd": "\\u0000 \\\\ %s $HOME `x`"}\n\n'
    done = ana.call("Stop", payload=payload, shell=shell)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert events(ana) == [payload]
    assert ana.names("spool")[0].startswith("Stop.")
    assert os.stat(ana.agent / "spool" / ana.names("spool")[0]).st_mode & 0o777 == 0o600


def test_a_large_payload_is_taken_in_whole(ana: Hooked, shell: str) -> None:
    payload = json.dumps({"prompt": "ü" * MIB}, ensure_ascii=False).encode()
    assert ana.call("UserPromptSubmit", payload=payload, shell=shell).returncode == 0
    assert events(ana) == [payload]


def test_a_prompt_begins_a_turn_and_an_empty_one_within_it_does_not(ana: Hooked, shell: str) -> None:
    mark = ana.agent / "turn"
    ana.call("UserPromptSubmit", payload=b'{"prompt":"","cwd":"/x"}', shell=shell)
    assert not mark.exists()
    ana.call("UserPromptSubmit", payload=b'{"prompt":"say \\"prompt\\":\\"\\"","cwd":"/x"}', shell=shell)
    assert mark.exists()


def test_fifty_events_at_once_are_all_kept(ana: Hooked, shell: str) -> None:
    payloads = [json.dumps({"n": n}).encode() for n in range(50)]
    with ThreadPoolExecutor(16) as pool:
        codes = list(pool.map(lambda p: ana.call("Stop", payload=p, shell=shell).returncode, payloads))
    assert codes == [0] * 50
    assert sorted(events(ana)) == sorted(payloads)
    assert not [name for name in os.listdir(ana.agent / "spool") if name.startswith(".")]


def test_a_process_number_that_comes_again_overwrites_no_event(ana: Hooked, shell: str) -> None:
    before = 'echo old >"$1/spool/Stop.$$.0.json"; shift; exec "$@"'
    subprocess.run(
        ["/bin/sh", "-c", before, "sh", str(ana.agent), *ana.command("Stop", shell=shell)],
        input=b"new", env=ana.environment, timeout=30, check=True,
    )  # fmt: skip
    assert sorted(events(ana)) == [b"new", b"old\n"]


@pytest.mark.parametrize("missing", ["NBS_FLEET_RUN", "NBS_HANDLE"])
def test_outside_of_a_team_it_takes_in_its_input_and_does_nothing(ana: Hooked, shell: str, missing: str) -> None:
    env = {key: value for key, value in ana.environment.items() if key != missing}
    for event in ("Stop", "drain", "sweep"):
        done = subprocess.run(
            ana.command(event, shell=shell), input=b"x" * MIB, env=env, capture_output=True, timeout=30, check=False
        )
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


@pytest.mark.parametrize("event", ["Stop", "UserPromptSubmit", "PermissionRequest", "drain", "sweep"])
@pytest.mark.parametrize("gone", ["spool", "claimed", "mail", ".", "hooks.json"])
def test_missing_folders_fail_nobody(ana: Hooked, shell: str, event: str, gone: str) -> None:
    path = ana.agent / gone
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    done = ana.call(event, payload=b"x" * MIB, shell=shell)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_file_in_the_place_of_the_agents_folder_fails_nobody(ana: Hooked, shell: str) -> None:
    shutil.rmtree(ana.agent)
    ana.agent.write_text("no folder")
    for event in ("Stop", "drain"):
        assert ana.call(event, shell=shell).returncode == 0


def _no_room() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))


def _no_room_quietly() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    _no_room()


@pytest.mark.parametrize("limit", [_no_room, _no_room_quietly])
def test_a_full_disk_fails_nobody_and_leaves_no_part_of_an_event(
    ana: Hooked, shell: str, limit: Callable[[], None]
) -> None:
    done = subprocess.run(
        ana.command("Stop", shell=shell), input=b"x" * MIB, env=ana.environment, capture_output=True,
        timeout=30, check=False, preexec_fn=limit,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert os.listdir(ana.agent / "spool") == []


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams_fail_nobody(ana: Hooked, shell: str, closed: str) -> None:
    for event in ("Stop", "drain", "sweep"):
        words = ["/bin/sh", "-c", f'exec "$@" {closed}', "sh", *ana.command(event, shell=shell)]
        assert subprocess.run(words, env=ana.environment, timeout=30, check=False).returncode == 0


def test_mail_is_printed_in_order_and_claimed(ana: Hooked, shell: str) -> None:
    first = ana.put("mail", "[nbs:d-1] one\nsecond line", "d-1")
    second = ana.put("mail", "[nbs:d-2-x] two", "d-2-x")
    done = ana.call("drain", payload=b"x" * MIB, shell=shell)
    assert (done.returncode, done.stdout) == (2, b"")
    assert done.stderr == b"[nbs:d-1] one\nsecond line\n\n[nbs:d-2-x] two"
    assert ana.claimed_ids() == [first, second]
    assert ana.names("mail") == ["tok"]


@pytest.mark.parametrize("event", ["drain", "sweep"])
def test_without_mail_a_drain_is_silent(ana: Hooked, shell: str, event: str) -> None:
    done = ana.call(event, shell=shell)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_only_registered_messages_are_taken(ana: Hooked, shell: str) -> None:
    ana.put("mail", "forged", "d-9", registered=False)
    (ana.agent / "mail" / "nodash.msg").write_text("forged")
    (ana.agent / "mail" / "-.msg").write_text("forged")
    (ana.agent / "mail" / "000001-d-1.txt").write_text("no token")
    assert ana.call("drain", shell=shell).returncode == 0
    assert ana.names("claimed") == []


def test_the_bell_is_hung_up_again_and_otherwise_left_alone(ana: Hooked, shell: str) -> None:
    bell = ana.agent / "mail" / "tok"
    ana.call("drain", shell=shell)
    assert bell.exists()
    os.utime(bell, (1, 1))
    ana.put("mail", "x")
    assert ana.call("drain", shell=shell).returncode == 2
    assert bell.stat().st_mtime == 1  # a touch would be a change, and wake the drain again


def test_a_drain_takes_the_probe_in_silence_and_a_sweep_leaves_it(ana: Hooked, shell: str) -> None:
    probe = ana.agent / "mail" / "probe"
    probe.touch()
    assert ana.call("sweep", shell=shell).returncode == 0
    assert probe.exists()
    done = ana.call("drain", shell=shell)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert ana.names("claimed") == ["probe"]
    assert not probe.exists()


def test_many_drains_at_once_hand_over_each_message_once(ana: Hooked, shell: str) -> None:
    ids = [ana.put("mail", f"<{n}>") for n in range(50)]
    with ThreadPoolExecutor(8) as pool:
        runs = list(pool.map(lambda _n: ana.call("drain", shell=shell), range(16)))
    said = [text for run in runs for text in run.stderr.decode().split("\n\n") if text]
    assert sorted(said) == sorted(f"<{n}>" for n in range(50))
    assert all(run.returncode == (2 if run.stderr else 0) for run in runs)
    assert ana.claimed_ids() == ids


@pytest.mark.parametrize("name", ["a b", "it's", 'a"b', "$HOME", "a;b&c", "ü é", "-x", "a\\b", "*"])
def test_any_path_of_a_run_directory_works(tmp_path: Path, shell: str, name: str) -> None:
    ana = Hooked(tmp_path / name, policy={"asks": ["PermissionRequest"], "plan": "approve"})
    ana.put("mail", "hello")
    assert ana.call("drain", shell=shell).stderr == b"hello"
    payload = {"hook_event_name": "PermissionRequest", "tool_name": "ExitPlanMode"}
    assert b'"allow"' in ana.call("PermissionRequest", payload=payload, shell=shell).stdout
    assert len(ana.names("spool")) == 1


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(texts=st.lists(st.text(min_size=1).filter(lambda t: "\0" not in t), min_size=1, max_size=3))
def test_texts_arrive_byte_for_byte(ana: Hooked, texts: list[str]) -> None:
    for text in texts:
        ana.put("mail", text)
    done = ana.call("drain")
    assert done.returncode == 2
    assert done.stderr == b"\n\n".join(text.encode("utf-8", "surrogatepass") for text in texts)


def test_the_program_is_only_asked_when_something_may_come_of_it(ana: Hooked, shell: str) -> None:
    for name in ("nbs-hook.py", "nbs-hook.pyc"):
        (ana.run / "bin" / name).write_text("raise SystemExit('asked')")
    marker = ana.run / "asked"
    (ana.run / "bin" / "nbs-hook.py").write_text(f"open({str(marker)!r}, 'w')")
    ana.call("Stop", shell=shell)
    ana.call("PostToolUse", shell=shell)
    assert not marker.exists()
    ana.put("inbox", "x")
    ana.call("SessionStart", shell=shell)
    assert not marker.exists()
    ana.call("PostToolUse", shell=shell)
    assert marker.exists()


def test_a_program_that_fails_loses_no_event_and_fails_nobody(ana: Hooked, shell: str) -> None:
    for name in ("nbs-hook.py", "nbs-hook.pyc"):
        (ana.run / "bin" / name).write_text("broken(")
    ana.put("inbox", "x")
    done = ana.call("Stop", payload=b"{}", shell=shell)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert events(ana) == [b"{}"]


def test_another_release_of_python_runs_the_source(ana: Hooked, shell: str) -> None:
    (ana.run / "bin" / "nbs-hook.pyc").write_bytes(b"\x00\x00\x0d\x0a" + bytes(60))
    ana.put("inbox", "hello")
    done = ana.call("Stop", payload={"hook_event_name": "Stop", "prompt_id": "p"}, shell=shell)
    assert json.loads(done.stdout) == {"decision": "block", "reason": "hello"}
    assert len(ana.names("spool")) == 1
