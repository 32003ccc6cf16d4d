"""One team's private tmux server, driven by its command line; the only module that speaks libtmux."""

from __future__ import annotations

import os
import re
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from nbs_fleet.errors import MissingError, TmuxError
from nbs_fleet.launch import processes
from nbs_fleet.launch.tmux_text import (
    PANE_FORMAT,
    Pane,
    check_pane,
    check_session,
    line,
    parse_panes,
    rows,
    session_target,
)
from nbs_fleet.model import ProcId

if TYPE_CHECKING:
    import libtmux

_LIST = ("list-panes", "-a", "-F", PANE_FORMAT)
_NO_SERVER = ("no server running", "error connecting", "server exited", "lost server")
_DRAIN = 0.05
"""Seconds that a server gets to read what a dead process has left in its terminal."""
_SOCKET = 5.0
"""Seconds that a server gets to make its socket again."""
_DYING = 10.0
"""Seconds that an old server gets to be gone."""


class Tmux:
    """The server behind `socket`, with the configuration file `conf`. Every call is bounded in time.

    Raises TmuxError that begins with `tmux SUB-COMMAND:`, and MissingError when tmux is not installed.
    """

    def __init__(self, socket: str, conf: str = os.devnull) -> None:
        self.socket = socket
        self.conf = conf
        self._zombies: dict[ProcId, float] = {}
        """Dead children that the server has not collected, and since when that is known (monotonic seconds)."""

    def argv(self, *args: str) -> list[str]:
        """The full command line for a tmux command on this server (`-u`: UTF-8 in a C locale too)."""
        return ["tmux", "-u", "-S", self.socket, *args]

    def run(self, *args: str, input: str | None = None, timeout: float = 10.0) -> str:  # noqa: A002 -- as subprocess
        """The output of one tmux command; `input` is its standard input."""
        out, err = self._call(self.argv(*args), args, input, timeout)
        if err is not None:
            raise TmuxError(f"tmux {args[0]}: {err}")
        return out

    def version(self) -> tuple[int, int] | None:
        """Major and minor number of the installed tmux; None if there is no tmux or it tells no number."""
        try:
            out, _ = self._call(["tmux", "-V"], ("-V",), None, 10.0)
        except MissingError:
            return None
        found = re.search(r"(\d+)\.(\d+)", out)
        return (int(found[1]), int(found[2])) if found else None

    def server_pid(self) -> int | None:
        """The pid of the server; None if none runs. Answers also when the server hangs."""
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as connection:
                connection.settimeout(5.0)
                connection.connect(self.socket)
                if hasattr(socket, "SO_PEERCRED"):
                    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
                    pid = int(struct.unpack("3i", credentials)[0])
                    # A child that has not become another program yet holds the socket of a server that was killed.
                    found = processes.identify(pid) if pid else None
                    return pid if found is not None and processes.alive(found) else None
        except (FileNotFoundError, ConnectionRefusedError, ConnectionResetError):
            return None
        except OSError as error:
            raise TmuxError(f"tmux socket {self.socket}: {error.strerror or error}") from error
        answer = self.run("display-message", "-p", "#{pid}").strip()
        return int(answer) if answer.isdigit() else None

    def start(
        self, session: str, size: tuple[int, int], first_command: Sequence[str], environ: Mapping[str, str]
    ) -> None:
        """Start the server with one session of `size` (columns, rows) whose window `fleet` runs `first_command`.

        `environ` becomes the environment of the server and of all panes. A server that is just ending is waited
        for: a session made in its last moments would be lost with it. Raises TmuxError if the session exists.
        """
        columns, height = size
        clean = {name: value for name, value in environ.items() if name not in ("TMUX", "TMUX_PANE")}
        # -- keeps a first word with a dash from being an option; two words or more are no shell command.
        command = first_command if len(first_command) > 1 else ("/usr/bin/env", *first_command)
        args = ("new-session", "-d", "-s", check_session(session), "-x", str(columns), "-y", str(height), "-n", "fleet")
        argv = ["tmux", "-u", "-S", self.socket, "-f", self.conf, *args, "--", *command]
        said = "no session"
        for _ in range(3):
            before = self._server()
            _, err = self._call(argv, args, None, 20.0, _utf8(clean))
            after = self._server()
            if err is None and after is not None and self.has_session(session):
                return
            said = err or said
            if err is not None and not any(text in err for text in _NO_SERVER):
                break
            if before is not None:
                processes.wait_exit(before, _DYING)
        raise TmuxError(f"tmux new-session: {said}", hint="See `nbs-fleet doctor`.")

    def has_session(self, session: str) -> bool:
        """Whether the server runs and has a session of exactly this name."""
        _, err = self._call(self.argv("has-session", "-t", session_target(session)), ("has-session",), None, 10.0)
        return err is None

    def source(self, lines: Iterable[str], timeout: float = 30.0) -> list[str]:
        """Run command lines as one `source-file`; the lines they print.

        No other client's command comes between them. A line that can't be parsed: nothing runs. A line that
        fails while running: the others run all the same and TmuxError is raised at the end, so look at `panes`.
        That a pane finds no room in a window is no error: see `layout.start_lines`.
        """
        text = "".join(f"{command}\n" for command in lines)
        if not text:
            return []
        out, err = self._call(self.argv("source-file", "-"), ("source-file",), text, timeout)
        if err is not None and not _is_about_room(err):
            raise TmuxError(f"tmux source-file: {err}")
        return _lines(out)

    def source_and_look(self, lines: Sequence[str], timeout: float = 30.0) -> tuple[Pane, ...]:
        """`source` and then `panes`, by one call; errors as `source`."""
        return parse_panes(self.source((*lines, line(*_LIST)), timeout))

    def panes(self) -> tuple[Pane, ...]:
        """All panes of the server, in order of windows and places; empty if no server runs."""
        out, err = self._call(self.argv(*_LIST), ("list-panes",), None, 10.0)
        if err is None:
            return parse_panes(_lines(out))
        if any(text in err for text in _NO_SERVER):
            return ()
        raise TmuxError(f"tmux list-panes: {err}")

    def capture(self, pane: str, history: int = 0) -> tuple[str, ...]:
        """The rows of a pane's screen, and up to `history` rows above it."""
        return rows(self.run("capture-pane", "-p", "-t", check_pane(pane), "-S", str(-history)))

    def capture_all(self, panes: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """The screens of many panes by one call; a pane that is gone is missing in the answer."""
        wanted = [check_pane(pane) for pane in panes]
        if not wanted:
            return {}
        mark = f"nbs-{os.urandom(8).hex()}"
        text = "".join(
            f"{line('display-message', '-p', f'{mark} {pane}')}\n{line('capture-pane', '-p', '-t', pane)}\n"
            for pane in wanted
        )
        # A pane that is gone makes the call fail in part; the others are in the output all the same.
        out, err = self._call(self.argv("source-file", "-"), ("source-file",), text, 30.0)
        if err is not None and "can't find pane" not in err:
            raise TmuxError(f"tmux capture-pane: {err}")
        found: dict[str, tuple[str, ...]] = {}
        for part in out.split(f"{mark} ")[1:]:
            pane, _, screen = part.partition("\n")
            if screen:
                found[pane] = rows(screen)
        return found

    def kill_pane(self, pane: str) -> None:
        """Close one pane."""
        self.run("kill-pane", "-t", check_pane(pane))

    def kill_window(self, window_id: str) -> None:
        """Close one window (`@3`) with all its panes."""
        if not re.fullmatch(r"@\d+", window_id):
            raise ValueError(f"not a window id: {window_id!r}")
        self.run("kill-window", "-t", window_id)

    def kill_server(self, timeout: float = _DYING) -> None:
        """End the server, wait until its process is gone, and remove its socket. One that hangs is killed."""
        server = self._server()
        if server is not None:
            with suppress(TmuxError):
                self._call(self.argv("kill-server"), ("kill-server",), None, timeout / 2)
            if not processes.wait_exit(server, timeout / 2):
                processes.send_signal(server, "KILL")
                if not processes.wait_exit(server, timeout):
                    raise TmuxError(f"tmux kill-server: the server (pid {server.pid}) does not end")
        if self.server_pid() is None:
            with suppress(FileNotFoundError):
                os.unlink(self.socket)

    def nudge_sigchld(self, *, drained: bool = False) -> bool:
        """Let the server look for dead children again, if it has any; whether it was told to.

        Debian's tmux 3.3a-3 misses most deaths by signal: the pane is dead, its status stays empty, its process
        a zombie (measured: 19 of 20; 0 of 20 after this signal). But a server that is told before it has read a
        pane's last output closes the pane without it. So it is told at once only with `drained` (the caller saw
        the pane dead, that is read to its end), else when a child has been a zombie for some time. Call it again.
        """
        server = self._server()
        if server is None:
            return False
        now = time.monotonic()
        zombies = processes.dead_children(server)
        self._zombies = {proc: self._zombies.get(proc, now) for proc in zombies}
        if not any(drained or now - since >= _DRAIN for since in self._zombies.values()):
            return False
        return processes.send_signal(server, "CHLD")

    def mend_socket(self, pid: int) -> None:
        """Ask the server `pid` to make its socket again after somebody removed the file (tmux does so on USR1)."""
        with suppress(ProcessLookupError):  # it ended just now
            os.kill(pid, signal.SIGUSR1)

    def find_server(self) -> int | None:
        """The pid of the server, also of one whose socket somebody removed: that one makes it again; None if none runs.

        Only while nobody else may be starting one.
        """
        pid = self.server_pid()
        if pid is not None or os.path.lexists(self.socket):
            return pid
        for proc in processes.running("tmux", ("-S", self.socket), "new-session"):
            self.mend_socket(proc.pid)
            return self._answering()
        return None

    def _answering(self) -> int | None:
        """The pid of the server once it listens again, or None after _SOCKET seconds."""
        import tenacity  # noqa: PLC0415 -- needed after an accident only

        waiting = tenacity.Retrying(
            retry=tenacity.retry_if_result(lambda pid: pid is None),
            wait=tenacity.wait_exponential(multiplier=0.005, max=0.1),
            stop=tenacity.stop_after_delay(_SOCKET),
            retry_error_callback=lambda _: None,
        )
        return waiting(self.server_pid)

    def attach_argv(self, pane: str, *, read_only: bool = False) -> list[str]:
        """The command that shows a pane in this terminal, from outside tmux or from inside another server."""
        target = check_pane(pane)
        flags = ["-r"] if read_only else []
        show = ["select-window", "-t", target, ";", "select-pane", "-t", target, ";"]
        return ["env", "-u", "TMUX", "tmux", "-N", *self.argv(*show, "attach-session", *flags, "-t", target)[1:]]

    def switch(self, client: str, pane: str) -> None:
        """Show a pane to somebody who is attached to this server already; `client` is their terminal."""
        self.run("switch-client", "-c", client, "-t", check_pane(pane))

    def server(self) -> libtmux.Server:
        """The server as libtmux's objects, for looks at it that need not be fast (doctor, attach, tests)."""
        import libtmux  # noqa: PLC0415 -- 70 ms that only a few commands need

        return libtmux.Server(socket_path=self.socket, config_file=self.conf)

    def clients(self) -> tuple[str, ...]:
        """The terminals of the people who are attached."""
        out = self.run("list-clients", "-F", "#{client_control_mode} #{client_tty}")
        return tuple(text[2:] for text in _lines(out) if text.startswith("0 "))

    def _server(self) -> ProcId | None:
        pid = self.server_pid()
        return processes.identify(pid) if pid else None

    def _call(
        self,
        argv: list[str],
        args: Sequence[str],
        text: str | None,
        timeout: float,
        environ: Mapping[str, str] | None = None,
    ) -> tuple[str, str | None]:
        """Output, and the error text if it failed."""
        given = None if text is None else text.encode("utf-8", "surrogateescape")
        try:
            done = subprocess.run(
                argv,
                input=given,
                stdin=subprocess.DEVNULL if given is None else None,
                capture_output=True,
                timeout=timeout,
                check=False,
                env=dict(environ) if environ is not None else client_environ(os.environ),
            )
        except FileNotFoundError as error:
            raise MissingError("tmux is not installed", hint="Install tmux 3.2a or later.") from error
        except subprocess.TimeoutExpired as error:
            raise TmuxError(
                f"tmux {args[0]}: no answer within {timeout:g} s from the server at {self.socket}",
                hint="The server hangs; `nbs-fleet doctor` says more, `nbs-fleet down` ends it.",
            ) from error
        except OSError as error:
            raise TmuxError(f"tmux {args[0]}: {error.strerror}") from error
        out = done.stdout.decode("utf-8", "replace")
        if done.returncode == 0:
            return out, None
        # What can't be parsed in a sourced file is told on standard output.
        return out, done.stderr.decode("utf-8", "replace").strip() or out.strip() or f"exit {done.returncode}"


def _is_about_room(err: str) -> bool:
    """Whether tmux (3.2a to 3.7) has nothing else to say than that a window is full."""
    return all("pane too small" in text or "no space for" in text for text in err.splitlines())


def client_environ(environ: Mapping[str, str]) -> dict[str, str]:
    """An environment for calling tmux: not inside any other server, and UTF-8 whatever the locale is."""
    kept = {name: value for name, value in environ.items() if name not in ("TMUX", "TMUX_PANE")}
    return _utf8(kept)


def _utf8(environ: Mapping[str, str]) -> dict[str, str]:
    values = dict(environ)
    first = values.get("LC_ALL") or values.get("LC_CTYPE") or values.get("LANG") or ""
    if "utf" not in first.lower():
        values.pop("LC_ALL", None)
        values["LC_CTYPE"] = "C.UTF-8"
    return values


def _lines(text: str) -> list[str]:
    return text.removesuffix("\n").split("\n") if text else []
