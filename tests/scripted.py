"""Plays the scripted teams of `teams/ci/` with `nbs-fleet test` against one client, as a CI would do it."""

from __future__ import annotations

import argparse
import contextlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from nbs_fleet.sim import scenario  # noqa: E402 - the path is set above
from tests.clients.install import CLAUDE, CLAUDELESS  # noqa: E402
from tests.support import private  # noqa: E402
from tests.support.claude_api import ScriptedApi  # noqa: E402
from tests.support.clients import API_KEY  # noqa: E402

FOLDER = ROOT / "teams" / "ci"
SHORT = {
    "sim": ("start", "mention", "event", "busy", "permission", "crash", "supervisor"),
    "claudeless": ("start", "mention", "crash"),
    "claude": ("start", "mention", "permission"),
}
"""What `make test` plays: it has little time. `make test-all` plays everything that a client can do."""
NOT = {"claude": ("limit",), "claudeless": (), "sim": ()}
"""What a client does in another way than the file says; the file tells why."""


def files(client: str, *, long: bool) -> list[Path]:
    """The test files that are played against a client."""
    names = SHORT[client]
    every = sorted(FOLDER.glob("*.test.yaml"))
    stems = {path: path.name.removesuffix(".test.yaml") for path in every}
    return [path for path in every if (stems[path] not in NOT[client] if long else stems[path] in names)]


@contextlib.contextmanager
def surrounding(client: str, folder: Path) -> Iterator[dict[str, str]]:
    """The environment for a run: nothing of this person's, the client on PATH, for the real one a scripted API."""
    env = private.surrounding(folder, folder / "runtime")
    (folder / "runtime").mkdir(mode=0o700)
    if client == "claudeless":
        env["PATH"] = f"{CLAUDELESS.executable.parent}:{env['PATH']}"
    if client != "claude":
        yield env
        return
    env["PATH"] = f"{CLAUDE.executable.parent}:{env['PATH']}"
    with ScriptedApi(folder / "api-log") as api:
        api.control.scenario = scenario.load(str(FOLDER / "worker.toml"))
        env |= {
            "ANTHROPIC_API_KEY": API_KEY,
            "ANTHROPIC_BASE_URL": api.url,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
            "DISABLE_AUTOUPDATER": "1",
        }
        yield env


def main() -> int:
    """Play them; the exit code is that of `nbs-fleet test`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--client", choices=tuple(SHORT), default="sim")
    parser.add_argument("--long", action="store_true", help="all that the client can do")
    given, rest = parser.parse_known_args()
    folder = Path(tempfile.mkdtemp(prefix="nf-", dir="/tmp"))
    try:
        with surrounding(given.client, folder) as env:
            names = [str(path.relative_to(ROOT)) for path in files(given.client, long=given.long)]
            argv = [sys.executable, "-I", "-m", "nbs_fleet", "test", "--driver", given.client, *rest, *names]
            return subprocess.run(argv, cwd=ROOT, env=env, check=False).returncode
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main())
