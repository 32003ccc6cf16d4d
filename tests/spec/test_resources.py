"""The packaged folders are found, and what is missing is said."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from nbs_fleet import resources
from nbs_fleet.errors import MissingError


def test_the_folders_of_a_checkout_or_wheel_are_found() -> None:
    assert os.path.isdir(resources.data_dir("templates"))
    assert os.path.isdir(resources.data_dir("teams"))


def test_the_folders_in_the_wheel_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "pkg" / "_data" / "teams").mkdir(parents=True)
    (tmp_path / "teams").mkdir()
    monkeypatch.setattr(resources, "_HERE", str(tmp_path / "pkg"))
    assert resources.data_dir("teams") == str(tmp_path / "pkg" / "_data" / "teams")


def test_a_folder_that_is_missing_is_an_error_with_advice() -> None:
    with pytest.raises(MissingError) as caught:
        resources.data_dir("no-such-folder")
    assert caught.value.hint
    assert resources.packaged("no-such-folder") == ()
