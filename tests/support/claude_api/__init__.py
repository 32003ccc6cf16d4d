"""A scripted stand-in for the Messages API: the real Claude Code works against it, without account or network.

What it answers is written in the prompt itself, as `[[...]]` directives (`directives.py` lists them). It keeps no
conversation: which directive is due is counted from the messages of each request, so it works across restarts and
resumed sessions, and any number of clients may share one server. It listens on loopback only.

In a test: `with ScriptedApi(log_dir) as api: ... api.url ... api.requests()`. By hand:
`python -m tests.support.claude_api --port 0 --log DIR` prints the port it took.
"""

from __future__ import annotations

from tests.support.claude_api.log import Request
from tests.support.claude_api.server import ScriptedApi

__all__ = ["Request", "ScriptedApi"]
