"""Notifications leave by program and webhook with what they are about; one that fails says so and stops nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from nbs_fleet.attention.queue import Item, Need
from nbs_fleet.launch.environment import write_values
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.spec.team import Notification
from nbs_fleet.supervisor import notifier
from nbs_fleet.supervisor.notifier import Notifier, desktop
from tests.support.waiting import eventually_async

HOSTILE = 'rm -rf $(echo /) `id` "; $HOME \x1b[31m'


class Attended(Tmux):
    """A server that somebody, or nobody, is attached to."""

    def __init__(self, *clients: str) -> None:
        super().__init__("/nowhere")
        self.people = clients

    def clients(self) -> tuple[str, ...]:
        return self.people


class Story:
    """What was told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, what: str, **more: Any) -> None:
        self.told.append((what, more))

    def of(self, what: str) -> list[dict[str, Any]]:
        return [more for said, more in self.told if said == what]


def item(title: str = "Bash: ls", number: int = 1) -> Item:
    return Item(f"a{number}", "ana", Need("permission", 1.0, title), 1.0, 1.0)


def script(path: Path, text: str) -> tuple[str, ...]:
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return (str(path),)


async def test_a_program_gets_the_items_on_stdin_and_nothing_of_them_as_code(tmp_path: Path) -> None:
    story, got = Story(), tmp_path / "got"
    rule = Notification(
        ("attention",), "command", command=script(tmp_path / "n", f"cat >{got}.new; mv {got}.new {got}")
    )
    one = Notifier(Attended(), "crew", tell=story)
    one.open({"": (rule,)})
    one.look((item(HOSTILE),))
    await eventually_async(lambda: story.of("notified"))
    told = json.loads(got.read_text(encoding="utf-8"))
    assert (told["schema"], told["team"], told["urgent"]) == (1, "crew", True)
    assert told["items"][0]["title"] == HOSTILE
    assert "\x1b" not in told["text"]
    assert told["title"] == "crew: ana: permission"
    await one.close()


async def test_one_that_fails_is_told_and_the_next_one_goes_out(tmp_path: Path) -> None:
    story = Story()
    bad = Notification(("attention",), "command", command=script(tmp_path / "bad", "echo no luck >&2; exit 3"))
    gone = Notification(("attention",), "command", command=(str(tmp_path / "missing"),))
    good = Notification(("attention",), "command", command=script(tmp_path / "good", "cat >/dev/null"))
    one = Notifier(Attended("/dev/pts/1"), "crew", tell=story)
    one.open({"": (bad, gone, good)})
    one.look((item(),))
    await eventually_async(lambda: len(story.told) == 3)
    assert [more["urgent"] for more in story.of("notified")] == [False]
    errors = sorted(more["error"] for more in story.of("notification failed"))
    assert any("no luck" in error for error in errors)
    assert any("No such file" in error for error in errors)
    await one.close()


async def test_one_that_hangs_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notifier, "CALL_SECONDS", 0.2)
    story = Story()
    rule = Notification(("attention",), "command", command=script(tmp_path / "n", "exec sleep 60"))
    one = Notifier(Attended(), "crew", tell=story)
    one.open({"": (rule,)})
    one.look((item(),))
    await eventually_async(lambda: story.of("notification failed"))
    assert "took over" in story.of("notification failed")[0]["error"]
    await one.close()


@pytest.fixture
def hook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A webhook on loopback that keeps what it gets; `/broken` refuses."""
    got: list[dict[str, Any]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            if "broken" in self.path:
                self.send_error(500, "token=geheim")
                return
            got.append(json.loads(body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", got
    server.shutdown()
    server.server_close()
    thread.join(10)


async def test_a_webhook_gets_json_and_its_address_is_told_to_nobody(
    hook: tuple[str, list[dict[str, Any]]], tmp_path: Path
) -> None:
    url, got = hook
    story = Story()
    write_values(str(tmp_path / "hooks"), {"HOOK_1": f"{url}/x?token=geheim"})
    good = Notification(("attention",), "webhook", url="HOOK_1")
    broken = Notification(("attention",), "webhook", url=f"{url}/broken?token=geheim")
    lost = Notification(("attention",), "webhook", url="HOOK_2")
    one = Notifier(Attended(), "crew", tell=story, addresses=str(tmp_path / "hooks"))
    one.open({"": (good, broken, lost)})
    one.look((item(),))
    await eventually_async(lambda: len(story.told) == 3)
    assert [told["items"][0]["id"] for told in got] == ["a1"]
    failed = " ".join(told["error"] for told in story.of("notification failed"))
    assert "answered 500" in failed
    assert "not known any more" in failed
    assert "geheim" not in repr(story.told)
    await one.close()


async def test_without_rules_nobody_is_asked_who_is_attached() -> None:
    class Deaf(Tmux):
        def clients(self) -> tuple[str, ...]:
            raise AssertionError("it was asked")

    one = Notifier(Deaf("/nowhere"), "crew", tell=Story())
    one.open({"": ()})
    one.look((item(),))
    await one.close()


def test_the_words_of_a_desktop_notification_are_arguments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shutil.which", lambda name: f"/usr/bin/{name}")
    assert desktop("-x", "text", urgent=True)[-3:] == ["--", "-x", "text"]
    monkeypatch.setattr("shutil.which", lambda name: None)
    monkeypatch.setattr("sys.platform", "darwin")
    assert desktop('a"b', HOSTILE, urgent=False)[-2:] == ['a"b', HOSTILE]
    monkeypatch.setattr("sys.platform", "linux")
    with pytest.raises(FileNotFoundError, match="notify-send"):
        desktop("a", "b", urgent=False)
