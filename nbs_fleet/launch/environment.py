"""The environment of one agent: put together, kept in a 0600 file, and masked where people read."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from nbs_fleet.errors import FleetError
from nbs_fleet.launch.files import put
from nbs_fleet.plan.script import IDENTIFIER, SCRUBBED, SCRUBBED_PREFIX, quote
from nbs_fleet.spec.team import Agent

CLEAN = (
    *("HOME", "PATH", "USER", "SHELL", "LANG", "LC_*", "TZ"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "FTP_PROXY", "NO_PROXY"),
    *("http_proxy", "https_proxy", "all_proxy", "ftp_proxy", "no_proxy"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "NODE_EXTRA_CA_CERTS", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"),
)
"""What `environment: clean` takes from the caller; TERM comes from tmux, a driver adds its own."""

MASK = "***"
"""Stands for a secret value."""

_SECRET_NAME = re.compile("KEY|TOKEN|SECRET|PASS", re.IGNORECASE)
_SECRET_LENGTH = 8
_EXPORT = re.compile(r"^export (?P<name>\w+)='(?P<value>[^']*(?:'\\''[^']*)*)'$", re.MULTILINE)
_HIDDEN = "# secret: "
"""Begins the file's first line where variables are secret whatever their names are."""
_SHELL_OWN = frozenset({"IFS", "PPID", "UID", "EUID", "BASHOPTS", "SHELLOPTS", "BASH_VERSINFO"})
"""Names a shell refuses to set, or that change how launch.sh itself is read."""


def agent_environment(
    agent: Agent,
    caller: Mapping[str, str],
    driver_keys: tuple[str, ...],
    env_file_values: Mapping[str, str],
) -> dict[str, str]:
    """What the agent gets, without what launch.sh adds (NBS_*, PATH's first entry, tmux's TERM).

    Later wins: the caller's environment (all of it but the scrubbed, or the clean few), env_file,
    the caller's variables that `env_pass` names (NAME or PREFIX_*; scrubbed ones too), `env`.
    """
    inherited = {name: value for name, value in caller.items() if not scrubbed(name)}
    if agent.environment == "clean":
        inherited = _chosen(inherited, (*CLEAN, *driver_keys))
    return inherited | dict(env_file_values) | _chosen(caller, agent.env_pass) | agent.env


def scrubbed(name: str) -> bool:
    """Whether a variable of the caller stays behind: it describes the caller's own terminal, shell or session."""
    return name in SCRUBBED or name.startswith(SCRUBBED_PREFIX)


def values_file(env: Mapping[str, str], hidden: Collection[str] = ()) -> bytes:
    """The environment as a file that a POSIX shell can source: one `export NAME='value'` per variable, sorted.

    A first line, to the shell a comment, names those that are `hidden`: secret whatever their names say.

    Bytes that are no UTF-8 come out as they went in. Names that are no shell identifiers are left out
    (bash's exported functions among them), and so are the few that a shell keeps for itself.
    """
    names = sorted(name for name in env if IDENTIFIER.fullmatch(name) and name not in _SHELL_OWN)
    first = f"{_HIDDEN}{' '.join(name for name in names if name in hidden)}\n" if hidden else ""
    return os.fsencode(first + "".join(f"export {name}={quote(env[name])}\n" for name in names))


def write_values(path: str, env: Mapping[str, str], hidden: Collection[str] = ()) -> None:
    """Put `values_file(env, hidden)` and a comment with its digest at `path`, 0600 from its first byte, in one rename.

    FleetError if it can't be written.
    """
    content = values_file(env, hidden)
    try:
        put(path, content + _seal(content), 0o600)
    except OSError as error:
        raise FleetError(
            f"can't write the environment values to {path}: {error.strerror}",
            hint="the folder must exist, be yours, and have room",
        ) from error


def read_values(path: str) -> dict[str, str]:
    """The environment that `write_values` put at `path`; OSError if it is not there, or was changed since.

    A part of it would start a client with another home, and so without its sessions.
    """
    text = _text(path)
    content = os.fsencode(text[: text.rfind("# ")])
    if os.fsencode(text) != content + _seal(content):
        raise OSError(errno.EBADMSG, "it is damaged", path)
    return _exported(text)


def read_secrets(path: str) -> tuple[str, ...]:
    """The values to mask of the environment at `path`, longest first; none if it is not there."""
    try:
        text = _text(path)
    except OSError:
        return ()
    return _secrets_in(text)


@lru_cache(maxsize=1)
def _secrets_in(text: str) -> tuple[str, ...]:
    """The values to mask of this file; the agents of a team have equal ones, one after the other."""
    env, first = _exported(text), text.partition("\n")[0]
    hidden = first.removeprefix(_HIDDEN).split() if first.startswith(_HIDDEN) else []
    return secret_values(env, {name: env[name] for name in hidden if name in env})


def _seal(content: bytes) -> bytes:
    return b"# " + hashlib.sha256(content).hexdigest().encode() + b"\n"


def secret_values(env: Mapping[str, str], env_file_values: Mapping[str, str]) -> tuple[str, ...]:
    """The values to mask, longest first.

    All of env_file, and those whose names hold KEY, TOKEN, SECRET or PASS; only of 8 characters or more.
    Each long enough line of a value of several lines counts too, since screens and logs show single lines.
    """
    named = [value for name, value in env.items() if _SECRET_NAME.search(name)]
    values = {part for value in (*env_file_values.values(), *named) for part in (value, *value.splitlines())}
    return tuple(sorted((v for v in values if len(v) >= _SECRET_LENGTH), key=lambda v: (-len(v), v)))


def mask(text: str, secrets: Iterable[str]) -> str:
    """`text` with each of `secrets` replaced by MASK, also where it stands in JSON's spelling."""
    for secret in secrets:
        for spelling in {secret, json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}:
            text = text.replace(spelling, MASK)
    return text


def _text(path: str) -> str:
    with open(path, "rb") as file:
        return os.fsdecode(file.read())


@lru_cache(maxsize=4)
def _exported(text: str) -> dict[str, str]:
    """One object for equal texts, and so never to be changed: mostly the agents of a team share one environment."""
    pairs = ((found["name"], found["value"].replace("'\\''", "'")) for found in _EXPORT.finditer(text))
    return {_once(name): _once(value) for name, value in pairs}


@lru_cache(maxsize=256)
def _once(text: str) -> str:
    """The same object for equal texts: most of an environment is the same for all agents of a team."""
    return text


def _chosen(env: Mapping[str, str], patterns: tuple[str, ...]) -> dict[str, str]:
    """The variables that a pattern (NAME or PREFIX_*) names."""
    names = frozenset(pattern for pattern in patterns if not pattern.endswith("*"))
    prefixes = tuple(pattern[:-1] for pattern in patterns if pattern.endswith("*"))
    return {name: value for name, value in env.items() if name in names or name.startswith(prefixes)}
