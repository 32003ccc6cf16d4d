"""A scripted stand-in for the model APIs that other clients speak: chat completions, responses, Gemini.

What it answers is written in the prompt itself, with the same `[[...]]` directives as the scripted Messages API
(`tests/support/claude_api/directives.py`): say, slow, wait, bash, tool and err are known here. `[[bash CMD]]` calls
whatever tool the client offers for shell commands. Loopback only.

In a test: `with OtherApi() as api: ... api.url("ana") ... api.turns("ana")`; the word after the port tells apart who
asks. By hand: `python -m tests.support.other_api` prints the port it took.
"""

from __future__ import annotations

from tests.support.other_api.dialects import Asked
from tests.support.other_api.server import OtherApi, Seen

__all__ = ["Asked", "OtherApi", "Seen"]
