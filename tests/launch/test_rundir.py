from __future__ import annotations

import os
import stat
from pathlib import Path

import msgspec
import pytest

from nbs_fleet.errors import FleetError
from nbs_fleet.launch import rundir
from nbs_fleet.launch.rundir import known_teams, prepare, purge, remove_runtime, run_paths, state_home
from nbs_fleet.plan.paths import RunPaths


class Place:
    """A root, and the environment of its person, all below one folder."""

    def __init__(self, base: Path, root: str = "widget") -> None:
        self.root = base / root
        self.root.mkdir(parents=True)
        self.runtime = base / "rt"
        self.runtime.mkdir(mode=0o700, exist_ok=True)
        self.environ = {"HOME": str(base / "home"), "XDG_RUNTIME_DIR": str(self.runtime)}

    def paths(self, team: str = "team") -> RunPaths:
        return run_paths(str(self.root), team, self.environ)

    def prepare(self, team: str = "team") -> RunPaths:
        paths = self.paths(team)
        assert prepare(paths, str(self.root)) == ()
        return paths


@pytest.fixture
def place(short_path: Path) -> Place:
    return Place(short_path)


def modes(folder: Path) -> set[int]:
    return {stat.S_IMODE(path.stat().st_mode) for path in folder.rglob("*") if path.is_dir()}


def test_the_state_home_follows_the_xdg_rules() -> None:
    assert state_home({"HOME": "/h"}) == "/h/.local/state/nbs-fleet"
    assert state_home({"HOME": "/h", "XDG_STATE_HOME": "/s"}) == "/s/nbs-fleet"
    assert state_home({"HOME": "/h", "XDG_STATE_HOME": "relative"}) == "/h/.local/state/nbs-fleet"
    assert state_home({}).endswith("/.local/state/nbs-fleet")


def test_a_run_directory_is_named_after_its_root_and_told_apart_by_its_path() -> None:
    one = run_paths("/a/widget", "team", {"HOME": "/h"})
    assert one.run.startswith("/h/.local/state/nbs-fleet/widget-")
    assert one.run.endswith("/team")
    assert one.run != run_paths("/b/widget", "team", {"HOME": "/h"}).run
    assert one.runtime != run_paths("/a/widget", "other", {"HOME": "/h"}).runtime
    assert one == run_paths("/a/widget", "team", {"HOME": "/h"})


@pytest.mark.parametrize(
    ("root", "name"),
    [('/a/my project\'s "x"', "my-project-s-x"), ("/a/проект", "root"), ("/", "root"), ("/a/" + "x" * 200, "x" * 40)],
)
def test_any_root_gives_a_plain_name(root: str, name: str) -> None:
    run = run_paths(root, "team", {"HOME": "/h"}).run
    assert os.path.basename(os.path.dirname(run)).rpartition("-")[0] == name


def test_sockets_lie_in_the_run_directory_while_their_paths_fit() -> None:
    near = run_paths("/a/w", "team", {"HOME": "/h"})
    assert (near.socket, near.tmux) == (f"{near.run}/supervisor.sock", f"{near.run}/tmux.sock")
    far = run_paths("/a/w", "team", {"HOME": "/" + "h" * 200})
    assert (far.socket, far.tmux) == (f"{far.runtime}/supervisor.sock", f"{far.runtime}/tmux.sock")
    assert len(os.fsencode(far.socket)) <= 104


def test_bytes_are_counted_not_letters() -> None:
    assert not run_paths("/a/w", "team", {"HOME": "/" + "ü" * 30}).socket.startswith("/ü")


def test_a_runtime_directory_of_xdg_is_used_only_if_it_is_there_ours_and_short(short_path: Path) -> None:
    fallback = f"/tmp/nbs-fleet-{os.getuid()}/"
    long = short_path / ("x" * 90)
    long.mkdir()
    (short_path / "file").touch()
    for unfit in ("", "relative", str(short_path / "none"), str(short_path / "file"), str(long)):
        assert run_paths("/a/w", "team", {"HOME": "/h", "XDG_RUNTIME_DIR": unfit}).runtime.startswith(fallback)
    fit = run_paths("/a/w", "team", {"HOME": "/h", "XDG_RUNTIME_DIR": str(short_path)})
    assert fit.runtime.startswith(f"{short_path}/nbs-fleet/")


def test_everything_made_is_private(place: Place) -> None:
    before = os.umask(0o000)
    try:
        paths = place.prepare()
    finally:
        os.umask(before)
    state = Path(state_home(place.environ))
    assert modes(state) == {0o700}
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    assert modes(place.runtime) == {0o700}
    assert Path(paths.bin).is_dir()


def test_the_link_for_people_is_ignored_by_git(place: Place) -> None:
    paths = place.prepare()
    fleet = place.root / ".nbs" / "fleet"
    assert os.readlink(fleet / "team") == paths.run
    assert (fleet / ".gitignore").read_text() == "*\n"


def test_preparing_twice_changes_nothing(place: Place) -> None:
    paths = place.prepare()
    Path(paths.plan).write_text("plan")
    assert place.prepare() == paths
    assert Path(paths.plan).read_text() == "plan"


def test_a_link_that_points_elsewhere_is_put_right(place: Place) -> None:
    fleet = place.root / ".nbs" / "fleet"
    fleet.mkdir(parents=True)
    (fleet / "team").symlink_to("/elsewhere")
    paths = place.prepare()
    assert os.readlink(fleet / "team") == paths.run


def test_where_there_can_be_no_link_all_else_works_and_it_is_said(place: Place) -> None:
    (place.root / ".nbs").touch()
    (remark,) = prepare(place.paths(), str(place.root))
    assert remark.startswith(f"no link {place.root}/.nbs/fleet/team: ")
    assert [known.team for known in known_teams(place.environ)] == ["team"]


def test_a_directory_that_others_may_enter_is_refused_and_not_mended(place: Place) -> None:
    paths = place.prepare()
    for folder in (paths.run, paths.runtime, os.path.dirname(paths.run)):
        os.chmod(folder, 0o750)
        with pytest.raises(FleetError, match=f"{folder} has mode 0750, it must be 0700"):
            prepare(paths, str(place.root))
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o750
        os.chmod(folder, 0o700)
    place.prepare()


def test_a_directory_of_somebody_else_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    paths = place.prepare()
    monkeypatch.setattr(os, "getuid", lambda: 12345)
    with pytest.raises(FleetError, match=r"belongs to user \d+, not to you \(12345\)"):
        prepare(paths, str(place.root))


def test_a_link_in_the_place_of_a_run_directory_is_refused(place: Place) -> None:
    paths = place.paths()
    (place.root / "mine").mkdir(mode=0o700)
    os.makedirs(os.path.dirname(paths.run), 0o700)
    for folder in (os.path.dirname(paths.run), os.path.dirname(os.path.dirname(paths.run))):
        os.chmod(folder, 0o700)
    os.symlink(place.root / "mine", paths.run)
    with pytest.raises(FleetError, match=f"{paths.run} is a symbolic link"):
        prepare(paths, str(place.root))


@pytest.mark.parametrize("where", ["evil", "agents/evil", "agents/ana/queue"])
def test_links_inside_a_run_directory_are_refused(place: Place, where: str) -> None:
    paths = place.prepare()
    spot = Path(paths.run) / where
    spot.parent.mkdir(parents=True, exist_ok=True)
    spot.symlink_to("/tmp")
    with pytest.raises(FleetError, match=f"{spot} is a symbolic link"):
        prepare(paths, str(place.root))


def test_a_file_in_the_place_of_a_directory_is_refused(place: Place) -> None:
    paths = place.paths()
    os.makedirs(os.path.dirname(os.path.dirname(os.path.dirname(paths.run))))
    Path(os.path.dirname(os.path.dirname(paths.run))).touch()
    with pytest.raises(FleetError, match=r"can't make|is not a directory"):
        prepare(paths, str(place.root))


def test_a_shell_without_the_runtime_variable_finds_the_same_sockets_and_values(place: Place) -> None:
    paths = place.prepare()
    elsewhere = {"HOME": place.environ["HOME"]}
    assert run_paths(str(place.root), "team", elsewhere) == paths
    remove_runtime(paths)
    assert run_paths(str(place.root), "team", elsewhere) != paths


def test_a_recorded_runtime_directory_is_trusted_only_if_it_is_private_and_its_own(place: Place) -> None:
    paths = place.prepare()
    stranger = place.root / os.path.basename(paths.runtime)
    stranger.mkdir(mode=0o755)
    for text in (str(stranger), str(place.root), "relative", "", "\0"):
        (Path(paths.run) / "runtime").write_text(text)
        assert place.paths() == paths


def test_all_teams_of_a_person_are_known(short_path: Path) -> None:
    widget, other = Place(short_path), Place(short_path, "other")
    for place, team in ((widget, "b"), (widget, "a"), (other, "a")):
        place.prepare(team)
    assert [(known.team, known.root) for known in known_teams(widget.environ)] == [
        ("a", str(other.root)),
        ("a", str(widget.root)),
        ("b", str(widget.root)),
    ]
    assert known_teams({"HOME": "/nowhere"}) == []


def test_a_damaged_index_hides_only_its_own_team(place: Place) -> None:
    good, bad = place.prepare("good"), place.prepare("bad")
    for content in (b"", b"{", b"[]", b'{"team": 1}', b"\xff"):
        Path(bad.team).write_bytes(content)
        assert [known.run for known in known_teams(place.environ)] == [good.run]


def test_the_index_says_who_and_where(place: Place) -> None:
    index = msgspec.json.decode(Path(place.prepare().team).read_bytes())
    assert index == {"schema": 1, "team": "team", "root": str(place.root), "made_nbs": True}


def test_a_purge_leaves_nothing(place: Place) -> None:
    paths = place.prepare()
    Path(paths.run, "agents", "ana").mkdir()
    Path(paths.runtime, "ana.env").write_text("secret")
    purge(paths, str(place.root))
    assert list(place.root.iterdir()) == []
    assert list(place.runtime.rglob("*")) == []
    assert not os.path.exists(state_home(place.environ))
    purge(paths, str(place.root))


def test_a_purge_keeps_what_is_not_of_the_team(place: Place) -> None:
    (place.root / ".nbs").mkdir()
    one, two = place.prepare("one"), place.prepare("two")
    (place.root / "kept").mkdir()
    (Path(one.run) / "agents" / "x").symlink_to(place.root / "kept")
    purge(one, str(place.root))
    assert (place.root / "kept").is_dir()
    assert os.path.isdir(two.run)
    assert os.path.isdir(two.runtime)
    assert sorted(os.listdir(place.root / ".nbs" / "fleet")) == [".gitignore", "two"]
    purge(two, str(place.root))
    assert os.listdir(place.root / ".nbs") == []


def test_the_check_of_a_directory_says_what_is_wrong(tmp_path: Path) -> None:
    assert rundir.private_fault(str(tmp_path / "none")) == f"{tmp_path}/none: No such file or directory"
    (tmp_path / "file").touch()
    assert rundir.private_fault(str(tmp_path / "file")) == f"{tmp_path}/file is not a directory"
