"""The tutorial's driver is a driver: its code runs, and passes what it says it passes."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from nbs_fleet.drivers.base import Driver, Screen
from nbs_fleet.testing.driver_suite import DriverSuite, facts

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "write-a-driver.md"


def made() -> type[Driver]:
    """The class that the page's code defines, all of its Python together."""
    names: dict[str, type[Driver]] = {}
    code = "\n".join(re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL))
    exec(compile(code, str(PAGE), "exec"), names)
    assert issubclass(names["TestEchoAgent"], DriverSuite)
    return names["EchoAgent"]


class TestTheTutorialsDriver(DriverSuite):
    @pytest.fixture
    def driver(self) -> Driver:
        return made()()

    def test_it_starts_its_client_as_the_page_says(self, driver: Driver) -> None:
        given = facts(driver, model="m", permission_mode="bypassPermissions", has_prompt=True)
        argv = driver.launch(given).argv
        settings = "/state/review/agents/bo-1/settings.json"
        assert argv == (
            *("echo-agent", "--session", given.session_id, "--model", "m", "--yes"),
            *("--settings", settings, "\0prompt"),
        )
        assert driver.settings(given)["hooks"]["stop"][0]["hooks"][0]["timeout"] == 10_000

    @pytest.mark.parametrize(("row", "state"), [("working...", "busy"), ("> ", "idle"), ("Trust?", "unknown")])
    def test_it_reads_its_screen_as_the_page_says(self, driver: Driver, row: str, state: str) -> None:
        assert driver.read_screen(Screen(("welcome", row, ""), 80, 3)).state == state
