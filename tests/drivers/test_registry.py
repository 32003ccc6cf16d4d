from __future__ import annotations

import subprocess
import sys
import tomllib
from importlib import metadata
from pathlib import Path

import pytest

from nbs_fleet.drivers.base import Driver
from nbs_fleet.errors import MissingError, UnknownNameError
from nbs_fleet.launch import registry
from nbs_fleet.testing.driver_suite import DriverSuite


@pytest.mark.parametrize("name", registry.names())
class TestEveryDriver(DriverSuite):
    @pytest.fixture
    def driver(self, name: str) -> Driver:
        return registry.get(name)

    def test_it_is_found_by_its_name(self, driver: Driver, name: str) -> None:
        assert driver.name == name


def test_our_own_drivers_are_what_our_package_registers() -> None:
    project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["entry-points"][registry.GROUP] == registry._OWN


def test_an_unknown_driver_is_an_error_that_lists_what_there_is() -> None:
    with pytest.raises(UnknownNameError, match="no driver named 'clod'") as caught:
        registry.get("clod")
    assert caught.value.hint is not None
    assert ", ".join(registry._OWN) in caught.value.hint
    assert caught.value.exit_code == 4


def test_a_driver_of_another_package_is_found_and_a_broken_one_named(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = {
        "mine": metadata.EntryPoint("mine", "nbs_fleet.drivers.sim:Sim", registry.GROUP),
        "broken": metadata.EntryPoint("broken", "no_such_package:Driver", registry.GROUP),
    }
    monkeypatch.setattr(registry, "_foreign", lambda: entries)
    registry.get.cache_clear()
    assert registry.get("mine").program == "nbs-fleet"
    assert registry.names() == tuple(sorted({"broken", "mine", *registry._OWN}))
    with pytest.raises(MissingError, match=r"driver 'broken' \(no_such_package:Driver\) can't be loaded"):
        registry.get("broken")
    registry.get.cache_clear()


def test_a_driver_of_ours_is_found_without_a_scan_of_the_installed_packages() -> None:
    code = (
        "import sys; from nbs_fleet.launch.registry import get; get('sim'); print('importlib.metadata' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "False"
