"""What every test gets: a private surrounding, the client it is for, and a fleet that may leave nothing behind."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import HealthCheck, settings

from tests.clients.install import cache
from tests.support import clients, private
from tests.support.fleet import Fleet

CLIENTS = ("sim", "claudeless", "claude")
IN_CI = os.environ.get("CI") == "true"
# Run by `nohup`, or in the background of a script, signals are ignored here, and so they would be in all that tests start.
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)
signal.signal(signal.SIGINT, signal.default_int_handler)
# How long a case takes on a shared machine says nothing of the case. In CI the same cases are tried each time: new ones
# are for whoever works on the code, who can do something about what they find.
settings.register_profile("here", deadline=None, derandomize=IN_CI, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("here")
os.environ["NBS_FLEET_CLIENTS"] = str(cache())  # found now: HOME is another one later
REPORT = pytest.StashKey[dict[str, pytest.TestReport]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--client NAME`: only the end-to-end tests of that client."""
    parser.addoption("--client", choices=CLIENTS, help="run only tests of this client")


def pytest_configure(config: pytest.Config) -> None:
    """Declare the marker that says which clients a test is for."""
    config.addinivalue_line(
        "markers",
        "clients(*names, long=()): the clients this end-to-end test runs against (default: all), and those among them"
        " against which it runs in `make test-all` only",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """One test per client, each marked as what it needs."""
    if "client_name" not in metafunc.fixturenames:
        return
    marker = metafunc.definition.get_closest_marker("clients")
    names = (marker.args if marker else ()) or CLIENTS
    seldom = marker.kwargs.get("long", ()) if marker else ()
    # Tests that share a team need the client's name for as long as the team lives.
    scope: Literal["module", "function"] = "module" if "team" in metafunc.fixturenames else "function"
    params = [pytest.param(n, marks=_marks(n, seldom), id=n) for n in names]
    metafunc.parametrize("client_name", params, scope=scope)


def _marks(name: str, seldom: Collection[str]) -> list[pytest.MarkDecorator]:
    """What a test against this client is."""
    real = [] if name == "sim" else [pytest.mark.real]
    return [pytest.mark.e2e, *real, *([pytest.mark.long] if name in seldom else [])]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the tests of the client that was asked for."""
    wanted = config.getoption("--client")
    if wanted is None:
        return
    kept = [i for i in items if getattr(i, "callspec", None) and i.callspec.params.get("client_name") == wanted]  # type: ignore[attr-defined]
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    items[:] = kept


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo[None]) -> Any:
    """Keep each report for the fixtures; with CI=true a skipped test is a failed one."""
    report = yield
    if IN_CI and report.skipped and not hasattr(report, "wasxfail"):
        report.outcome = "failed"
        report.longrepr = f"skipped, which counts as a failure with CI=true: {report.longrepr}"
    item.stash.setdefault(REPORT, {})[report.when] = report
    return report


@pytest.fixture(scope="session", autouse=True)
def _private_surrounding(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test sees this person's home, state, tmux or agents."""
    runtime = private.short_folder()
    with pytest.MonkeyPatch.context() as patch:
        for name, value in private.surrounding(tmp_path_factory.mktemp("surrounding"), runtime).items():
            patch.setenv(name, value)
        for name in ("TMUX", "TMUX_PANE", "TMUX_TMPDIR", "CLAUDECODE", "CLAUDE_CONFIG_DIR", "ANTHROPIC_API_KEY"):
            patch.delenv(name, raising=False)
        for name in [n for n in os.environ if n.startswith(("NBS_", "CLAUDE_CODE_")) and n != "NBS_FLEET_CLIENTS"]:
            patch.delenv(name)
        yield
    shutil.rmtree(runtime, ignore_errors=True)


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A private folder with a short path, for sockets."""
    folder = private.short_folder()
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """The project directory of the fleet; a test that wants another name parametrises it (indirect)."""
    return tmp_path / str(getattr(request, "param", "project"))


@pytest.fixture
def client(client_name: str, tmp_path: Path, root: Path) -> Iterator[clients.Client]:
    """The client under test, with the project trusted beforehand."""
    clients.need(client_name)
    with clients.running(client_name, tmp_path / "client", trusted=(str(root.resolve()),)) as made:
        yield made


@pytest.fixture
def fleet(
    request: pytest.FixtureRequest, tmp_path: Path, short_path: Path, client: clients.Client, root: Path
) -> Iterator[Fleet]:
    """A team on a root of its own. At the end it is taken down, and nothing of it may be left."""
    made = Fleet(tmp_path, client, private.surrounding(tmp_path, short_path), root=root)
    yield made
    reports = request.node.stash.get(REPORT, {})
    failed = any(report.failed for report in reports.values())
    try:
        if failed:
            print(made.artefacts())
            return
        if made.everything():
            ended = made.down()
            assert ended.code == 0, str(ended)
        left = made.leftovers()
        if left:
            print(made.artefacts())
        assert not left, "left behind:\n" + "\n".join(left)
    finally:
        made.end()
