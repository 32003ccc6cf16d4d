"""Who is on duty: pid files, sidecar markers, a foreign nbs process under the same handle, pause, session metadata."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from msgspec import Struct

from nbs_fleet.jsontext import MALFORMED
from nbs_fleet.nbs.files import NbsFileError, make_folder, read_bytes, remove, replace


class CollisionError(NbsFileError):
    """A living nbs process that is not ours works under this handle."""


class Foreign(Struct, frozen=True):
    """A living process of the nbs tools: its pid, what it is, and the file that names it."""

    pid: int
    what: str
    file: str


def pid_path(root: str, handle: str) -> str:
    """Where stands the pid of an agent's wrapper (nbs-claude; ours: its client)."""
    return os.path.join(root, ".nbs", "pids", f"{handle}.pid")


def sidecar_path(root: str, handle: str) -> str:
    """Where stands the pid of an agent's sidecar."""
    return os.path.join(root, ".nbs", "pids", f"sidecar-{handle}.pid")


def session_path(root: str, handle: str) -> str:
    """Where the metadata of an agent's session stands."""
    return os.path.join(root, ".nbs", "sessions", f"{handle}.json")


def pause_path(root: str) -> str:
    """The file whose existence pauses all sidecars of a root."""
    return os.path.join(root, ".nbs", "control-pause")


def read_pid(path: str) -> int | None:
    """The pid in a pid file, if there is one."""
    text = (read_bytes(path) or b"")[:32].strip()
    return int(text) if text.isdigit() and int(text) > 0 else None


def find_foreign(root: str, handle: str, *, proc: str = "/proc") -> Foreign | None:
    """The living nbs process under this handle in this root, if there is one.

    A pid alone proves nothing, since numbers are used again: the process must look like what its file says. For
    nbs-sidecar that is what the nbs tools ask too: an argument with `nbs-sidecar` and one that is `--handle=HANDLE`.
    """
    path = sidecar_path(root, handle)
    pid = read_pid(path)
    if pid is not None and pid != os.getpid():
        argv = _argv(pid, proc)
        if any("nbs-sidecar" in word for word in argv) and f"--handle={handle}" in argv:
            return Foreign(pid, "nbs-sidecar", path)
    path = pid_path(root, handle)
    pid = read_pid(path)
    if pid is not None and pid != os.getpid():
        argv = _argv(pid, proc)
        if any(os.path.basename(word) == "nbs-claude" for word in argv[:3]) and _handle_of(pid, proc) in (None, handle):
            return Foreign(pid, "nbs-claude", path)
    return None


def refuse_foreign(root: str, handle: str, *, proc: str = "/proc") -> None:
    """Raise CollisionError that names a living nbs process under this handle."""
    found = find_foreign(root, handle, proc=proc)
    if found is not None:
        raise CollisionError(
            f"{handle}: {found.what} (pid {found.pid}) works under this handle already, says {found.file}",
            hint=f"end it first (kill {found.pid}), or give the agent another handle",
        )


def claim(root: str, handle: str, *, sidecar: int, client: int | None = None, proc: str = "/proc") -> None:
    """Write the sidecar's marker, and the client's pid if it is known. Raises CollisionError."""
    refuse_foreign(root, handle, proc=proc)
    make_folder(os.path.join(root, ".nbs", "pids"))
    path = sidecar_path(root, handle)
    replace(path, b"%d\n" % sidecar, temporary=f"{path}.tmp")
    if client is not None and read_pid(pid_path(root, handle)) != client:
        replace(pid_path(root, handle), b"%d\n" % client)


def release(root: str, handle: str, *, sidecar: int, client: int | None = None) -> None:
    """Remove marker, pid file and session metadata, each only if it still holds the pid that was written."""
    for path, pid in ((sidecar_path(root, handle), sidecar), (pid_path(root, handle), client)):
        if pid is not None and read_pid(path) == pid:
            remove(path)
    session = read_session(root, handle)
    if session is not None and session.pid == client:
        remove(session_path(root, handle))


def paused(root: str) -> bool:
    """Whether a person has paused the team."""
    return os.path.exists(pause_path(root))


def pause(root: str, now: float) -> None:
    """Pause all sidecars of this root, the nbs tools' own too."""
    make_folder(os.path.join(root, ".nbs"))
    replace(pause_path(root), time.strftime("%Y-%m-%dT%H:%M:%SZ\n", time.gmtime(now)).encode())


def resume(root: str) -> bool:
    """End the pause; False if there was none."""
    return remove(pause_path(root))


class Session(Struct, frozen=True):
    """The metadata of one session as nbs-claude writes it (its JSON form; `started` is UTC, `...Z`)."""

    session_id: str
    handle: str
    model: str
    started: str
    project_root: str
    pid: int
    initial_prompt_set: bool
    tmux_session: str = ""
    transport: str = "tmux"


def write_session(root: str, session: Session) -> None:
    """Write the metadata of a session, whole or not at all."""
    path = session_path(root, session.handle)
    make_folder(os.path.dirname(path))
    fields = {name: getattr(session, name) for name in session.__struct_fields__}
    replace(path, json.dumps(fields, indent=2, ensure_ascii=False).encode() + b"\n")


def read_session(root: str, handle: str) -> Session | None:
    """The metadata of a session; None if there is none that can be read (the nbs tools may leave an empty file)."""
    try:
        found: Any = json.loads(read_bytes(session_path(root, handle)) or b"")
        return Session(**{name: found[name] for name in Session.__struct_fields__ if name in found})
    except (*MALFORMED, TypeError):
        return None


def _argv(pid: int, proc: str) -> tuple[str, ...]:
    """The argv of a living process, empty if there is none."""
    try:
        data = read_bytes(f"{proc}/{pid}/cmdline") if os.path.isdir(proc) else _portable_argv(pid)
    except NbsFileError:
        return ()
    return tuple((data or b"").decode("utf-8", "replace").rstrip("\0").split("\0"))


def _portable_argv(pid: int) -> bytes:
    import psutil  # noqa: PLC0415 -- only where there is no /proc

    try:
        return "\0".join(psutil.Process(pid).cmdline()).encode()
    except psutil.Error:
        return b""


def _handle_of(pid: int, proc: str) -> str | None:
    """The handle in a process's environment, None if it can't be seen."""
    try:
        data = read_bytes(f"{proc}/{pid}/environ") or b""
    except NbsFileError:
        return None
    for item in data.split(b"\0"):
        if item.startswith(b"NBS_HANDLE="):
            return item.partition(b"=")[2].decode("utf-8", "replace")
    return None
