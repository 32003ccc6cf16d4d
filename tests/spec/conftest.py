"""What the tests of the team file share: a root of their own, and packaged files that do not change."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from nbs_fleet.spec.load import load_team
from nbs_fleet.spec.loaded import Loaded

DRIVERS = ("claude", "claudeless", "sim")
PACKAGED = {"templates": ("README.md", "pythia.md.j2", "tester.md.j2"), "templates/skills": ("nbs-notify", "nbs-poll")}

Load = Callable[..., Loaded]


def _packaged(folder: str, *, ends: tuple[str, ...] = ("",)) -> tuple[str, ...]:
    return tuple(name for name in PACKAGED.get(folder, ()) if name.endswith(ends))


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project directory that is also the working directory."""
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    monkeypatch.chdir(folder)
    monkeypatch.setattr("nbs_fleet.spec.places.packaged", _packaged)
    return folder.resolve()


@pytest.fixture
def load(root: Path) -> Load:
    """Writes `team.yaml` into the root and loads it; keywords go to load_team."""

    def run(text: str | bytes, environ: Mapping[str, str] | None = None, *, driver: str | None = None) -> Loaded:
        data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
        (root / "team.yaml").write_bytes(data)
        return load_team("team.yaml", environ or {}, driver=driver, known_drivers=DRIVERS)

    return run
