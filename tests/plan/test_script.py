"""launch.sh is really run, under dash and bash, with values that would break a careless script."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nbs_fleet.drivers.base import PROMPT, Launch
from nbs_fleet.launch.environment import values_file
from nbs_fleet.plan.script import GONE, launch_script, quote

SHELLS = [shell for shell in ("dash", "bash") if shutil.which(shell)]
NASTY = [
    "",
    " ",
    "--flag=x",
    "-n",
    "it's",
    "'",
    "''",
    '"',
    "$HOME `id` $(id) ${X}",
    "\\",
    "\\'",
    "a\nb\n",
    "\t",
    "ünïcode 🙂 漢字",
    "*",
    "~",
    "a;b&c|d>e",
    "\x01\x7f",
    "!x",
    "#x",
    "caf\udce9",
]

REPORT = """\
#!{python} -IS
import json, os, sys
with open({out!r}, "w", encoding="utf-8", errors="surrogateescape") as file:
    json.dump({{"argv": sys.argv, "env": dict(os.environ), "cwd": os.getcwd(), "umask": os.umask(0)}}, file)
"""


class Stage:
    """A folder with a program that writes down what it was given, and a launch.sh that starts it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.out = path / "out.json"
        self.program = self.executable("bin/client", REPORT.format(python=sys.executable, out=str(self.out)))
        self.values: dict[str, str] = {"PATH": f"{path / 'bin'}:{os.environ['PATH']}", "HOME": str(path)}
        (path / "work").mkdir()
        (path / "run" / "bin").mkdir(parents=True)

    def executable(self, name: str, text: str, mode: int = 0o755) -> Path:
        file = self.path / name
        file.parent.mkdir(exist_ok=True, parents=True)
        file.write_text(text)
        file.chmod(mode)
        return file

    def launch(
        self,
        launch: Launch,
        *,
        prompt: str | None = None,
        directory: str | None = None,
        shell: str = "sh",
        environment: dict[str, str] | None = None,
        values: bool = True,
        umask: int = 0o022,
    ) -> subprocess.CompletedProcess[str]:
        """Write all files, run launch.sh by `shell`."""
        if values:
            (self.path / "values.env").write_bytes(values_file(self.values))
        if prompt is not None:
            (self.path / "prompt.md").write_bytes(prompt.encode())
        text = launch_script(
            handle="ana",
            team="demo",
            root=str(self.path),
            launch=launch,
            values_path=str(self.path / "values.env"),
            prompt_path=None if prompt is None else str(self.path / "prompt.md"),
            dir=directory or str(self.path / "work"),
            run=str(self.path / "run"),
            bin=str(self.path / "run" / "bin"),
            umask=umask,
        )
        script = self.path / "launch.sh"
        # Both inner shells are the one under test: the re-exec names /bin/sh.
        text = text.replace("/bin/sh", shutil.which(shell) or shell)
        script.write_bytes(os.fsencode(text))
        script.chmod(0o700)
        given = {"PATH": os.environ["PATH"], "TERM": "tmux-256color", "TMUX": "/s,1,0", "TMUX_PANE": "%7"}
        return subprocess.run(
            [str(script)],
            env=given | (environment or {}),
            capture_output=True,
            text=True,
            timeout=20,
            check=False,
            cwd="/",
        )

    def seen(self) -> dict[str, object]:
        found: dict[str, object] = json.loads(self.out.read_text(encoding="utf-8", errors="surrogateescape"))
        self.out.unlink()
        return found


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def test_arguments_and_variables_arrive_as_they_are(stage: Stage, shell: str) -> None:
    stage.values |= {f"V{i}": text for i, text in enumerate(NASTY)}
    given = {f"L{i}": text for i, text in enumerate(NASTY)}
    done = stage.launch(Launch(("client", *NASTY), env=given), shell=shell)
    assert (done.returncode, done.stderr) == (0, "")
    seen = stage.seen()
    assert seen["argv"] == [str(stage.program), *NASTY]
    env = seen["env"]
    assert isinstance(env, dict)
    assert {name: env.get(name) for name in given} == given
    assert [env.get(f"V{i}") for i in range(len(NASTY))] == NASTY


def test_the_agent_gets_our_names_and_nothing_of_tmux(stage: Stage, shell: str) -> None:
    stage.values |= {"NBS_HANDLE": "wrong", "KEPT": "yes", "DROPPED": "x"}
    launch = Launch(("client",), env={"ADDED": "1", "KEPT": "no"}, unset=("DROPPED", "NEVER_THERE"))
    assert stage.launch(launch, shell=shell, environment={"CLAUDECODE": "1", "LEAK": "1"}).returncode == 0
    env = stage.seen()["env"]
    assert isinstance(env, dict)
    assert env.pop("PATH") == f"{stage.path / 'run' / 'bin'}:{stage.values['PATH']}"
    for name in ("SHLVL", "_", "LC_CTYPE"):  # bash's own, and the reporting Python's
        env.pop(name, None)
    assert env == {
        "HOME": str(stage.path),
        "KEPT": "no",
        "ADDED": "1",
        "TERM": "tmux-256color",
        "PWD": str(stage.path / "work"),
        "NBS_HANDLE": "ana",
        "NBS_ROOT": str(stage.path),
        "NBS_TEAM": "demo",
        "NBS_FLEET_RUN": str(stage.path / "run"),
        "NBS_PANE": "%7",
    }


@pytest.mark.parametrize(
    "value", [*NASTY, "a\nexport b-c\nexport \nexport 1=\nexport HOME\nexport IFS=x\n*\n'\n\"\n-f\n"]
)
def test_nothing_of_tmux_stays_whatever_its_values_hold(stage: Stage, shell: str, value: str) -> None:
    environment = {"LEAK": value, "LEAK2": value, "IFS": value, "HOME": value, "nbs_all": value, "nbs_name": value}
    done = stage.launch(Launch(("client",)), shell=shell, environment=environment)
    assert (done.returncode, done.stderr) == (0, "")
    env = stage.seen()["env"]
    assert isinstance(env, dict)
    ours = {"HOME", "PATH", "PWD", "TERM", "NBS_HANDLE", "NBS_ROOT", "NBS_TEAM", "NBS_FLEET_RUN", "NBS_PANE"}
    assert set(env) - {"SHLVL", "_", "LC_CTYPE"} == ours
    assert env["HOME"] == str(stage.path)


def test_what_is_no_variable_of_a_shell_stays_out_too(stage: Stage, shell: str) -> None:
    odd = {"BASH_FUNC_leak%%": "() { echo leak; }", "odd-name": "x", "1": "x", "SHELLOPTS": "braceexpand:hashall"}
    done = stage.launch(Launch(("client",)), shell=shell, environment=odd)
    assert (done.returncode, done.stderr) == (0, "")
    env = stage.seen()["env"]
    assert isinstance(env, dict)
    assert not set(env) & set(odd)


def test_the_agent_works_in_its_folder_with_the_given_umask(stage: Stage, shell: str) -> None:
    folder = stage.path / "it's a $folder\n🙂"
    folder.mkdir()
    assert stage.launch(Launch(("client",)), directory=str(folder), shell=shell, umask=0o027).returncode == 0
    seen = stage.seen()
    assert (seen["cwd"], seen["umask"]) == (str(folder), 0o027)


def hundred_kilobytes() -> str:
    piece = "quotes ' \" `id` $HOME ${X} \\ \\n %s 🙂 漢字 é\u0301 \u0081\u0088 \r\n\t'\\''\n"
    text = piece * (100_000 // len(piece.encode()))
    return text + "x" * (100_000 - len(text.encode()) - 4) + "\n\n\n\n"


@pytest.mark.parametrize("locale", ["C", "C.UTF-8", "ja_JP.SJIS"])
def test_a_prompt_of_100_kilobytes_arrives_byte_for_byte(stage: Stage, shell: str, locale: str) -> None:
    stage.values["LC_ALL"] = locale
    prompt = hundred_kilobytes()
    assert len(prompt.encode()) == 100_000
    assert stage.launch(Launch(("client", "--", PROMPT)), prompt=prompt, shell=shell).returncode == 0
    assert stage.seen()["argv"] == [str(stage.program), "--", prompt]


@pytest.mark.parametrize("prompt", ["", "\n", "\n\n", "x", "x\n", "-x", "$(id)", "a\r\nb\r", "é", "x" * 9 + "\n" * 9])
def test_a_small_prompt_arrives_byte_for_byte(stage: Stage, shell: str, prompt: str) -> None:
    assert stage.launch(Launch(("client", f"--prompt={PROMPT}!")), prompt=prompt, shell=shell).returncode == 0
    assert stage.seen()["argv"] == [str(stage.program), f"--prompt={prompt}!"]


words = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=40)


@given(words=st.lists(words, max_size=6), prompt=words, value=words)
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_arrives_as_it_is(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], prompt: str, value: str
) -> None:
    stage = Stage(tmp_path_factory.mktemp("any"))
    stage.values["VALUE"] = value
    assert stage.launch(Launch(("client", *words, PROMPT)), prompt=prompt).returncode == 0
    seen = stage.seen()
    env = seen["env"]
    assert isinstance(env, dict)
    assert (seen["argv"], env["VALUE"]) == ([str(stage.program), *words, prompt], value)


def test_a_missing_program_is_named_and_ends_127(stage: Stage, shell: str) -> None:
    done = stage.launch(Launch(("no such; client",)), shell=shell)
    assert (done.returncode, done.stderr) == (127, "nbs-fleet: program not found: no such; client\n")
    done = stage.launch(Launch(("/no/such/client",)), shell=shell)
    assert (done.returncode, done.stderr) == (127, "nbs-fleet: program not found: /no/such/client\n")


def test_a_shell_builtin_is_no_program(stage: Stage, shell: str) -> None:
    stage.values["PATH"] = str(stage.path / "bin")
    done = stage.launch(Launch(("export",)), shell=shell)
    assert (done.returncode, done.stderr) == (127, "nbs-fleet: program not found: export\n")


def test_a_file_that_is_not_executable_ends_126(stage: Stage, shell: str) -> None:
    plain = stage.executable("bin/plain", "x", mode=0o644)
    for name in ("plain", str(plain), str(stage.path)):
        done = stage.launch(Launch((name,)), shell=shell)
        assert (done.returncode, done.stderr) == (126, f"nbs-fleet: not executable: {name}\n")


def test_a_program_later_on_the_path_wins_over_a_plain_file(stage: Stage, shell: str) -> None:
    stage.executable("first/client", "x", mode=0o644)
    (stage.path / "second" / "client").mkdir(parents=True)
    stage.values["PATH"] = f"{stage.path / 'first'}:{stage.path / 'second'}:{stage.values['PATH']}"
    assert stage.launch(Launch(("client",)), shell=shell).returncode == 0


def test_what_is_gone_is_named_and_the_client_is_not_started(stage: Stage, shell: str) -> None:
    done = stage.launch(Launch(("client",)), shell=shell, values=False)
    message = "nbs-fleet: environment values are gone; run nbs-fleet up again\n"
    assert (done.returncode, done.stderr) == (GONE, message)

    folder = str(stage.path / "it's gone")
    done = stage.launch(Launch(("client",)), shell=shell, directory=folder)
    assert (done.returncode, done.stderr) == (GONE, f"nbs-fleet: working directory is gone: {folder}\n")

    stage.launch(Launch(("client", PROMPT)), shell=shell, prompt="x")
    stage.seen()
    (stage.path / "prompt.md").unlink()
    done = subprocess.run([str(stage.path / "launch.sh")], capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stderr) == (GONE, "nbs-fleet: prompt.md is gone; run nbs-fleet up again\n")
    assert not stage.out.exists()


def test_values_that_a_shell_keeps_for_itself_do_no_harm(stage: Stage, shell: str) -> None:
    stage.values |= {"IFS": "/", "UID": "7", "PPID": "1", "BASH_FUNC_x%%": "() { :; }", "OPTIND": "3", "CDPATH": "/"}
    done = stage.launch(Launch(("client", PROMPT)), prompt="p", shell=shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert stage.seen()["argv"] == [str(stage.program), "p"]


def test_the_client_is_the_process_that_tmux_started(stage: Stage) -> None:
    stage.executable("bin/whoami", '#!/bin/sh\necho "$$"\n')
    stage.launch(Launch(("whoami",)))
    with subprocess.Popen([str(stage.path / "launch.sh")], stdout=subprocess.PIPE, text=True) as process:
        out, _ = process.communicate(timeout=20)
    assert out == f"{process.pid}\n"


def test_no_value_of_the_environment_stands_in_the_script(stage: Stage) -> None:
    stage.values["API_KEY"] = "s3cret-value"
    stage.launch(Launch(("client",)))
    assert "s3cret-value" not in (stage.path / "launch.sh").read_text()


@pytest.mark.parametrize(
    "launch",
    [
        Launch(()),
        Launch(("",)),
        Launch(("client", "a\0b")),
        Launch(("client",), env={"A-B": "1"}),
        Launch(("client",), unset=("A B",)),
        Launch(("client", PROMPT)),
    ],
)
def test_what_no_script_can_say_is_refused(launch: Launch) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        launch_script(
            handle="a",
            team="t",
            root="/",
            launch=launch,
            values_path="/v",
            prompt_path=None,
            dir="/",
            run="/r",
            bin="/b",
        )


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_valid_and_readable(shell: str) -> None:
    text = launch_script(
        handle="ana",
        team="review",
        root="/a dir",
        launch=Launch(("claude", "--model", "opus", PROMPT), env={"A": "1"}, unset=("B",)),
        values_path="/values",
        prompt_path="/prompt.md",
        dir="/work dir",
        run="/run",
        bin="/run/bin",
    )
    assert text.startswith("#!/bin/sh\n# Starts agent ana of team review.")
    assert "    '--model' \\\n    'opus' \\\n    \"$nbs_prompt\"\n" in text
    assert max(len(line) for line in text.splitlines()) <= 120
    subprocess.run([shell, "-n"], input=text, text=True, check=True, timeout=20)


def test_a_quoted_word_is_one_word() -> None:
    out = subprocess.run(
        ["sh", "-c", "printf '%s\\0' " + " ".join(quote(w) for w in NASTY[:-1])],
        capture_output=True,
        check=True,
        timeout=20,
    ).stdout
    assert out.decode().split("\0")[:-1] == NASTY[:-1]
