"""The input side of a client's terminal: whether it reads what is typed into it."""

from __future__ import annotations

import array
import fcntl
import os
import termios


def unread(pid: int) -> int:
    """Bytes that were typed and that the process at this terminal has not read; 0 where it can't be told.

    What a frozen client is sent waits there, and would all be read at once later. Linux: /proc and FIONREAD.
    """
    count = array.array("i", [0])
    try:
        terminal = os.open(f"/proc/{pid}/fd/0", os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return 0
    try:
        fcntl.ioctl(terminal, termios.FIONREAD, count)
    except OSError:
        return 0
    finally:
        os.close(terminal)
    return count[0]
