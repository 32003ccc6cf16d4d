"""What `doctor` looks at on this machine: tmux, clients, disk, file notification. Each look gives one line."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterable, Mapping
from typing import Literal

from msgspec import Struct

from nbs_fleet.errors import FleetError
from nbs_fleet.launch import registry, rundir, versions
from nbs_fleet.launch.environment import agent_environment
from nbs_fleet.launch.mounts import NETWORK, file_system
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.spec.team import Agent

NEEDED_TMUX = (3, 2)
WANTED_TMUX = (3, 3)
_MEGABYTE = 1024 * 1024
_SOCKET_LIMIT = 100
_SAMPLE = "✳ 日本 é"
LOGINS: dict[str, tuple[tuple[str, ...], tuple[str, ...], str]] = {
    "claude": (
        ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CLAUDE_CODE_USE_BEDROCK"),
        ("${CLAUDE_CONFIG_DIR:-~/.claude}/.credentials.json",),
        "run claude once and log in, or set ANTHROPIC_API_KEY",
    ),
}
"""Per driver: variables that log its client in, files that do, and what to do without. A hint only: a system's
key store can't be asked without opening it."""


class Check(Struct, frozen=True):
    """One line of `doctor`. `bad`: the fleet can't work here until `fix` is done; `warn`: it can, with a limit."""

    level: Literal["ok", "warn", "bad"]
    name: str
    says: str
    fix: str = ""


def tmux(environ: Mapping[str, str]) -> list[Check]:
    """Whether tmux is there, new enough, starts, and shows UTF-8."""
    program = shutil.which("tmux", path=environ.get("PATH"))
    if program is None:
        return [Check("bad", "tmux", "not installed", _install())]
    version = Tmux("").version()
    if version is None:
        return [Check("bad", "tmux", f"{program} does not tell its version", _install())]
    shown = f"{version[0]}.{version[1]} ({program})"
    if version < NEEDED_TMUX:
        return [Check("bad", "tmux", f"{shown} is too old, 3.2 is needed", _install())]
    found = [
        Check("ok", "tmux", shown)
        if version >= WANTED_TMUX
        else Check("warn", "tmux", f"{shown} works, 3.3 or newer is better", _install())
    ]
    return [*found, _utf8(environ)]


def _utf8(environ: Mapping[str, str]) -> Check:
    """Start a private server, let it show some text, and read that back."""
    folder = tempfile.mkdtemp(prefix="nbs-")
    server = Tmux(os.path.join(folder, "s"))
    try:
        # The shell signals when the text is out, so nothing here waits by the clock.
        show = f"printf '%s' '{_SAMPLE}'; tmux -S '{server.socket}' wait-for -S shown; exec cat"
        server.start("doctor", (40, 5), ["sh", "-c", show], environ)
        server.run("wait-for", "shown", timeout=10.0)
        rows = server.capture(server.panes()[0].id)
        if rows[:1] == (_SAMPLE,):
            return Check("ok", "UTF-8", "tmux shows it")
        return Check("bad", "UTF-8", f"tmux shows {rows[:1]} for {_SAMPLE}", "install the locale C.UTF-8")
    except FleetError as error:
        return Check("bad", "tmux", f"a server can't be started: {error.message}", error.hint or "run tmux by hand")
    finally:
        try:
            server.kill_server()
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def _install() -> str:
    for manager, how in (
        ("apt-get", "apt-get install tmux"),
        ("dnf", "dnf install tmux"),
        ("pacman", "pacman -S tmux"),
        ("apk", "apk add tmux"),
        ("brew", "brew install tmux"),
    ):
        if shutil.which(manager):
            return how
    return "install tmux 3.3 or newer"


def nested(environ: Mapping[str, str]) -> Check:
    """Whether this shell is inside a tmux."""
    if environ.get("TMUX"):
        return Check("ok", "nested", "inside tmux: attach nests in this pane; press the prefix twice for the inner one")
    return Check("ok", "nested", "not inside tmux")


def sockets(root: str, team: str, environ: Mapping[str, str]) -> Check:
    """Whether the sockets of this team have paths short enough."""
    paths = rundir.run_paths(root, team, environ)
    longest = max((paths.socket, paths.tmux), key=lambda path: len(os.fsencode(path)))
    size = len(os.fsencode(longest))
    if size > _SOCKET_LIMIT:
        return Check(
            "bad", "sockets", f"{longest} has {size} bytes, {_SOCKET_LIMIT} fit", "set a short XDG_RUNTIME_DIR"
        )
    return Check("ok", "sockets", f"{os.path.dirname(longest)} ({size} of {_SOCKET_LIMIT} bytes)")


def clients(agents: Iterable[Agent], environ: Mapping[str, str]) -> list[Check]:
    """Each client that the agents need: found, new enough, and a hint about its login."""
    found: dict[str, list[Check]] = {}
    for agent in agents:
        name = agent.driver if agent.command is None else f"{agent.driver} ({agent.base})"
        if name not in found:
            found[name] = _client(agent, name, environ)
    return [check for checks in found.values() for check in checks]


def _client(agent: Agent, name: str, environ: Mapping[str, str]) -> list[Check]:
    try:
        driver = registry.of(agent)
    except FleetError as error:
        return [Check("bad", name, error.message, error.hint or "")]
    if agent.driver == "sim" and agent.command is None:
        return [Check("ok", name, "the simulator is part of nbs-fleet")]
    program = agent.command[0] if agent.command else driver.program
    env = agent_environment(agent, environ, driver.env_keys, {})
    question = versions.Question(driver, program, env, agent.dir)
    return _wrapper(question, name) if agent.command else [*_own(question, name), *_login(name, env)]


def _wrapper(question: versions.Question, name: str) -> list[Check]:
    """A command that the team file names: nothing is known of its options, so it is not run."""
    path = question.resolve()
    if path is None or not os.access(path, os.X_OK):
        says = f"{question.program}: not found, or not executable"
        return [Check("bad", name, says, "correct `command` in the team file")]
    return [Check("ok", name, path)]


def _own(question: versions.Question, name: str) -> list[Check]:
    answer = versions.ask(question, {})
    if answer.problem:
        return [Check("bad", name, answer.problem.removeprefix(f"{name}: "), answer.hint or "")]
    if answer.remark:
        return [Check("warn", name, answer.remark.removeprefix(f"{name}: "), answer.hint or "")]
    return [Check("ok", name, f"{answer.version} ({question.resolve()})")]


def _login(name: str, environ: Mapping[str, str]) -> list[Check]:
    if name not in LOGINS:
        return []
    variables, files, fix = LOGINS[name]
    for variable in variables:
        if environ.get(variable):
            return [Check("ok", f"{name} login", f"by ${variable}")]
    home = environ.get("HOME", os.path.expanduser("~"))
    folder = environ.get("CLAUDE_CONFIG_DIR") or os.path.join(home, ".claude")
    for file in files:
        path = file.replace("${CLAUDE_CONFIG_DIR:-~/.claude}", folder)
        if os.path.exists(path):
            return [Check("ok", f"{name} login", path)]
    return [Check("warn", f"{name} login", "no login was found where it usually is", fix)]


def disk(environ: Mapping[str, str]) -> Check:
    """Room where run directories are written."""
    folder = rundir.state_home(environ)
    while not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    free = shutil.disk_usage(folder).free // _MEGABYTE
    says = f"{free} MB free in {folder}"
    if not os.access(folder, os.W_OK):
        return Check("bad", "disk", f"{folder} can't be written", "mend its owner or mode, or set XDG_STATE_HOME")
    if free < 50:
        return Check("bad", "disk", says, "make room: stories, captures and messages need some")
    return Check("warn" if free < 500 else "ok", "disk", says, "make room soon" if free < 500 else "")


def notification(root: str) -> list[Check]:
    """Whether changes of files are told at once."""
    found: list[Check] = []
    if sys.platform == "linux":
        for name, least in (("max_user_instances", 64), ("max_user_watches", 8192)):
            number = _number(f"/proc/sys/fs/inotify/{name}")
            if number is not None and number < least:
                fix = f"sysctl fs.inotify.{name}={least * 8}"
                found.append(Check("warn", "inotify", f"{name} is {number}: few teams fit", fix))
        if not found:
            found.append(Check("ok", "inotify", "limits are high enough"))
    kind = file_system(root)
    if kind in NETWORK:
        says = f"{root} is on {kind}: changes made elsewhere are seen by a look each 30 s"
        found.append(Check("warn", "files", says, "keep the root on a local disk"))
    return found


def _number(path: str) -> int | None:
    try:
        with open(path, encoding="ascii") as file:
            return int(file.read())
    except (OSError, ValueError):
        return None
