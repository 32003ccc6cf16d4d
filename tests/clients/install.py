"""Installs the real clients that tests drive, at pinned versions, into a per-user cache folder keyed by version."""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

SECONDS = 900.0


class InstallError(Exception):
    """A client could not be had; the message is what the installing program said."""


@dataclass(frozen=True)
class Client:
    """One pinned client: `tool` is the installer it needs, `program` where its executable lies in its folder."""

    name: str
    version: str
    tool: str
    program: str
    build: Callable[[Path, str], None]

    @property
    def folder(self) -> Path:
        """Where it lies once it is installed."""
        return cache() / f"{self.name}-{self.version}"

    @property
    def executable(self) -> Path:
        """The program itself."""
        return self.folder / self.program

    @property
    def present(self) -> bool:
        """Whether it is installed: the folder appears by a rename, so it is whole or not there."""
        return os.access(self.executable, os.X_OK)

    def answers(self, folder: Path) -> str:
        """What `--version` prints; an error if that is not the pinned version."""
        try:
            done = run([str(folder / self.program), "--version"], seconds=60)
        except OSError as error:
            raise InstallError(f"{self.program} can't be run: {error}") from error
        if self.version not in done:
            raise InstallError(f"{self.program} --version says {done.strip()!r}, wanted {self.version}")
        return done


def cache() -> Path:
    """`${XDG_CACHE_HOME:-~/.cache}/nbs-fleet/clients`; NBS_FLEET_CLIENTS overrides it."""
    named = os.environ.get("NBS_FLEET_CLIENTS")
    if named:
        return Path(named)
    base = os.environ.get("XDG_CACHE_HOME") or str(Path("~/.cache").expanduser())
    return Path(base) / "nbs-fleet" / "clients"


def run(argv: list[str], *, seconds: float = SECONDS, cwd: Path | None = None) -> str:
    """Run a program and return what it printed; InstallError with its last lines if it fails."""
    try:
        done = subprocess.run(
            argv,
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired as late:
        raise InstallError(f"{argv[0]} was not done after {seconds:.0f} s") from late
    if done.returncode:
        last = "\n".join(done.stdout.strip().splitlines()[-12:])
        raise InstallError(f"{' '.join(argv[:3])} ... ended with {done.returncode}:\n{last}")
    return done.stdout


def build_claude(folder: Path, version: str) -> None:
    """Claude Code from npm. npm may refuse to run install scripts, so the package's own step is run here.

    `install.cjs` puts the platform package's binary in the place of the wrapper in bin/ (seen in 2.1.197).
    """
    (folder / "package.json").write_text(json.dumps({"name": "clients", "private": True}), encoding="utf-8")
    package = f"@anthropic-ai/claude-code@{version}"
    run(["npm", "install", "--prefix", str(folder), "--no-audit", "--no-fund", "--save-exact", package])
    home = folder / "node_modules" / "@anthropic-ai" / "claude-code"
    if not (home / "install.cjs").exists():
        raise InstallError(f"{package} has no install.cjs: it is not the package this was written for")
    run(["node", "install.cjs"], cwd=home)


def build_claudeless(folder: Path, version: str) -> None:
    """claudeless from its registry, built here with its own lock file (two or three minutes)."""
    with tempfile.TemporaryDirectory(prefix="claudeless-build-") as target:
        argv = ["cargo", "install", "claudeless", "--version", version, "--locked"]
        run([*argv, "--root", str(folder), "--target-dir", target])


def build_opencode(folder: Path, version: str) -> None:
    """opencode from npm; its own install step puts the platform's binary in the place of a stub (seen in 1.18.33)."""
    from_npm("opencode-ai")(folder, version)
    run(["node", "postinstall.mjs"], cwd=folder / "node_modules" / "opencode-ai")


def from_npm(package: str) -> Callable[[Path, str], None]:
    """A client that needs none of its npm package's install scripts (seen with each one below)."""

    def build(folder: Path, version: str) -> None:
        (folder / "package.json").write_text(json.dumps({"name": "clients", "private": True}), encoding="utf-8")
        flags = ["--ignore-scripts", "--no-audit", "--no-fund", "--save-exact"]
        run(["npm", "install", "--prefix", str(folder), *flags, f"{package}@{version}"])

    return build


CLAUDE = Client("claude-code", "2.1.197", "npm", "node_modules/.bin/claude", build_claude)
CLAUDELESS = Client("claudeless", "0.2.2", "cargo", "bin/claudeless", build_claudeless)
CODEX = Client("codex", "0.171.0", "npm", "node_modules/.bin/codex", from_npm("@openai/codex"))
COPILOT = Client("copilot", "1.0.102", "npm", "node_modules/.bin/copilot", from_npm("@github/copilot"))
QWEN = Client("qwen-code", "0.15.10", "npm", "node_modules/.bin/qwen", from_npm("@qwen-code/qwen-code"))
"""The newest that runs on Node 20."""
OPENCODE = Client("opencode", "1.18.33", "npm", "node_modules/.bin/opencode", build_opencode)
GEMINI = Client("gemini-cli", "0.61.0", "npm", "node_modules/.bin/gemini", from_npm("@google/gemini-cli"))
BASIC = (CLAUDE, CLAUDELESS)
"""What most of `make test` runs against."""
OTHERS = (CODEX, COPILOT, QWEN, OPENCODE, GEMINI)
SMOKE = (CODEX, COPILOT, QWEN)
"""Those of the others that `make test` plays one short case with; `make test-all` plays all cases with all of them."""
CLIENTS = (*BASIC, *OTHERS)


@contextlib.contextmanager
def only_one(client: Client) -> Iterator[None]:
    """Hold this client's lock: a second installer waits, then finds it done."""
    cache().mkdir(parents=True, exist_ok=True)
    with (cache() / f".{client.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def install(client: Client) -> bool:
    """Make it present; True if it had to be built. InstallError if it can't be had."""
    if client.present:
        return False
    with only_one(client):
        if client.present:
            return False
        for stale in cache().glob(f".{client.name}-*"):
            shutil.rmtree(stale, ignore_errors=True)
        building = Path(tempfile.mkdtemp(prefix=f".{client.name}-", dir=cache()))
        try:
            client.build(building, client.version)
            client.answers(building)
            building.chmod(stat.S_IRWXU | stat.S_IRGRP | stat.S_IXGRP | stat.S_IROTH | stat.S_IXOTH)
            if client.folder.exists():
                shutil.rmtree(client.folder)
            building.rename(client.folder)
        finally:
            shutil.rmtree(building, ignore_errors=True)
    return True


def obtain(client: Client) -> tuple[bool, str]:
    """Install it if that can be done here: (whether it is there, one line that says so)."""
    label = f"{client.name} {client.version}"
    if not client.present and shutil.which(client.tool) is None:
        return False, f"{label}: skipped, there is no {client.tool} on this machine"
    if not client.present:
        print(f"{label}: installing into {client.folder}", flush=True)
    try:
        built = install(client)
    except InstallError as error:
        return False, f"{label}: could not be installed: {error}"
    return True, f"{label}: {'installed' if built else 'present'}"


def main() -> int:
    """Install what is named (default: all); exit 1 if something that was asked for is not there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", help=", ".join(client.name for client in CLIENTS))
    names = parser.parse_args().names
    unknown = set(names) - {client.name for client in CLIENTS}
    if unknown:
        parser.error(f"no such client: {', '.join(sorted(unknown))}")
    missing = 0
    for client in CLIENTS:
        if not names or client.name in names:
            there, line = obtain(client)
            missing += not there
            print(line, flush=True)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
