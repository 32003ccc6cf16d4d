"""The clients beside Claude Code under test: how each is set up against the scripted API, and what it can't do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.clients import install
from tests.support.clients import Client, Fields
from tests.support.other_api import OtherApi

WHO = "client"
"""The word in the API's address by which all requests of a test's client are known."""
MODEL = "fake-model"
_NO_INBOX = "it has no way in of its own that loses nothing"
_NO_HOOKS = "it takes hooks for one start only from files that belong to root"
EXEMPT: dict[str, dict[str, str]] = {
    "codex": {},
    "copilot": {"native inbox": _NO_INBOX},
    "gemini": {
        "one shot": "without a terminal it works only in a folder that a person has trusted",
        "native inbox": _NO_INBOX,
        **dict.fromkeys(("context at a tool", "stop block", "permission hook"), _NO_HOOKS),
    },
    "opencode": {
        "trust": "it asks nobody to trust a folder",
        "context at a tool": "a message is mailed to it, whatever it does, so none waits for a tool",
        "permission dialog": "its screen hides which line is marked, so only a person at the pane can answer",
        "one shot": "its command for one turn changes the text",
        "native inbox": "what is mailed to it is gone with the client, so it is given again",
    },
    "qwen": {
        "trust": "it asks nobody to trust a folder unless a person's settings say so",
        "native inbox": _NO_INBOX,
    },
}
"""What the conformance suite leaves out for a client: behaviour -> why the client can't have it."""


@dataclass
class Other(Client):
    """One of these clients."""

    scripted: OtherApi | None = None
    settings: Fields = field(default_factory=dict)
    """What the team file must set for it, beside the driver's name."""
    wrapping: str = ""
    """A regular expression of what the client puts around a prompt."""
    bypassed: bool = True
    """Agents run without asking for permissions unless a test says otherwise."""

    def agent(self, handle: str, **fields: Any) -> Fields:
        mode = {"permission_mode": "bypassPermissions"} if self.bypassed else {}
        given = {"model": MODEL, "dialogs": {"trust": "accept"}, **mode, **self.settings, **fields}
        return {"handle": handle, **{key: value for key, value in given.items() if value is not None}}

    @property
    def model_api(self) -> OtherApi:
        """The API that it talks to."""
        assert self.scripted is not None
        return self.scripted

    def told(self) -> list[str]:
        """Every text that the model was given in the last request of the conversation, the client's own aside."""
        turns = self.model_api.turns(WHO)
        return [re.sub(self.wrapping, "", text) for text in turns[-1].user_texts] if turns else []

    def count(self, text: str) -> int:
        """How often a text stands in what the model was given last, its own words aside: a scripted one repeats texts."""
        return self.given().count(json.dumps(text, ensure_ascii=False)[1:-1])

    def given(self) -> str:
        """All that the model was given in the last request of the conversation, but for its own words, as JSON."""
        turns = self.model_api.turns(WHO)
        messages = [m for m in turns[-1].messages if m["role"] != "assistant"] if turns else []
        return json.dumps(messages, ensure_ascii=False)


def codex(folder: Path, api: OtherApi) -> Other:
    """Codex: a provider of its own by environment and settings, a private CODEX_HOME."""
    home = folder / "codex-home"
    home.mkdir(parents=True, exist_ok=True)
    provider = {
        "name": "scripted",
        "base_url": f"{api.url(WHO)}/v1",
        "env_key": "SCRIPTED_KEY",
        "wire_api": "responses",
    }
    return Other(
        "codex",
        home,
        folder.parent,
        {"CODEX_HOME": str(home), "SCRIPTED_KEY": "dummy"},
        (str(install.CODEX.executable.parent),),
        scripted=api,
        settings={"settings": {"model_provider": "scripted", "model_providers": {"scripted": provider}}},
    )


def copilot(folder: Path, api: OtherApi) -> Other:
    """Copilot: a provider of its own by environment, without a login; a private COPILOT_HOME, quiet screens."""
    home = folder / "copilot-home"
    home.mkdir(parents=True, exist_ok=True)
    quiet = {"banner": "never", "showTipsOnStartup": False, "tabs": {"enabled": False}, "autoUpdate": False}
    (home / "settings.json").write_text(json.dumps(quiet), encoding="utf-8")
    environment = {
        "COPILOT_HOME": str(home),
        "COPILOT_OFFLINE": "true",
        "COPILOT_PROVIDER_BASE_URL": f"{api.url(WHO)}/v1",
        "COPILOT_PROVIDER_API_KEY": "dummy",
        "COPILOT_AUTO_UPDATE": "false",
        "COPILOT_MODEL": MODEL,
    }
    path = (str(install.COPILOT.executable.parent),)
    wrapping = r"^<current_datetime>.*</current_datetime>\n\n"
    return Other("copilot", home, folder.parent, environment, path, scripted=api, wrapping=wrapping)


def qwen(folder: Path, api: OtherApi) -> Other:
    """Qwen Code: a key, an address and a model by environment; a private QWEN_HOME."""
    home = folder / "qwen-home"
    home.mkdir(parents=True, exist_ok=True)
    environment = {
        "QWEN_HOME": str(home),
        "OPENAI_API_KEY": "dummy",
        "OPENAI_BASE_URL": f"{api.url(WHO)}/v1",
        "OPENAI_MODEL": MODEL,
    }
    path = (str(install.QWEN.executable.parent),)
    return Other("qwen", home, folder.parent, environment, path, scripted=api)


def gemini(folder: Path, api: OtherApi) -> Other:
    """Gemini CLI: a key and an address by environment; a private home with the way to log in."""
    home = folder / "gemini-home"
    (home / ".gemini").mkdir(parents=True, exist_ok=True)
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "general": {"enableAutoUpdate": False},
        "model": {"disableLoopDetection": True},
    }
    (home / ".gemini" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    environment = {
        "GEMINI_CLI_HOME": str(home),
        "GEMINI_API_KEY": "dummy",
        "GOOGLE_GEMINI_BASE_URL": api.url(WHO),
        "COLORTERM": "truecolor",
    }
    path = (str(install.GEMINI.executable.parent),)
    wrapping = r"(?s)^<session_context>.*?</session_context>\n*"
    return Other("gemini", home, folder.parent, environment, path, scripted=api, wrapping=wrapping)


def opencode(folder: Path, api: OtherApi) -> Other:
    """opencode: a provider of its own by settings; a private home, and no wait for a registry that can't be reached."""
    home = folder / "opencode-home"
    for below in ("config", "data", "cache"):
        (home / below).mkdir(parents=True, exist_ok=True)
    (home / "npmrc").write_text("fetch-retries=0\nregistry=http://127.0.0.1:9/\n", encoding="utf-8")
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{api.url(WHO)}/v1", "apiKey": "dummy"},
        "models": {MODEL: {"name": "Scripted"}},
    }
    scripted = {"enabled_providers": ["scripted"], "provider": {"scripted": provider}}
    environment = {
        **{f"XDG_{below.upper()}_HOME": str(home / below) for below in ("config", "data", "cache")},
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
        "npm_config_fetch_retries": "0",
        "npm_config_userconfig": str(home / "npmrc"),
    }
    path = (str(install.OPENCODE.executable.parent),)
    model = f"scripted/{MODEL}"
    settings = {"model": model, "settings": {**scripted, "small_model": model}}
    return Other("opencode", home, folder.parent, environment, path, scripted=api, settings=settings)


MAKERS = {
    "codex": (codex, install.CODEX),
    "copilot": (copilot, install.COPILOT),
    "gemini": (gemini, install.GEMINI),
    "opencode": (opencode, install.OPENCODE),
    "qwen": (qwen, install.QWEN),
}
"""Each client: how it is set up, and what must be installed."""


def missing(name: str) -> str | None:
    """Why this client can't be run here, or None."""
    pinned = MAKERS[name][1]
    there = pinned.present
    return (
        None if there else f"{pinned.name} {pinned.version} is not installed (tests/clients/install.py {pinned.name})"
    )


@contextmanager
def running(name: str, folder: Path) -> Iterator[Other]:
    """The named client, set up in `folder`, with an API of its own."""
    with OtherApi() as api:
        yield MAKERS[name][0](folder, api)
