from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from nbs_fleet.errors import MissingError, TmuxError
from nbs_fleet.launch import processes
from nbs_fleet.launch.control import Control
from nbs_fleet.launch.tmux_text import line
from tests.support.servers import Server
from tests.support.waiting import eventually, eventually_async

pytestmark = pytest.mark.tmux

RECEIVER = """
printf '\\033[?2004h'
stty raw -echo
echo ready
exec cat > "$0.got"
"""
"""Says that it wants pastes in brackets, and keeps every byte that it gets."""
LINES = "stty -echo\necho ready\nexec cat\n"


@pytest.fixture
def server(short_path: Path) -> Iterator[Server]:
    made = Server(short_path)
    made.start()
    yield made
    pid = made.tmux.server_pid()
    if pid:
        os.kill(pid, signal.SIGCONT)
    made.tmux.kill_server()


@pytest.fixture
async def control(server: Server) -> AsyncIterator[Control]:
    client = await Control().connect(server.tmux.socket, "team")
    yield client
    await client.close()


async def ready(server: Server, text: str, handle: str = "ana") -> str:
    """The pane of a receiver that is there; it gets what is typed."""
    pane = server.up([handle], text)[handle].id
    await eventually_async(lambda: "ready" in server.tmux.capture(pane)[0])
    return pane


def got(server: Server, handle: str = "ana") -> bytes:
    return (server.folder / f"{handle}.sh.got").read_bytes()


def clients(server: Server) -> list[int]:
    """The pids of the server's clients."""
    told = server.tmux.run("list-clients", "-F", "#{client_pid}")
    return [int(text) for text in told.split()]


# Calls


async def test_many_commands_in_one_write_are_answered_each_in_its_place(control: Control) -> None:
    replies = await control.run(*(f"display-message -p {number}" for number in range(500)))
    assert [reply.lines for reply in replies] == [(str(number),) for number in range(500)]


async def test_calls_at_the_same_time_do_not_mix_up_answers(control: Control) -> None:
    async def one(number: int) -> tuple[str, ...]:
        (reply,) = await control.run(f"display-message -p {number}")
        return reply.lines

    assert await asyncio.gather(*(one(number) for number in range(100))) == [(str(n),) for n in range(100)]


async def test_a_call_that_is_given_up_shifts_no_later_answer(control: Control) -> None:
    task = asyncio.create_task(control.run("display-message -p first"))
    over = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(over.set_result, None)
    await over
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    (reply,) = await control.run("display-message -p second")
    assert reply.lines == ("second",)


async def test_a_line_is_one_command(control: Control) -> None:
    for bad in ("", "  ", "a\nb"):
        with pytest.raises(ValueError, match="one line"):
            await control.run(bad)
    (reply,) = await control.run("no-such-command")
    assert not reply.ok
    assert "unknown command" in reply.lines[0]


@pytest.mark.parametrize(
    "text", ["ünï 🙂", 'a"b$c\\d;', "#{pane_id} #(date)", "~", "-n", "'", " lead", "a;", "{", "%end 1 1 1"]
)
async def test_words_arrive_as_they_are(server: Server, control: Control, text: str) -> None:
    pane = server.up(["ana"])["ana"].id
    replies = await control.run(
        line("set-option", "-p", "-t", pane, "@word", text), line("show-options", "-pv", "-t", pane, "@word")
    )
    assert [reply.ok for reply in replies] == [True, True]
    assert server.tmux.run("show-options", "-pv", "-t", pane, "@word") == f"{text}\n"


async def test_a_screen_that_looks_like_the_protocol_is_only_a_screen(server: Server, control: Control) -> None:
    told = "'%begin 1 1 1' '%end 1 1 1' '%error 1 1 1' '%exit' '%output %0 x' ready"
    pane = server.up(["ana"], f"printf '%s\\n' {told}\nexec sleep 1000\n")["ana"].id
    await eventually_async(lambda: "ready" in server.tmux.capture(pane))
    rows = await control.capture(pane)
    assert rows == server.tmux.capture(pane)
    assert rows[:5] == ("%begin 1 1 1", "%end 1 1 1", "%error 1 1 1", "%exit", "%output %0 x")
    assert control.alive


async def test_a_persons_hooks_shift_no_answer(server: Server, control: Control) -> None:
    server.tmux.run("set-hook", "-g", "after-display-message", "display-message -p hook ; set -g @x y")
    server.tmux.run("set-hook", "-g", "after-list-panes", "display-message -p hook")
    replies = await control.run("display-message -p one", "list-panes -t =team:", "display-message -p two")
    assert (replies[0].lines, replies[2].lines) == (("one",), ("two",))
    assert await control.panes() == server.tmux.panes()


async def test_a_client_changes_neither_the_size_nor_what_a_person_sees(server: Server, control: Control) -> None:
    before = server.show("#{window_width}x#{window_height} #{window_id}")
    pane = server.up(["ana"], LINES)["ana"].id
    await control.capture(pane)
    assert server.show("#{window_width}x#{window_height} #{window_id}") == before == "200x50 @0"
    assert server.tmux.clients() == ()


# Keys and pastes


async def test_a_paste_comes_in_brackets_with_nothing_changed(server: Server, control: Control) -> None:
    pane = await ready(server, RECEIVER)
    text = "one\ntwo ünï 🙂 $HOME `id` #{x} #(y) \"'\\ ;\tend;"
    await control.paste(pane, text)
    wanted = b"\x1b[200~" + text.encode() + b"\x1b[201~"
    await eventually_async(lambda: got(server) == wanted)


async def test_no_text_breaks_out_of_its_brackets(server: Server, control: Control) -> None:
    pane = await ready(server, RECEIVER)
    await control.paste(pane, "a\x1b[201~\r/exit\r\x9b201~\x03b")
    await eventually_async(lambda: got(server) == b"\x1b[200~a[201~\n/exit\n201~b\x1b[201~")


async def test_a_megabyte_is_pasted(server: Server, control: Control) -> None:
    pane = await ready(server, RECEIVER)
    text = "0123456789abcde\n" * 65_536
    await control.paste(pane, text)
    await eventually_async(lambda: len(got(server)) >= len(text) + 12)
    assert got(server) == b"\x1b[200~" + text.encode() + b"\x1b[201~"


async def test_an_empty_paste_is_nothing(server: Server, control: Control) -> None:
    pane = await ready(server, RECEIVER)
    await control.paste(pane, "\x1b\x00")
    await control.paste(pane, "x")
    await eventually_async(lambda: got(server) == b"\x1b[200~x\x1b[201~")


async def test_pastes_at_the_same_time_stay_whole(server: Server, control: Control) -> None:
    pane = await ready(server, RECEIVER)
    texts = [f"<{number}>" + chr(97 + number) * 5000 for number in range(8)]
    await asyncio.gather(*(control.paste(pane, text) for text in texts for _ in range(4)))
    wanted = sum(len(text) + 12 for text in texts) * 4
    await eventually_async(lambda: len(got(server)) == wanted)
    for text in texts:
        assert got(server).count(b"\x1b[200~" + text.encode() + b"\x1b[201~") == 4
    assert server.tmux.run("list-buffers") == ""


async def test_no_buffer_stays_behind_when_a_paste_fails(server: Server, control: Control) -> None:
    with pytest.raises(TmuxError, match="paste-buffer: can't find pane"):
        await control.paste("%99", "text")
    assert server.tmux.run("list-buffers") == ""


async def test_keys_are_pressed_in_order(server: Server, control: Control) -> None:
    pane = await ready(server, RECEIVER)
    await control.press(pane, ("1", "Down", "Enter", "-", ";", "Escape", "Space", "C-c"))
    await eventually_async(lambda: got(server) == b"1\x1b[B\r-;\x1b \x03")


async def test_a_person_in_copy_mode_stays_there_and_nothing_arrives_without_brackets(
    server: Server, control: Control
) -> None:
    pane = await ready(server, RECEIVER)
    server.tmux.run("copy-mode", "-t", pane)
    with pytest.raises(TmuxError, match="copy mode"):
        await control.paste(pane, "one\ntwo")
    with pytest.raises(TmuxError, match="copy mode"):
        await control.press(pane, ("Enter",))
    assert server.ours()["ana"].in_mode
    assert server.tmux.run("list-buffers") == ""
    server.tmux.run("send-keys", "-t", pane, "-X", "cancel")
    await control.paste(pane, "three")
    await eventually_async(lambda: got(server) == b"\x1b[200~three\x1b[201~")


# News


async def test_a_change_of_a_subscribed_format_is_told(server: Server, control: Control) -> None:
    news: dict[str, list[str]] = {}
    control.on_subscription = lambda name, pane, value: news.setdefault(f"{name} {pane}", []).append(value)
    pane = server.up(["ana"], "read x; printf '\\033]2;busy: a b\\007'; read x; exit 3\n")["ana"].id
    await control.subscribe("title", "%*", "#{pane_title}")
    await control.subscribe("dead", "%*", "#{pane_dead}")
    await eventually_async(lambda: news.get(f"dead {pane}") == ["0"])
    await control.press(pane, ("Enter",))
    await eventually_async(lambda: news[f"title {pane}"][-1] == "busy: a b")
    await control.press(pane, ("Enter",))
    await eventually_async(lambda: news[f"dead {pane}"] == ["0", "1"])
    await control.unsubscribe("title")
    with pytest.raises(ValueError, match="not a subscription name"):
        await control.subscribe("a:b", "%*", "x")


async def test_a_window_that_closes_is_told(server: Server, control: Control) -> None:
    closed: list[str] = []
    control.on_window_close = closed.append
    window = server.up(["ana"])["ana"].window_id
    server.tmux.kill_window(window)
    await eventually_async(lambda: closed == [window])


# Ends


async def test_no_client_stays_behind(server: Server) -> None:
    client = await Control().connect(server.tmux.socket, "team")
    (pid,) = clients(server)
    await client.close()
    await client.close()
    assert client.closed.result() == "closed"
    assert processes.identify(pid) is None
    await eventually_async(lambda: clients(server) == [])


async def test_a_supervisor_that_is_killed_leaves_no_client(server: Server) -> None:
    code = (
        "import asyncio, sys\nfrom nbs_fleet.launch.control import Control\n"
        "async def main():\n client = await Control().connect(sys.argv[1], 'team')\n print(flush=True)\n await client.closed\n"
        "asyncio.run(main())\n"
    )
    child = await asyncio.create_subprocess_exec(sys.executable, "-c", code, server.tmux.socket, stdout=subprocess.PIPE)
    assert child.stdout is not None
    await child.stdout.readline()
    assert len(clients(server)) == 1
    child.kill()
    await child.wait()
    await eventually_async(lambda: clients(server) == [])


async def test_a_server_that_is_killed_ends_the_client_at_once(server: Server, control: Control) -> None:
    pid = server.tmux.server_pid()
    assert pid
    os.kill(pid, signal.SIGKILL)
    async with asyncio.timeout(20):
        assert "server" in await control.closed
    with pytest.raises(TmuxError, match="tmux -C: "):
        await control.panes()


async def test_a_session_that_is_closed_ends_the_client(server: Server, control: Control) -> None:
    waiting = asyncio.create_task(control.run("wait-for never"))
    server.tmux.run("kill-session", "-t", "=team")
    with pytest.raises(TmuxError, match="tmux -C"):
        await waiting
    assert not control.alive


async def test_a_server_that_hangs_is_an_error_in_bounded_time(server: Server) -> None:
    client = await Control(timeout=0.3).connect(server.tmux.socket, "team")
    pid = server.tmux.server_pid()
    assert pid
    os.kill(pid, signal.SIGSTOP)
    with pytest.raises(TmuxError, match=r"tmux -C: no answer to list-panes within 0\.3 s"):
        await client.panes()
    assert not client.alive
    await client.close()
    with pytest.raises(TmuxError, match=r"no answer within 0\.3 s"):
        await Control(timeout=0.3).connect(server.tmux.socket, "team")


async def test_who_waits_when_the_client_ends_is_told(server: Server, control: Control) -> None:
    waiting = [asyncio.create_task(control.run("wait-for never")) for _ in range(3)]
    over = asyncio.get_running_loop().create_future()
    asyncio.get_running_loop().call_soon(over.set_result, None)
    await over
    await control.close()
    for task in waiting:
        with pytest.raises(TmuxError, match="tmux -C: closed"):
            await task


async def test_there_is_no_client_without_a_server(short_path: Path) -> None:
    client = Control()
    with pytest.raises(TmuxError, match="tmux -C attach-session"):
        await client.connect(str(short_path / "none"), "team")
    assert client.closed.done()
    assert not (short_path / "none").exists()
    await client.close()


async def test_last_words_that_come_after_the_end_of_the_process_are_heard() -> None:
    client = Control()
    client.process_exited()
    client.pipe_connection_lost(1, None)
    client.pipe_data_received(2, b"no server running\n")
    assert client.alive
    client.connection_lost(None)
    assert client.closed.result() == "no server running"


async def test_a_machine_without_tmux_is_told_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingError, match="tmux is not installed"):
        await Control().connect(str(tmp_path / "s"), "team")


async def test_a_flood_of_output_neither_reaches_nor_stops_anyone(server: Server, control: Control) -> None:
    pane = server.up(["ana"], "exec yes\n")["ana"].id
    eventually(lambda: server.tmux.capture(pane)[0] == "y")
    os.kill(clients(server)[0], signal.SIGSTOP)
    before = server.show("#{history_bytes}", pane)
    eventually(
        lambda: server.show("#{history_bytes}", pane) != before or server.show("#{history_size}", pane) == "10000"
    )
    os.kill(clients(server)[0], signal.SIGCONT)
    assert (await control.capture(pane))[0] == "y"
    assert len(control._buffer) < 100_000


async def test_a_look_is_the_pane_and_its_screen(server: Server, control: Control) -> None:
    panes = server.up(["ana", "bo"], "echo ready\nexec sleep 1000\n")
    ana = panes["ana"].id
    await eventually_async(lambda: "ready" in server.tmux.capture(ana))
    pane, rows = await control.look(ana)
    assert pane == await control.pane(ana)
    assert pane is not None
    assert pane.handle == "ana"
    assert rows == await control.capture(ana)
    server.tmux.kill_pane(ana)
    with pytest.raises(TmuxError, match="capture-pane"):
        await control.look(ana)
    assert control.alive
