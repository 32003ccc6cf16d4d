"""Watches the paths that FileChanged hooks name, without polling, and runs those hooks (Linux directory notification)."""

from __future__ import annotations

import fcntl
import os
import signal
from typing import TYPE_CHECKING, Any

from nbs_fleet.sim.kernel import Loop, start

if TYPE_CHECKING:
    from nbs_fleet.sim.session import Session

SETTLE_SECONDS = 0.6
"""A new or changed file is told once it has kept still for so long; a removed one at once. As measured."""

_WANTED = ("DN_CREATE", "DN_DELETE", "DN_RENAME", "DN_MODIFY", "DN_MULTISHOT")
Mark = tuple[int, int, int]


def watched(matchers: list[str], cwd: str) -> list[str]:
    """The paths in the matchers of FileChanged: parts between "|", relative ones in the working directory."""
    parts = [part for matcher in matchers for part in matcher.split("|") if part]
    return list(dict.fromkeys(os.path.join(cwd, part) for part in parts))


class Watcher:
    """The list of paths is fixed at the start; a folder that is deleted is deaf from then on, as in the real client."""

    def __init__(self, loop: Loop, session: Session) -> None:
        self.loop = loop
        self.session = session
        matchers = [h.matcher for h in session.settings.hooks if h.event == "FileChanged" and h.matcher]
        self.paths = [path for path in watched(matchers, session.cwd) if os.path.exists(path)]
        self.folders: dict[str, int] = {}
        self.known: dict[str, Mark] = {}
        self.settling: set[str] = set()
        if not self.paths or not hasattr(fcntl, "F_NOTIFY"):
            return
        loop.on_signal(signal.SIGIO, self.look)
        self.known = self._scan()

    def _open(self, folder: str) -> None:
        if folder in self.folders:
            return
        try:
            fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            return
        flags = 0
        for name in _WANTED:
            flags |= int(getattr(fcntl, name))
        # Bit 31 is set in DN_MULTISHOT, and fcntl takes a signed number.
        fcntl.fcntl(fd, fcntl.F_NOTIFY, flags - (1 << 32) if flags >= 1 << 31 else flags)
        self.folders[folder] = fd

    def _scan(self) -> dict[str, Mark]:
        found: dict[str, Mark] = {}
        for path in self.paths:
            if not os.path.isdir(path):
                self._open(os.path.dirname(path))
                self._note(found, path)
                continue
            for folder, _, names in os.walk(path):
                self._open(folder)
                for name in names:
                    self._note(found, os.path.join(folder, name))
        return found

    @staticmethod
    def _note(found: dict[str, Mark], path: str) -> None:
        try:
            info = os.stat(path)
        except OSError:
            return
        found[path] = (info.st_mtime_ns, info.st_size, info.st_ino)

    def _alive(self, path: str) -> bool:
        """Whether the folder there is still the one that is watched."""
        fd = self.folders.get(path)
        if fd is None:
            return True
        try:
            return os.fstat(fd).st_ino == os.stat(path).st_ino
        except OSError:
            return False

    def look(self) -> None:
        """Something changed in one of the folders."""
        self.paths = [path for path in self.paths if self._alive(path)]
        now = self._scan()
        for path in [path for path in self.known if path not in now]:
            del self.known[path]
            self._tell(path, "unlink")
        for path, mark in now.items():
            if self.known.get(path) != mark and path not in self.settling:
                self.settling.add(path)
                self._settle(path, mark)

    def _settle(self, path: str, mark: Mark) -> None:
        def check() -> None:
            found: dict[str, Mark] = {}
            self._note(found, path)
            if path not in found:
                self.settling.discard(path)
            elif found[path] != mark:
                self._settle(path, found[path])
            else:
                self.settling.discard(path)
                event = "change" if path in self.known else "add"
                self.known[path] = mark
                self._tell(path, event)

        self.loop.call_later(SETTLE_SECONDS, check)

    def _tell(self, path: str, event: str) -> None:
        fields: dict[str, Any] = {"file_path": path, "event": event}
        start(self.session.run_hooks("FileChanged", fields, os.path.basename(path)))
