"""A team works the same wherever it lives and whatever a person's tmux, shell and locale look like."""

from __future__ import annotations

import stat
import subprocess
from pathlib import Path

import pytest

from nbs_fleet.errors import FleetError
from nbs_fleet.supervisor import store
from nbs_fleet.supervisor.take_down import take_down
from tests.support.fleet import Fleet

pytestmark = pytest.mark.clients("sim")

HARMLESS = ["with space", "ünïcode-日本-\U0001f680", "long-" + "x" * 195]
ODD = ['it\'s "quoted" $HOME `id`', "#{pane_id};%1", *(pytest.param(name, marks=pytest.mark.long) for name in HARMLESS)]


def works(fleet: Fleet) -> None:
    """One agent with a prompt comes up idle and heals."""
    fleet.write_team([fleet.client.agent("ana", prompt_text="hello ana")])
    up = fleet.up()
    assert up.code == 0, str(up)
    row = fleet.agent("ana", fleet.all_idle())
    assert fleet.client.prompts(row["session_id"]) == ["hello ana"]
    old = fleet.kill("ana")
    fleet.wait(lambda ps: fleet.pids(ps)["ana"] not in (None, old) and fleet.states(ps)["ana"] == "idle")


@pytest.mark.parametrize("root", ODD, indirect=True)
def test_a_root_with_an_odd_name_works(fleet: Fleet) -> None:
    works(fleet)


def test_a_persons_tmux_settings_do_no_harm(fleet: Fleet) -> None:
    folder = fleet.base / "home" / ".config" / "nbs-fleet"
    folder.mkdir(parents=True)
    text = "set -g base-index 1\nsetw -g pane-base-index 1\nset -g renumber-windows on\nset -g prefix C-a\nunbind C-b\n"
    (folder / "tmux.conf").write_text(text, encoding="utf-8")
    works(fleet)
    assert fleet.tmux("show-options", "-g", "prefix").strip() == "prefix C-a"


def test_a_persons_own_tmux_conf_is_not_read(fleet: Fleet) -> None:
    marker = fleet.base / "read"
    (fleet.base / "home" / ".tmux.conf").write_text(f"run-shell 'touch {marker}'\n", encoding="utf-8")
    works(fleet)
    assert not marker.exists()


def test_it_works_from_inside_another_tmux(fleet: Fleet) -> None:
    fleet.env |= {"TMUX": "/tmp/nowhere/default,1,0", "TMUX_PANE": "%0"}
    works(fleet)


def test_it_works_in_a_c_locale(fleet: Fleet) -> None:
    del fleet.env["LANG"]
    fleet.env["LC_ALL"] = "C"
    works(fleet)


def test_a_noisy_shell_changes_nothing(fleet: Fleet) -> None:
    home = fleet.base / "home"
    for name in (".profile", ".bashrc", ".bash_profile", ".shrc"):
        (home / name).write_text("echo welcome; echo noise >&2; false\n", encoding="utf-8")
    fleet.env |= {"SHELL": "/bin/bash", "ENV": str(home / ".shrc"), "BASH_ENV": str(home / ".bashrc")}
    works(fleet)


def test_the_agents_environment_is_the_callers_without_its_sessions(fleet: Fleet) -> None:
    fleet.env |= {"CLAUDECODE": "1", "CLAUDE_CODE_CHILD_SESSION": "1", "NBS_HANDLE": "someone", "MY_TOOL": "kept"}
    fleet.write_team([fleet.client.agent("ana", env={"LOG": "debug"})])
    fleet.up()
    seen = environment(fleet.agent("ana", fleet.all_idle())["pid"])
    assert (seen["MY_TOOL"], seen["LOG"], seen["NBS_HANDLE"], seen["NBS_TEAM"]) == ("kept", "debug", "ana", "crew")
    assert seen["NBS_ROOT"] == str(fleet.root.resolve())
    assert seen["NBS_FLEET_RUN"] == str(fleet.run_dir)
    assert seen["NBS_PANE"] == fleet.agent("ana")["pane"]
    assert not {"CLAUDECODE", "CLAUDE_CODE_CHILD_SESSION"} & set(seen)


def test_a_clean_environment_starts_from_an_allowlist(fleet: Fleet) -> None:
    fleet.env |= {"MY_TOOL": "not kept", "PASSED": "on"}
    fleet.write_team([fleet.client.agent("ana", environment="clean", env_pass=["PASSED"])])
    fleet.up()
    seen = environment(fleet.agent("ana", fleet.all_idle())["pid"])
    assert "MY_TOOL" not in seen
    assert seen["PASSED"] == "on"
    assert seen["HOME"] == fleet.env["HOME"]


def test_many_panes_go_to_more_windows(fleet: Fleet) -> None:
    fleet.write_team([fleet.client.agent("bo", count=7)], layout={"panes_per_window": 3, "size": [120, 40]})
    assert fleet.up().code == 0
    windows = {row["window"] for row in fleet.all_idle()["agents"]}
    assert len(windows) == 3


def test_secrets_are_in_no_argument_and_no_readable_file(fleet: Fleet) -> None:
    secret = "s3cr3t-value-0123456789"
    (fleet.root / "secrets.env").write_text(f"API_TOKEN={secret}\n", encoding="utf-8")
    (fleet.root / "secrets.env").chmod(0o600)
    fleet.write_team([fleet.client.agent("ana", env_file="secrets.env")])
    up = fleet.up()
    assert up.code == 0, str(up)
    pid = fleet.agent("ana", fleet.all_idle())["pid"]
    assert environment(pid)["API_TOKEN"] == secret
    assert not [p for p in fleet.everything() if secret in " ".join(p.cmdline())]
    holding = [path for path in fleet.run_dir.rglob("*") if path.is_file() and secret.encode() in path.read_bytes()]
    assert [path for path in holding if stat.S_IMODE(path.stat().st_mode) & 0o077] == []


def test_git_does_a_running_team_no_harm_and_picks_up_no_secret(fleet: Fleet) -> None:
    git(fleet, "init", "-q")
    (fleet.root / "secrets.env").write_text("API_TOKEN=s3cr3t-value-0123456789\n", encoding="utf-8")
    (fleet.root / "secrets.env").chmod(0o600)
    (fleet.root / ".gitignore").write_text("secrets.env\n", encoding="utf-8")
    (fleet.root / "code.txt").write_text("work\n", encoding="utf-8")
    fleet.write_team([fleet.client.agent("ana", env_file="secrets.env", prompt_text="hello")])
    git(fleet, "add", "team.yaml", ".gitignore")
    git(fleet, "commit", "-q", "-m", "team")
    fleet.up()
    before = fleet.pids(fleet.all_idle())
    git(fleet, "add", "-A")
    staged = git(fleet, "diff", "--cached", "--name-only").split()
    assert "code.txt" in staged
    assert [path for path in staged if path.startswith(".nbs/fleet")] == []
    assert "s3cr3t" not in git(fleet, "diff", "--cached")
    git(fleet, "stash", "-u")
    git(fleet, "clean", "-fdx", "-e", "secrets.env")
    assert fleet.pids(fleet.all_idle()) == before
    old = fleet.kill("ana")
    fleet.wait(lambda ps: fleet.pids(ps)["ana"] not in (None, old) and fleet.states(ps)["ana"] == "idle")
    assert fleet.up().code == 0


def environment(pid: int) -> dict[str, str]:
    """A process's environment as the kernel has it."""
    with open(f"/proc/{pid}/environ", encoding="utf-8", errors="surrogateescape") as file:
        pairs = [entry.partition("=") for entry in file.read().split("\0") if entry]
    return {name: value for name, _, value in pairs}


def git(fleet: Fleet, *args: str) -> str:
    """Run git in the root, as someone whose identity is known."""
    who = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
    done = subprocess.run(
        ["git", *who, *args], cwd=fleet.root, env=fleet.env, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_team_goes_down_on_a_full_disk_and_says_what_is_not_written(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    fleet.write_team([fleet.client.agent("ana"), fleet.client.agent("bo")])
    assert fleet.up().code == 0
    plan = store.read_plan_in(str(fleet.run_dir))
    assert plan is not None
    pids = [fleet.agent(handle)["pid"] for handle in ("ana", "bo")]

    def full(*_: object) -> None:
        raise FleetError("No space left on device", hint="Free some space.")

    with monkeypatch.context() as disk:
        disk.setattr(store, "write_record", full)
        with pytest.raises(FleetError, match="crew is down, but that is not written: No space left"):
            take_down(plan, timeout=10.0, purge=False, tell_one=lambda _: None)
    assert [pid for pid in pids if Path(f"/proc/{pid}").exists()] == []
    assert not Path(plan.paths.tmux).exists()
