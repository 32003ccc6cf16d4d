"""The three clients the end-to-end tests run against: how each is set up, declared, and asked what it was told."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.clients.install import CLAUDE, CLAUDELESS
from tests.support.claude_api import ScriptedApi
from tests.support.claude_api.directives import texts

API_KEY = "sk-ant-test-0000000000000000000000000000000000000000"
Fields = dict[str, Any]


@dataclass
class Client:
    """One client under test. `config` is its private CLAUDE_CONFIG_DIR."""

    name: str
    config: Path
    base: Path
    """The test's own folder; session files are looked for anywhere below it."""
    environment: dict[str, str] = field(default_factory=dict)
    path: tuple[str, ...] = ()
    """Folders that go in front of PATH."""
    api: ScriptedApi | None = None

    plain_only = False
    """Only single-line prompts without a leading `/`, `!` or `?` can be given to it."""
    polite_codes: tuple[int, ...] = (0, 143)

    def agent(self, handle: str, **fields: Any) -> Fields:
        """This agent's entry in the team file."""
        return {"handle": handle, **fields}

    def prompts(self, session: str) -> list[str]:
        """Every prompt this session was given, as the client wrote it down, oldest first."""
        return [text for entry in self.transcript(session) if entry.get("type") == "user" for text in said(entry)]

    def transcript(self, session: str) -> list[Fields]:
        """The entries of the session's own file, or none yet."""
        for path in self.base.rglob(f"projects/*/{session}.jsonl"):
            lines = path.read_text(encoding="utf-8").splitlines()
            return [json.loads(line) for line in lines if line.endswith("}")]
        return []


def said(entry: Mapping[str, Any]) -> list[str]:
    """The texts of one transcript entry."""
    message = entry.get("message")
    return texts(message.get("content")) if isinstance(message, dict) else []


class Sim(Client):
    """Our simulator: everything the real client does, scripted."""

    def agent(self, handle: str, **fields: Any) -> Fields:
        scenario = fields.pop("scenario", None)
        if scenario is not None:
            path = self.config / f"{handle}.scenario.json"
            path.write_text(json.dumps(scenario), encoding="utf-8")
            fields["args"] = [*fields.get("args", []), "--scenario", str(path)]
        return super().agent(handle, **fields)


class Claudeless(Sim):
    """An independent simulator; pinned, so what it can't do is known (single-line prompts, no busy sign)."""

    plain_only = True
    polite_codes = (0, 130, 143)

    def agent(self, handle: str, **fields: Any) -> Fields:
        fields.setdefault("scenario", {"responses": [{"pattern": {"type": "any"}, "response": "ok"}]})
        return super().agent(handle, **fields)


class Claude(Client):
    """The real client, against the scripted API."""

    def prompts(self, session: str) -> list[str]:
        if self.api is None:
            return []
        turns = [request for request in self.api.turns() if request.session == session]
        return turns[-1].user_texts if turns else []


def onboarded(trusted: tuple[str, ...]) -> Fields:
    """The content of `.claude.json` with which the client shows no first-run screen."""
    return {
        "hasCompletedOnboarding": True,
        "theme": "dark",
        "customApiKeyResponses": {"approved": [API_KEY[-20:]], "rejected": []},
        "projects": {path: {"hasTrustDialogAccepted": True} for path in trusted},
    }


@contextmanager
def running(name: str, folder: Path, *, trusted: tuple[str, ...] = ()) -> Iterator[Client]:
    """The named client, set up in `folder`; `trusted` are directories it has been told to trust."""
    config = folder / "claude-config"
    config.mkdir(parents=True, exist_ok=True)
    shared = {"CLAUDE_CONFIG_DIR": str(config)}
    if os.geteuid() == 0:
        shared["IS_SANDBOX"] = "1"  # without it the client refuses bypassPermissions to root
    if name == "sim":
        yield Sim(name, config, folder.parent, shared)
    elif name == "claudeless":
        yield Claudeless(name, config, folder.parent, shared, (str(CLAUDELESS.executable.parent),))
    elif name == "claude":
        (config / ".claude.json").write_text(json.dumps(onboarded(trusted)), encoding="utf-8")
        with ScriptedApi(folder / "api-log") as api:
            environment = {
                **shared,
                "ANTHROPIC_API_KEY": API_KEY,
                "ANTHROPIC_BASE_URL": api.url,
                "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
                "CLAUDE_CODE_DISABLE_OFFICIAL_MARKETPLACE_AUTOINSTALL": "1",
                "DISABLE_AUTOUPDATER": "1",
            }
            yield Claude(name, config, folder.parent, environment, (str(CLAUDE.executable.parent),), api)
    else:
        raise ValueError(name)


def need(name: str) -> None:
    """Skip the test if this client can't be run here; in CI that is a failure."""
    reason = missing(name)
    if reason and os.environ.get("CI") == "true":
        pytest.fail(reason)
    if reason:
        pytest.skip(reason)


def missing(name: str) -> str | None:
    """Why this client can't be run here, or None."""
    pinned = {"claudeless": CLAUDELESS, "claude": CLAUDE}.get(name)
    if pinned is None or pinned.present:
        return None
    return f"{pinned.name} {pinned.version} is not installed (tests/clients/install.py does it)"
