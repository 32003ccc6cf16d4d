"""What the tests of the command line share."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A person with no teams, in a folder of their own."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name in ("NBS_FLEET_RUN", "NBS_HANDLE", "TMUX", "TMUX_PANE"):
        monkeypatch.delenv(name, raising=False)
    return folder
