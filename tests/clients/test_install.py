"""Installing clients: whole or not at all, once, and honest about what can't be had."""

from __future__ import annotations

import dataclasses
import threading
from pathlib import Path

import pytest

from tests.clients.install import CLAUDE, Client, InstallError, install, obtain

VERSION = "1.2.3"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    monkeypatch.setenv("NBS_FLEET_CLIENTS", str(tmp_path / "clients"))
    return tmp_path / "clients"


def program(folder: Path, says: str) -> None:
    """Put a program there that prints this."""
    path = folder / "bin" / "thing"
    path.parent.mkdir()
    path.write_text(f"#!/bin/sh\necho {says}\n", encoding="utf-8")
    path.chmod(0o755)


def good(folder: Path, version: str) -> None:
    program(folder, f"thing {version}")


def wrong(folder: Path, version: str) -> None:
    program(folder, "thing 0.0.1")


def failing(folder: Path, version: str) -> None:
    program(folder, version)
    raise InstallError("no network")


THING = Client("thing", VERSION, "sh", "bin/thing", good)


def test_what_is_installed_lies_in_a_folder_of_its_version(cache: Path) -> None:
    assert install(THING)
    assert THING.executable == cache / "thing-1.2.3" / "bin" / "thing"
    assert THING.present


def test_what_is_there_is_not_built_again(cache: Path) -> None:
    install(THING)
    assert not install(dataclasses.replace(THING, build=failing))


def test_a_build_that_fails_leaves_nothing(cache: Path) -> None:
    with pytest.raises(InstallError, match="no network"):
        install(dataclasses.replace(THING, build=failing))
    assert [path.name for path in cache.iterdir()] == [".thing.lock"]


def test_another_version_than_the_pinned_one_is_refused(cache: Path) -> None:
    with pytest.raises(InstallError, match=r"wanted 1\.2\.3"):
        install(dataclasses.replace(THING, build=wrong))
    assert not THING.present


def test_two_at_once_build_once(cache: Path) -> None:
    built: list[str] = []

    def count(folder: Path, version: str) -> None:
        built.append(version)
        good(folder, version)

    client = dataclasses.replace(THING, build=count)
    threads = [threading.Thread(target=install, args=(client,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert built == [VERSION]


def test_a_missing_installer_is_said_in_one_line() -> None:
    there, line = obtain(dataclasses.replace(THING, tool="no-such-tool"))
    assert not there
    assert line == "thing 1.2.3: skipped, there is no no-such-tool on this machine"


def test_the_real_ones_are_keyed_by_their_pinned_versions(cache: Path) -> None:
    assert CLAUDE.folder == cache / "claude-code-2.1.197"
