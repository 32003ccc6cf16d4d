from __future__ import annotations

import subprocess
import sys

from nbs_fleet.launch.memory import hand_back

UNNEEDED = (
    *("ssl", "_hashlib", "typing_extensions", "tenacity", "psutil", "libtmux", "jinja2", "pydantic", "typer"),
    *("difflib", "zoneinfo", "urllib.parse", "importlib.resources", "watchdog"),
    *("inspect", "ast", "dis", "locale", "tokenize", "textwrap", "shutil", "lzma", "tempfile", "random", "secrets"),
    *("asyncio.sslproto", "msgspec.inspect"),
)
LOADED = "print(*(name for name, module in sys.modules.items() if type(module).__name__ != '_Later'))"


def run(code: str) -> str:
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=30)
    assert not done.stderr
    return done.stdout


def test_a_supervisor_begins_without_what_an_idle_team_never_needs() -> None:
    loaded = run(f"import nbs_fleet.supervisor.__main__, nbs_fleet.launch.registry, sys; {LOADED}").split()
    assert not set(UNNEEDED) & set(loaded)


def test_what_signals_and_notices_of_files_are_heard_by_needs_no_more() -> None:
    begin = """
import asyncio, signal
from nbs_fleet.launch.watch import Watcher

async def main():
    watcher = Watcher()
    watcher.add("/", print)
    watcher.close()

asyncio.run(main())
"""
    loaded = run(f"import nbs_fleet.supervisor.__main__, sys\n{begin}\n{LOADED}").split()
    assert not {"inspect", "locale", "tempfile", "shutil"} & set(loaded)


def test_what_was_spared_can_be_had_later() -> None:
    later = "import ssl, _hashlib, urllib.request; print(ssl.create_default_context(), urllib.request.HTTPSHandler)"
    assert "SSLContext" in run(f"import nbs_fleet.supervisor.__main__\n{later}")


def test_what_was_put_off_is_read_when_it_is_asked_for() -> None:
    later = """
import inspect, shutil, asyncio, msgspec
print(inspect.signature(lambda one: one), shutil.which("sh"), asyncio.sslproto.SSLProtocol, type(inspect).__name__)
print(msgspec.inspect.type_info(int), msgspec.json.schema(int))
"""
    said = run(f"import nbs_fleet.supervisor.__main__\n{later}")
    assert said == run(later)
    assert "(one)" in said


def test_threads_that_ask_at_once_get_the_whole_module() -> None:
    later = """
import inspect, sys, threading
say = sys.stdout.write
asked = [threading.Thread(target=lambda: say(f"{inspect.ismethod(1)} {inspect.iscoroutine(1)}\\n")) for _ in range(8)]
for one in asked:
    one.start()
for one in asked:
    one.join()
"""
    assert run(f"import nbs_fleet.launch.lean\n{later}").splitlines() == ["False False"] * 8


def test_digests_are_those_of_openssl() -> None:
    said = "import hashlib; print(hashlib.sha256(b'x').hexdigest(), hashlib.blake2b(b'x').hexdigest())"
    assert run(f"import nbs_fleet.launch.lean\n{said}") == run(said)


def test_memory_can_be_handed_back_anywhere() -> None:
    hand_back()
