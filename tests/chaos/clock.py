"""A wall clock that can be set: a preloaded library, compiled when it is needed, and the file that it reads."""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
from pathlib import Path

SOURCE = Path(__file__).with_name("clock.c")
COMPILE_SECONDS = 60


class Clock:
    """The clock of all programs that get `environment`: `set` sets it beside the true one, in one step."""

    def __init__(self, folder: str) -> None:
        self._file = os.path.join(folder, "clock")
        self._library = os.path.join(folder, "clock.so")
        self.offset = 0
        self.set(0)
        argv = ["cc", "-shared", "-fPIC", "-O1", "-o", self._library, str(SOURCE)]
        subprocess.run(argv, check=True, timeout=COMPILE_SECONDS)

    @staticmethod
    def possible() -> bool:
        """Whether there is a compiler."""
        return shutil.which("cc") is not None

    @property
    def environment(self) -> dict[str, str]:
        """What makes a program go by this clock."""
        return {"LD_PRELOAD": self._library, "NBS_CHAOS_CLOCK": self._file}

    def set(self, offset: int) -> None:
        """`offset` in seconds beside the true time."""
        self.offset = offset
        fd = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            os.pwrite(fd, struct.pack("=q", offset), 0)
        finally:
            os.close(fd)
