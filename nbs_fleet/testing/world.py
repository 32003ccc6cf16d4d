"""A test's own world: folders, home, tmux server and team, of which nothing is left when it ends."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sys
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress

import psutil
from msgspec import Struct

from nbs_fleet.errors import FleetError, MissingError
from nbs_fleet.launch import registry, rundir
from nbs_fleet.launch.files import write_atomic
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.spec.load import load_team
from nbs_fleet.spec.team import Team
from nbs_fleet.testing import surroundings, teamfile
from nbs_fleet.testing.load import Script
from nbs_fleet.testing.observe import Eyes
from nbs_fleet.testing.schema import GivenFile, OverridesFile
from nbs_fleet.testing.surroundings import Folders

COMMAND_SECONDS = 60.0
"""How long one command may take on a loaded machine."""
DOWN_SECONDS = "5s"


class Done(Struct, frozen=True):
    """How a command ended; None: it did not, in its time, and was ended."""

    args: tuple[str, ...]
    code: int | None
    out: str

    def __str__(self) -> str:
        end = "did not end" if self.code is None else f"exit {self.code}"
        return f"$ nbs-fleet {' '.join(self.args)}\n{self.out.rstrip()}\n[{end}]"


class Recipe(Struct, frozen=True):
    """What a world is made from. `folder` is the one relative paths count from.

    Either `team_path`, the absolute path of a team file, or `inline`, the text of one.
    """

    name: str
    folder: str
    team_path: str | None
    inline: str | None
    overrides: OverridesFile = teamfile.NO_OVERRIDES
    given: tuple[GivenFile, ...] = ()


def recipe_of(script: Script) -> Recipe:
    """The recipe for the world of a test file."""
    said = script.said
    return Recipe(
        name=script.name,
        folder=os.path.dirname(script.file),
        team_path=script.team_path,
        inline=script.inline,
        overrides=said.overrides or teamfile.NO_OVERRIDES,
        given=tuple(said.given or ()),
    )


class World:
    """One team on folders of its own. Everything in it has HOME below `folders.base`, which tells it from all else."""

    def __init__(self, base: str, recipe: Recipe, environ: Mapping[str, str], driver: str | None) -> None:
        self.recipe = recipe
        self.folders = Folders(base)
        self.env = surroundings.environment(environ, self.folders)
        self.driver = driver
        self.file = os.path.join(base, "team.yaml")
        self.team: Team
        """The team as it is played."""
        self.eyes: Eyes

    @classmethod
    def make(cls, recipe: Recipe, environ: Mapping[str, str], *, driver: str | None = None) -> World:
        """Lay out the folders and files; starts nothing.

        Raises TeamFileError where the team can't be played like that, MissingError where this machine lacks something.
        """
        base = os.path.realpath(tempfile.mkdtemp(prefix="nf-", dir=_short_folder(environ)))
        made = cls(base, recipe, environ, driver)
        with ExitStack() as undone:
            undone.callback(made.remove)
            made._lay_out()
            undone.pop_all()
        return made

    @property
    def drivers(self) -> tuple[str, ...]:
        """The drivers that play, each once."""
        return tuple(dict.fromkeys(agent.driver for agent in self.team.agents))

    def _lay_out(self) -> None:
        for folder in self.folders.every:
            os.mkdir(folder, 0o700)
        os.mkdir(os.path.join(self.folders.root, ".nbs"))
        self._give()
        base = self.recipe.team_path
        if base is None:
            base = os.path.join(self.folders.base, "inline.yaml")
            write_atomic(base, self.recipe.inline or "")
        declared = load_team(base, self.env).team
        overrides = self.recipe.overrides
        folder = self.recipe.folder
        stands = {
            agent.base: teamfile.stand_in(agent, overrides, driver=self.driver, folder=folder)
            for agent in declared.agents
        }
        programs = {stand.driver: program_of(stand.driver) for stand in stands.values()}
        sidecar = overrides.sidecar.model_dump(exclude_none=True, by_alias=True) if overrides.sidecar else {}
        text = teamfile.overlay_text(
            base, self.folders.root, declared.agents, stands, sidecar=sidecar, programs=programs
        )
        write_atomic(self.file, text)
        self.team = load_team(self.file, self.env, known_drivers=registry.names()).team
        paths = rundir.run_paths(self.team.root, self.team.name, self.env)
        self.eyes = Eyes(paths, self.team.root)
        directories = dict.fromkeys(agent.dir for agent in self.team.agents)
        for path, text in surroundings.first_files(self.drivers, directories, self.env, self.folders).items():
            write_atomic(path, text)
        self._check_clients()

    def _give(self) -> None:
        """The files that are there before the team starts."""
        folder = self.recipe.folder
        for item in self.recipe.given:
            path = os.path.join(self.folders.root, item.path)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            if item.copy_of is None:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(item.text or "")
                continue
            source = os.path.join(folder, item.copy_of)
            try:
                shutil.copytree(source, path) if os.path.isdir(source) else shutil.copy2(source, path)
            except OSError as error:
                raise FleetError(f"given: {item.path}: can't copy {source}: {error.strerror}") from error

    def _check_clients(self) -> None:
        """Raise MissingError for what every agent would miss."""
        if Tmux(self.eyes.paths.tmux).version() is None:
            raise MissingError("tmux is not installed", hint="nbs-fleet doctor says how to get it")
        reason = surroundings.without_credentials(self.drivers, self.env)
        if reason:
            raise MissingError(reason)
        for agent in self.team.agents:
            program = (agent.command or program_of(agent.driver))[0]
            if agent.driver != "sim" and shutil.which(program, path=self.env.get("PATH")) is None:
                raise MissingError(f"{agent.driver} can't be played: there is no {program} on PATH")

    # -- commands

    async def run(
        self, *args: str, stdin: str = "", as_agent: str | None = None, seconds: float = COMMAND_SECONDS
    ) -> Done:
        """Run one of our own commands in this world, as a person would, or as an agent."""
        env = self.env
        if as_agent is not None:
            env = {**env, "NBS_FLEET_RUN": self.eyes.paths.run, "NBS_HANDLE": as_agent}
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-I", "-m", "nbs_fleet", *args),
            cwd=self.folders.root,
            env=env,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
            start_new_session=True,  # Ctrl-C is for the runner, which then takes everything down
        )
        code: int | None = None
        try:
            async with asyncio.timeout(seconds):
                out, _ = await process.communicate(stdin.encode())
            code = process.returncode
        except TimeoutError:
            out = b""
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                await process.wait()
        return Done(args, code, out.decode("utf-8", "replace"))

    async def up(self) -> Done:
        """Bring the team up; who is ready is a matter of the test's own steps."""
        return await self.run("up", self.file, "--no-wait")

    # -- the end

    async def down(self) -> Done:
        """Take the team down as a person would."""
        return await self.run("down", "--team", self.team.name, "--timeout", DOWN_SECONDS)

    def was_up(self) -> bool:
        """Whether anything may have been started here."""
        return os.path.lexists(self.eyes.paths.run)

    async def end(self) -> list[str]:
        """Take everything down, by force where it must be; returns what `down` left behind, a line each."""
        said: list[str] = []
        if self.was_up():
            down = await self.down()
            if down.code != 0:
                said.append(str(down))
        left = await asyncio.to_thread(self.processes)
        said += [f"process {_described(process)}" for process in left]
        said += [f"file {path}" for path in self._private_files()]
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        await asyncio.to_thread(psutil.wait_procs, left, 10.0)
        return said

    def processes(self) -> list[psutil.Process]:
        """Every process of this world: its HOME is in the environment or on the command line."""
        found: list[psutil.Process] = []
        for process in psutil.process_iter():
            try:
                if process.status() == psutil.STATUS_ZOMBIE or process.pid == os.getpid():
                    continue
                told = [*process.environ().values(), *process.cmdline()]
            except (psutil.Error, OSError):
                continue
            if any(self.folders.base in text for text in told):
                found.append(process)
        return found

    def _private_files(self) -> list[str]:
        """Sockets and values that `down` should have removed."""
        return [os.path.join(top, name) for top, _, names in os.walk(self.folders.runtime) for name in names]

    def remove(self) -> None:
        """Remove the folders."""
        shutil.rmtree(self.folders.base, ignore_errors=True)


def program_of(driver: str) -> tuple[str, ...]:
    """The command that a driver starts where the team file names none."""
    return ("nbs-fleet", "sim") if driver == "sim" else (registry.get(driver).program,)


def _short_folder(environ: Mapping[str, str]) -> str:
    """Where worlds are made: the temporary folder, if sockets fit below it."""
    usual = environ.get("TMPDIR") or "/tmp"  # noqa: S108 -- a folder of our own is made in it
    fits = len(os.fsencode(usual)) <= surroundings.SHORT and os.path.isdir(usual)
    return usual if fits else "/tmp"  # noqa: S108


def _described(process: psutil.Process) -> str:
    with suppress(psutil.Error):
        return f"{process.pid} {' '.join(process.cmdline())[:160]}"
    return f"{process.pid}"
