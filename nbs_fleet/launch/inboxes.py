"""Puts one message into a client's own inbox: by a program, a line in a file, or a request on loopback."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
from collections.abc import Mapping

from nbs_fleet.drivers.recipes import TEXT, Command, Inbox, Lines, MailFolder, Request, filled

SECONDS = 30.0
"""How long a client's own program or server may take (measured: 0.1 s)."""


async def hand(inbox: Inbox, text: str, *, env: Mapping[str, str], folder: str) -> str:
    """Give `text` to the client; why it surely has not got it, or nothing.

    An answer that does not come in time says nothing: the client may have taken it, so that is no problem here.
    `env` is the agent's environment, `folder` its working directory.
    """
    match inbox:
        case Command():
            return await _run(inbox, text, env, folder)
        case Lines():
            return await asyncio.to_thread(_append, inbox, text)
        case Request():
            return await asyncio.to_thread(_post, inbox, text, env)
        case MailFolder():
            return "its mail is a folder"


async def _run(inbox: Command, text: str, env: Mapping[str, str], folder: str) -> str:
    argv = filled(inbox.argv, {TEXT: text})
    try:
        running = await asyncio.create_subprocess_exec(
            *argv,
            cwd=folder,
            env={**env, **inbox.env},
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
    except OSError as error:
        return f"{argv[0]}: {error.strerror}"
    try:
        async with asyncio.timeout(SECONDS):
            said, _ = await running.communicate()
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            running.kill()
        await running.wait()
        return ""
    last = next((line for line in reversed(said.decode("utf-8", "replace").splitlines()) if line.strip()), "no output")
    # The client's words may repeat the message.
    return f"{argv[0]} ended with {running.returncode}: {last[:200]}" if running.returncode else ""


def _append(inbox: Lines, text: str) -> str:
    line = json.dumps(filled(inbox.line, {TEXT: text}), ensure_ascii=False) + "\n"
    try:
        # One write of a whole line; without O_CREAT, since a file that the client never opened is read by nobody.
        handle = os.open(inbox.path, os.O_WRONLY | os.O_APPEND)
        try:
            os.write(handle, line.encode("utf-8", "replace"))
        finally:
            os.close(handle)
    except OSError as error:
        return f"{inbox.path}: {error.strerror}"
    return ""


def _post(inbox: Request, text: str, env: Mapping[str, str]) -> str:
    # Few clients need it, and it is two megabytes of every supervisor.
    import urllib.error  # noqa: PLC0415
    import urllib.request  # noqa: PLC0415

    body = json.dumps(filled(inbox.body, {TEXT: text})).encode()
    headers = {"Content-Type": "application/json"}
    password = env.get(inbox.password_env or "")
    if inbox.user is not None and password:
        headers["Authorization"] = "Basic " + base64.b64encode(f"{inbox.user}:{password}".encode()).decode()
    if not inbox.url.startswith(("http://127.0.0.1:", "http://[::1]:")):
        return "its inbox is not on this machine"
    request = urllib.request.Request(inbox.url, data=body, headers=headers, method="POST")  # noqa: S310 - loopback, see above
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        with opener.open(request, timeout=SECONDS):
            return ""
    except urllib.error.HTTPError as error:
        return f"its server said {error.code}"
    except urllib.error.URLError as error:
        return "" if isinstance(error.reason, TimeoutError) else f"its server can't be reached: {error.reason}"
    except TimeoutError:
        return ""
