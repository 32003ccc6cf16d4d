"""What `make demo` shows: three scripted agents come up, work, one is killed and healed, all go down."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import yaml
from tenacity import RetryError, Retrying, retry_if_result, stop_after_delay, wait_fixed

ROOT = Path(__file__).resolve().parent.parent
TEAM_FILE = "teams/demo.yaml"
PROGRAM = Path(sys.executable).parent / "nbs-fleet"

Json = dict[str, Any]


class DemoError(Exception):
    """Something did not go as it should."""


def say(text: str) -> None:
    """One remark, set apart from what the commands print."""
    print(f"\n# {text}", flush=True)


def command(*args: str, show: bool = True) -> subprocess.CompletedProcess[str]:
    """Run one nbs-fleet command as a person would; it and its output are printed."""
    if show:
        print(f"$ nbs-fleet {shlex.join(args)}", flush=True)
    done = subprocess.run(
        [str(PROGRAM), *args],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if show:
        print(done.stdout.rstrip() + "\n" + done.stderr, end="", flush=True)
    return done


def must(*args: str) -> str:
    """Run a command that has to succeed; returns its output."""
    done = command(*args)
    if done.returncode:
        raise DemoError(f"nbs-fleet {shlex.join(args)} ended with {done.returncode}")
    return done.stdout


def look(team: str) -> Json:
    """What `ps --json` says now."""
    done = command("ps", "--team", team, "--json", show=False)
    if done.returncode:
        raise DemoError(f"ps ended with {done.returncode}: {done.stderr}")
    answer = json.loads(done.stdout)
    assert isinstance(answer, dict)
    return answer


def states(agents: list[Json]) -> str:
    """Who does what, in one line."""
    return ", ".join(f"{agent['handle']}: {agent['state']}" for agent in agents)


def wait(team: str, right: Callable[[list[Json]], bool], what: str) -> list[Json]:
    """Wait until the agents are as `right` says, half a minute at most; show `ps` whenever a state has changed."""
    seen: list[list[Json]] = []
    shown = ""

    def ask() -> bool:
        nonlocal shown
        seen.append(look(team)["agents"])
        now = states(seen[-1])
        if now != shown:
            shown = now
            command("ps", "--team", team)
        return right(seen[-1])

    tries = Retrying(stop=stop_after_delay(30), wait=wait_fixed(0.25), retry=retry_if_result(lambda ok: not ok))
    try:
        tries(ask)
    except RetryError:
        raise DemoError(f"{what} did not come about within 30 s ({states(seen[-1])})") from None
    return seen[-1]


def await_words(team: str, words: str) -> None:
    """Wait until somebody has said this in the chat."""

    def said() -> bool:
        return words in command("chat", "read", "live", "--team", team, show=False).stdout

    tries = Retrying(stop=stop_after_delay(30), wait=wait_fixed(0.25), retry=retry_if_result(lambda ok: not ok))
    try:
        tries(said)
    except RetryError:
        raise DemoError(f"nobody said {words!r} within 30 s") from None


def all_idle(agents: list[Json]) -> bool:
    """Whether every agent has done what it was told."""
    return all(agent["state"] == "idle" for agent in agents)


def running_with(run: str) -> list[str]:
    """Processes that have this run directory in their environment or command line."""
    found = []
    for process in psutil.process_iter(["pid", "environ", "cmdline", "status"]):
        told = [*(process.info["environ"] or {}).values(), *(process.info["cmdline"] or [])]
        if process.info["status"] != psutil.STATUS_ZOMBIE and process.pid != os.getpid():
            found += [str(process.pid)] if any(run in text for text in told) else []
    return found


def run_directory(agents: list[Json]) -> str:
    """The team's run directory, as an agent's own environment names it."""
    return psutil.Process(int(agents[0]["pid"])).environ()["NBS_FLEET_RUN"]


def show(team: str, run: str) -> None:
    """The demonstration between `up` and `down`."""
    say("They work: each was given a prompt, and its client is at it.")
    agents = wait(team, all_idle, "an idle team")
    first = agents[0]["handle"]

    say("They talk in a chat. Each was woken by a notice when something waited for it; nobody polled.")
    await_words(team, "written down")
    must("chat", "read", "live", "--team", team)
    agents = wait(team, all_idle, "an idle team")

    say(f"What {first}'s screen shows.")
    must("peek", first, "--team", team)

    victim = agents[-1]
    say(f"Now {victim['handle']}'s client is killed, as a crash would.")
    print(f"$ kill -9 {victim['pid']}", flush=True)
    os.kill(int(victim["pid"]), signal.SIGKILL)
    handle = victim["handle"]

    def healed(rows: list[Json]) -> bool:
        row = next(row for row in rows if row["handle"] == handle)
        return row["pid"] not in (None, victim["pid"]) and row["state"] == "idle"

    wait(team, healed, f"{handle} healed")
    say(f"It is back: another process, the same session ({victim['session_id']}).")
    must("why", handle, "--team", team)

    say("To go and look yourself, while a team is up (leave again with Ctrl-b d):")
    print(f"  nbs-fleet attach {first}")
    print(f"  everything it writes: {run}")


def begin_afresh() -> None:
    """Without the chat and the events of an earlier demonstration."""
    shutil.rmtree(ROOT / ".nbs" / "demo", ignore_errors=True)


def main() -> int:
    """Show it; 0 if all went well and nothing is left."""
    say("One file says who is on the team.")
    print(f"$ cat {TEAM_FILE}\n{(ROOT / TEAM_FILE).read_text(encoding='utf-8')}")
    team = str(yaml.safe_load((ROOT / TEAM_FILE).read_text(encoding="utf-8"))["team"])
    failure: str | None = None
    run = runtime = ""
    begin_afresh()
    try:
        say("`up` makes it so.")
        must("up", TEAM_FILE)
        run = run_directory(look(team)["agents"])
        runtime = (Path(run) / "runtime").read_text(encoding="utf-8").strip()
        show(team, run)
    except DemoError as error:
        failure = str(error)
    say("And down, without a trace.")
    down = command("down", "--team", TEAM_FILE, "--purge")
    left = running_with(run) if run else []
    if left:
        failure = failure or f"still running: {', '.join(left)}"
    still = [folder for folder in (run, runtime) if folder and Path(folder).exists()]
    if still:
        failure = failure or f"still there: {', '.join(still)}"
    if down.returncode or failure:
        print(f"\nthe demo failed: {failure or f'down ended with {down.returncode}'}", file=sys.stderr)
        return 1
    say("No process, no socket, no file is left. That was it.")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        command("down", "--team", TEAM_FILE, "--purge")
        sys.exit(130)
