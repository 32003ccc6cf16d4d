"""Hands memory back to the system after a start, which takes more than what follows."""

from __future__ import annotations

import ctypes


def hand_back() -> None:
    """Give up what the C library keeps for later; nothing happens where it can't be told to (others than glibc)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
