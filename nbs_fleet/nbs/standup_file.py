"""The time of a chat's last standup, shared by all sidecars, the nbs tools' too: `<chat>.standup-ts`."""

from __future__ import annotations

from nbs_fleet.nbs.files import LOCK_TIMEOUT, read_bytes, record_lock, replace


def standup_path(chat_path: str) -> str:
    """Where it stands."""
    return f"{chat_path}.standup-ts"


def last_standup(chat_path: str) -> float | None:
    """Seconds since the epoch of the last standup; None if there was none, or the file can't be understood."""
    text = (read_bytes(standup_path(chat_path)) or b"")[:64].split(b"\n")[0].strip()
    return float(int(text)) if text.isdigit() and len(text) < 13 else None


def write_standup(chat_path: str, now: float) -> None:
    """Say that there is a standup now."""
    path = standup_path(chat_path)
    replace(path, b"%d\n" % int(now), temporary=f"{path}.tmp")


def take_turn(chat_path: str, now: float, every: float, *, timeout: float = LOCK_TIMEOUT) -> bool:
    """Take the turn to post a standup at `now`; True for exactly one of all who try within an interval.

    Under the chat's lock the last standup is read once more, and written only if it is `every` seconds old. A time
    that lies `every` seconds or more in the future (the clock was set back) counts as one that is over.
    """
    with record_lock(f"{chat_path}.lock", timeout):
        last = last_standup(chat_path)
        if last is not None and abs(now - last) < every:
            return False
        write_standup(chat_path, now)
        return True
