"""Children of the client: spawned in their own session, with piped input and output, and ended as a whole group."""

from __future__ import annotations

import contextlib
import os
import signal

from nbs_fleet.sim.kernel import Future, Interrupted, Loop, first

DRAIN_SECONDS = 0.05
_DEFAULT_SIGNALS = (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)


class Output:
    """What a child wrote and how it ended; `timed_out` when it was killed for its time."""

    __slots__ = ("code", "err", "out", "timed_out")

    def __init__(self, code: int, out: str, err: str, *, timed_out: bool = False) -> None:
        self.code = code
        self.out = out
        self.err = err
        self.timed_out = timed_out


class Child:
    """One running program. The pid is also its process group."""

    def __init__(self, loop: Loop, argv: list[str], env: dict[str, str], stdin: bytes | None = None) -> None:
        """Start it. `stdin` is fed to it (None: the null device). OSError when it can't be started."""
        self.loop = loop
        self.chunks: dict[int, list[bytes]] = {}
        self.listening: set[int] = set()
        self.drained: Future[None] = Future()
        out_read, out_write = os.pipe()
        err_read, err_write = os.pipe()
        in_read, in_write = (os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC), -1) if stdin is None else os.pipe()
        try:
            self.pid = os.posix_spawnp(
                argv[0],
                argv,
                env,
                file_actions=[
                    (os.POSIX_SPAWN_DUP2, in_read, 0),
                    (os.POSIX_SPAWN_DUP2, out_write, 1),
                    (os.POSIX_SPAWN_DUP2, err_write, 2),
                ],
                setsid=True,
                setsigdef=_DEFAULT_SIGNALS,
            )
        except OSError:
            for fd in (out_read, err_read, in_write):
                if fd >= 0:
                    os.close(fd)
            raise
        finally:
            for fd in (in_read, out_write, err_write):
                os.close(fd)
        self.out = out_read
        self.err = err_read
        self._listen(out_read)
        self._listen(err_read)
        self.exit = loop.child(self.pid)
        if stdin is not None:
            self._feed(in_write, stdin)

    def _listen(self, fd: int) -> None:
        self.chunks[fd] = []
        self.listening.add(fd)

        def ready() -> None:
            data = os.read(fd, 65536)
            if data:
                self.chunks[fd].append(data)
                return
            self._close(fd)

        self.loop.read(fd, ready)

    def _close(self, fd: int) -> None:
        self.loop.forget(fd)
        os.close(fd)
        self.listening.discard(fd)
        if not self.listening:
            self.drained.set(None)

    def _drop(self) -> None:
        """Take what has come, and listen no more: on a loaded machine the time may be over before it was looked at."""
        for fd in list(self.listening):
            os.set_blocking(fd, False)
            with contextlib.suppress(BlockingIOError):
                while data := os.read(fd, 65536):
                    self.chunks[fd].append(data)
            self._close(fd)

    def _feed(self, fd: int, data: bytes) -> None:
        os.set_blocking(fd, False)
        rest = [data]

        def ready() -> None:
            try:
                rest[0] = rest[0][os.write(fd, rest[0]) :]
            except BlockingIOError:
                return
            except OSError:
                rest[0] = b""
            if not rest[0]:
                self.loop.forget(fd)
                os.close(fd)

        self.loop.write(fd, ready)
        ready()

    def text(self, fd: int) -> str:
        """What came through `out` or `err` so far."""
        return b"".join(self.chunks[fd]).decode("utf-8", "replace")

    def kill(self, number: int = signal.SIGKILL) -> None:
        """Send a signal to the whole group; a group that is gone is no error."""
        try:
            os.killpg(self.pid, number)
        except OSError:
            return

    async def finish(self, seconds: float) -> Output:
        """Wait for its end, at most `seconds`; then, or when interrupted, the whole group is killed."""
        limit: Future[None] = Future()
        timer = self.loop.call_later(seconds, lambda: limit.set(None))
        try:
            late = await first(self.exit, limit) == 1
            if late:
                self.kill()
                await self.exit
            # A grandchild that keeps the pipes open must not hold the client up.
            await first(self.drained, self.loop.after(DRAIN_SECONDS))
        except Interrupted:
            self.kill()
            raise
        finally:
            timer.cancel()
            self._drop()
        code = -1 if late else self.exit.result()
        return Output(code, self.text(self.out), self.text(self.err), timed_out=late)
