"""Asks clients for their version, several at a time, and remembers the answers while the programs stay the same."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress

from msgspec import Struct

from nbs_fleet.drivers.base import Driver, numbers
from nbs_fleet.errors import MissingError
from nbs_fleet.jsontext import MALFORMED
from nbs_fleet.launch import registry
from nbs_fleet.spec.team import Agent

CACHE_FILE = "versions.json"
TIMEOUT = 20.0
"""Seconds for `--version`; a client that was just unpacked on a loaded machine was seen to take several."""


class Found(Struct, frozen=True):
    """Version per driver name, and remarks on clients whose version could not be learned."""

    versions: dict[str, str] = {}
    warnings: tuple[str, ...] = ()


class Answer(Struct, frozen=True):
    """What `program --version` gave: a version, else a remark, else a problem that makes a start pointless."""

    version: str | None = None
    remark: str | None = None
    problem: str | None = None
    hint: str | None = None


class Question(Struct, frozen=True):
    """One client to ask: `program` as the agent would start it, `env` what the agent gets, `dir` where."""

    driver: Driver
    program: str
    env: Mapping[str, str]
    dir: str

    def resolve(self) -> str | None:
        """The file that would be started, by the agent's own PATH."""
        if "/" in self.program:
            return os.path.join(self.dir, self.program)
        return shutil.which(self.program, path=self.env.get("PATH", os.defpath))


def check(
    agents: Iterable[Agent],
    environments: Mapping[str, Mapping[str, str]],
    *,
    cache_dir: str | None = None,
) -> Found:
    """Versions of the clients that these agents will start; `environments` holds one per handle.

    Only where the command is the driver's own program and the driver has a minimum: a wrapper may answer
    `--version` as it likes. MissingError (exit 3) names every client that is missing, not executable or too old.
    `cache_dir`: an existing folder for the memory of earlier answers; None: always ask, write nothing.
    """
    todo = _questions(agents, environments)
    cache = _load(cache_dir)
    answers = _ask_all(list(todo.values()), cache)
    problems = [answer for _, answer in answers if answer.problem]
    if problems:
        hints = dict.fromkeys(answer.hint for answer in problems if answer.hint)
        raise MissingError("\n".join(str(answer.problem) for answer in problems), hint="; ".join(hints) or None)
    _store(cache_dir, cache)
    versions: dict[str, str] = {}
    for driver, answer in answers:
        if answer.version:
            versions.setdefault(driver.name, answer.version)
    return Found(versions, tuple(answer.remark for _, answer in answers if answer.remark))


def _ask_all(questions: list[Question], cache: dict[str, str]) -> list[tuple[Driver, Answer]]:
    """The answers of all clients, several of which are asked at a time."""
    if len(questions) < 2:
        return [(question.driver, ask(question, cache)) for question in questions]
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415 -- most teams have one client, whose answer is known

    with ThreadPoolExecutor(max_workers=min(8, len(questions))) as pool:
        jobs = [(question.driver, pool.submit(ask, question, cache)) for question in questions]
        return [(driver, job.result()) for driver, job in jobs]


def ask(question: Question, cache: dict[str, str]) -> Answer:
    """Ask one client, or take its answer from `cache`, where new answers are put too. Never raises."""
    driver, path = question.driver, question.resolve()
    install = f"install {driver.program}, or name the program with `command`"
    if path is None:
        return Answer(problem=f"{driver.name}: {question.program} not found in PATH", hint=install)
    try:
        key = _key(driver, path)
    except OSError as error:
        return Answer(problem=f"{driver.name}: {path}: {error.strerror}", hint=install)
    if not os.access(path, os.X_OK):
        return Answer(problem=f"{driver.name}: {path}: not executable", hint=f"chmod +x {path}")
    version = cache.get(key)
    if version is None:
        output = _run(question, path)
        if isinstance(output, Answer):
            return output
        version = driver.parse_version(output)
        if version is None:
            said = next(iter(output.strip().splitlines()), "nothing")
            return Answer(remark=f"{driver.name}: {path} --version says {said[:80]!r}, which is no version of it")
        cache[key] = version
    return _judge(driver, path, version)


def below(version: str, minimum: tuple[int, ...]) -> bool:
    """Whether the numbers that `version` begins with are smaller than `minimum`."""
    return numbers(version)[: len(minimum)] < minimum


def _questions(
    agents: Iterable[Agent], environments: Mapping[str, Mapping[str, str]]
) -> dict[tuple[str, str], Question]:
    """One question per driver and file."""
    found: dict[tuple[str, str], Question] = {}
    for agent in agents:
        driver = registry.of(agent)
        program = agent.command[0] if agent.command else driver.program
        if driver.min_version is None or os.path.basename(program) != driver.program:
            continue
        question = Question(driver, program, environments.get(agent.handle, os.environ), agent.dir)
        found.setdefault((driver.name, question.resolve() or program), question)
    return found


def _run(question: Question, path: str) -> str | Answer:
    """The output of `path --version`, or what went wrong."""
    name = question.driver.name
    try:
        done = _asked(path, dict(question.env))
    except subprocess.TimeoutExpired:
        return Answer(remark=f"{name}: {path} --version gave no answer within {TIMEOUT:.0f} s")
    except OSError as error:
        return Answer(problem=f"{name}: {path}: can't be started: {error.strerror}", hint="install it again")
    if done.returncode:
        said = next(reversed((done.stderr or done.stdout).strip().splitlines()), "no output")
        problem = f"{name}: {path} --version: exit {done.returncode}: {said[:200]}"
        return Answer(problem=problem, hint=f"run `{path} --version` by hand")
    return done.stdout


def _asked(path: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run `path --version`; one that takes too long ends with all that it started (Gemini CLI starts itself again)."""
    with subprocess.Popen(
        [path, "--version"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        env=env,
        start_new_session=True,
    ) as running:
        try:
            out, err = running.communicate(timeout=TIMEOUT)
        except subprocess.TimeoutExpired:
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(running.args, running.returncode, out, err)


def _judge(driver: Driver, path: str, version: str) -> Answer:
    minimum = driver.min_version
    if minimum is None or not below(version, minimum):
        return Answer(version=version)
    needed = ".".join(map(str, minimum))
    problem = f"{driver.name}: {path} is version {version}; {needed} or newer is needed"
    return Answer(version=version, problem=problem, hint=f"update {driver.program}")


def _key(driver: Driver, path: str) -> str:
    """What changes when a program is replaced: its real path, change time in ns and size."""
    real = os.path.realpath(path)
    info = os.stat(real)
    return f"{driver.name} {real} {info.st_mtime_ns} {info.st_size}"


def _load(folder: str | None) -> dict[str, str]:
    """The cache; one that is not there or makes no sense is empty."""
    if folder is None:
        return {}
    try:
        with open(os.path.join(folder, CACHE_FILE), encoding="utf-8") as file:
            data = json.load(file)
    except (OSError, *MALFORMED):
        return {}
    if not isinstance(data, dict):
        return {}
    return {key: value for key, value in data.items() if isinstance(value, str)}


def _store(folder: str | None, cache: dict[str, str]) -> None:
    """Write the cache if it changed, beside and renamed, without programs that are gone; it is a help only."""
    if folder is None or cache == _load(folder):
        return
    kept = {key: value for key, value in cache.items() if os.path.exists(key.partition(" ")[2].rsplit(" ", 2)[0])}
    path = os.path.join(folder, CACHE_FILE)
    with suppress(OSError):
        with open(f"{path}.{os.getpid()}", "w", encoding="utf-8") as file:
            json.dump(kept, file, indent=1, sort_keys=True)
        os.replace(f"{path}.{os.getpid()}", path)
