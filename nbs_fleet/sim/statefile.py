"""The client's own state file, sessions/<pid>.json: who it is and what it is doing (Claude Code 2.1.197, measured)."""

from __future__ import annotations

import json
import os
import time
from typing import Any

from nbs_fleet.sim import place

IDLE, BUSY, WAITING, SHELL = "idle", "busy", "waiting", "shell"


def sessions_dir(env: dict[str, str]) -> str:
    """The folder of the state files."""
    return os.path.join(place.config_dir(env), "sessions")


class StateFile:
    """Written whole and in one step at each change; absent during the startup dialogs and after a clean exit."""

    def __init__(self, env: dict[str, str], cwd: str, session_id: str, name: str | None, *, version: str) -> None:
        self.off = bool(env.get("CLAUDE_CODE_CHILD_SESSION")) and not env.get("CLAUDE_CODE_FORCE_SESSION_PERSISTENCE")
        pid = os.getpid()
        self.path = os.path.join(sessions_dir(env), f"{pid}.json")
        self.name = name
        self.fields: dict[str, Any] = {
            "pid": pid,
            "sessionId": session_id,
            "cwd": cwd,
            "startedAt": int(time.time() * 1000),
            "procStart": place.process_start(pid),
            "version": version,
            "peerProtocol": 1,
            "kind": "interactive",
            "entrypoint": "cli",
            "name": name or f"{os.path.basename(cwd) or 'root'}-{pid % 256:02x}",
        }
        if name is None:
            self.fields["nameSource"] = "derived"
        self.status: tuple[str, str | None] | None = None

    def show(self, status: str, waiting_for: str | None = None) -> None:
        """Write a new status unless it is the one already there. A full disk or a lost folder never stops the client."""
        if self.off or self.status == (status, waiting_for):
            return
        self.status = (status, waiting_for)
        now = int(time.time() * 1000)
        self.fields.update(status=status, updatedAt=now, statusUpdatedAt=now)
        self.fields.pop("waitingFor", None)
        if waiting_for is not None:
            self.fields["waitingFor"] = waiting_for
        self._write()

    def session(self, session_id: str) -> None:
        """After /clear the same process has another session."""
        self.fields["sessionId"] = session_id
        if self.status is not None and not self.off:
            self.fields["updatedAt"] = int(time.time() * 1000)
            self._write()

    def rename(self, name: str | None) -> None:
        """Before the first write: a resumed session has its name from its transcript."""
        if name is not None:
            self.fields["name"] = name
            self.fields.pop("nameSource", None)

    def _write(self) -> None:
        try:
            place.write_atomic(self.path, json.dumps(self.fields, separators=(",", ":"), ensure_ascii=False))
        except OSError:
            return

    def remove(self) -> None:
        """A clean exit."""
        try:
            os.unlink(self.path)
        except OSError:
            return


def live_session(env: dict[str, str], session_id: str) -> bool:
    """Whether some live client already has this session: its file is there and its process is the one that wrote it."""
    try:
        names = os.listdir(sessions_dir(env))
    except OSError:
        return False
    for name in names:
        if not name.endswith(".json") or name.startswith("."):
            continue
        found = place.read_json(os.path.join(sessions_dir(env), name))
        if not isinstance(found, dict) or found.get("sessionId") != session_id:
            continue
        pid = found.get("pid")
        if isinstance(pid, int) and place.process_start(pid) == found.get("procStart"):
            return True
    return False
