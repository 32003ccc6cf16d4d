from __future__ import annotations

import subprocess
import sys

from nbs_fleet.launch.memory import hand_back

UNNEEDED = (
    *("ssl", "_hashlib", "typing_extensions", "tenacity", "psutil", "libtmux", "jinja2", "pydantic", "typer"),
    *("shutil", "tempfile", "difflib", "zoneinfo", "urllib.parse", "importlib.resources", "watchdog"),
)


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert not done.stderr
    return done.stdout


def test_a_supervisor_begins_without_what_an_idle_team_never_needs() -> None:
    loaded = run("import nbs_fleet.supervisor.__main__, sys; print(*sys.modules)").split()
    assert not set(UNNEEDED) & set(loaded)


def test_what_was_spared_can_be_had_later() -> None:
    later = "import ssl, _hashlib, urllib.request; print(ssl.create_default_context(), urllib.request.HTTPSHandler)"
    assert "SSLContext" in run(f"import nbs_fleet.supervisor.__main__\n{later}")


def test_digests_are_those_of_openssl() -> None:
    said = "import hashlib; print(hashlib.sha256(b'x').hexdigest(), hashlib.blake2b(b'x').hexdigest())"
    assert run(f"import nbs_fleet.launch.lean\n{said}") == run(said)


def test_memory_can_be_handed_back_anywhere() -> None:
    hand_back()
