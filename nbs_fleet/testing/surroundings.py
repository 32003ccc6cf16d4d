"""What a test's world is made of before anything runs: folders, environment, the clients' own first files. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from posixpath import join

from msgspec import Struct

from nbs_fleet.launch.environment import scrubbed

SHORT = 40
"""Bytes a temporary folder's path may have: sockets lie below it, and theirs end at about 100."""
OWN_PLACES = ("CLAUDE_CONFIG_DIR", "CLAUDELESS_CONFIG_DIR", "CLAUDELESS_STATE_DIR")
"""Where clients keep a person's own things; a test never sees them."""
CLAUDE_CREDENTIALS = (
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "CLAUDE_CODE_USE_BEDROCK",
    "CLAUDE_CODE_USE_VERTEX",
)
"""One of these must be in the environment of a test with the real client: its HOME is empty, so nobody is logged in."""


class Folders(Struct, frozen=True):
    """The folders of one world, all below `base`."""

    base: str

    @property
    def home(self) -> str:
        return join(self.base, "home")

    @property
    def state(self) -> str:
        return join(self.base, "state")

    @property
    def runtime(self) -> str:
        return join(self.base, "run")

    @property
    def root(self) -> str:
        """The team's project directory."""
        return join(self.base, "project")

    @property
    def claude(self) -> str:
        """The CLAUDE_CONFIG_DIR of real clients."""
        return join(self.base, "claude")

    @property
    def every(self) -> tuple[str, ...]:
        return (self.home, self.state, self.runtime, self.root, self.claude)


def environment(caller: Mapping[str, str], folders: Folders) -> dict[str, str]:
    """The environment of everything in the world: the caller's, without what points at a person's own things."""
    kept = {
        name: value
        for name, value in caller.items()
        if not scrubbed(name) and not name.startswith("XDG_") and name not in OWN_PLACES
    }
    kept.setdefault("LANG", "C.UTF-8")
    kept.setdefault("TERM", "xterm-256color")
    return {
        **kept,
        "HOME": folders.home,
        "XDG_STATE_HOME": folders.state,
        "XDG_RUNTIME_DIR": folders.runtime,
        "CLAUDE_CONFIG_DIR": folders.claude,
        "NO_COLOR": "1",
    }


def first_files(
    drivers: Iterable[str], directories: Iterable[str], env: Mapping[str, str], folders: Folders
) -> dict[str, str]:
    """Files (path -> text) that must be there before the clients start.

    Claude Code (2.1.197, measured) asks for a theme, about an unknown API key and about an unknown folder. In a world
    that is thrown away nobody is there to answer, so its configuration says that all this was answered.
    """
    if "claude" not in drivers:
        return {}
    key = env.get("ANTHROPIC_API_KEY", "")
    seen = {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [key[-20:]] if key else [], "rejected": []},
        "projects": {path: {"hasTrustDialogAccepted": True} for path in directories},
    }
    return {join(folders.claude, ".claude.json"): json.dumps(seen)}


def without_credentials(drivers: Iterable[str], env: Mapping[str, str]) -> str | None:
    """Why the real client could not work in this world, or None."""
    if "claude" not in drivers or any(env.get(name) for name in CLAUDE_CREDENTIALS):
        return None
    return f"Claude Code has no account in a test: set one of {', '.join(CLAUDE_CREDENTIALS)}, or use --driver sim"
