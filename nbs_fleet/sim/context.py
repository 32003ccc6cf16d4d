"""The conversation as the model would see it, and a log of each request for tests."""

from __future__ import annotations

import json
import os
import time
from typing import Any

Json = dict[str, Any]

QUEUED = (
    "The user sent a new message while you were working:\n{}\n\nIMPORTANT: After completing your current task, you "
    "MUST address the user's message above. Do not ignore it."
)
MAIL_BUSY = (
    "[SYSTEM NOTIFICATION - NOT USER INPUT]\nThis is an automated background-task event, NOT a message from the user.\n"
    "Do NOT interpret this as user acknowledgement, confirmation, or response to any pending question.\n\n"
)


def reminder(text: str) -> str:
    """Text in the client's own wrapper."""
    return f"<system-reminder>\n{text}\n</system-reminder>"


class Context:
    """Messages in the order of an API request; consecutive texts of one role are blocks of one message."""

    def __init__(self, log_path: str | None) -> None:
        self.messages: list[Json] = []
        self.log_path = log_path
        self.requests = 0

    def clear(self) -> None:
        """Forget everything (/clear, /compact)."""
        self.messages = []

    def _add(self, role: str, blocks: list[Json]) -> None:
        if self.messages and self.messages[-1]["role"] == role:
            before = self.messages[-1]["content"]
            if before and before[-1].get("type") == "text" and not before[-1]["text"].endswith("\n"):
                before[-1] = {"type": "text", "text": before[-1]["text"] + "\n"}
            before += blocks
        else:
            self.messages.append({"role": role, "content": blocks})

    def user(self, text: str) -> None:
        """Something a person said, or the client in their stead."""
        self._add("user", [{"type": "text", "text": text}])

    def system(self, text: str) -> None:
        """Something the client says to the model."""
        self._add("system", [{"type": "text", "text": text}])

    def assistant(self, blocks: list[Json]) -> None:
        """One reply."""
        self._add("assistant", blocks)

    def results(self, blocks: list[Json], notes: list[str]) -> None:
        """Tool results, with what hooks had to say beside them."""
        self._add("user", blocks + [{"type": "text", "text": reminder(note)} for note in notes])

    def drop_last_user(self) -> None:
        """Un-send: the last prompt was taken back before anything came of it."""
        if self.messages and self.messages[-1]["role"] == "user":
            self.messages.pop()

    def request(self, session_id: str, model: str, system: str | None) -> None:
        """Note one request: a JSON line with n, t (s), pid, session, model, system and all messages."""
        self.requests += 1
        if self.log_path is None:
            return
        line = {
            "n": self.requests,
            "t": round(time.time(), 3),
            "pid": os.getpid(),
            "session": session_id,
            "model": model,
            "system": system or "",
            "messages": self.messages,
        }
        try:
            with open(self.log_path, "a", encoding="utf-8") as file:
                file.write(json.dumps(line, ensure_ascii=False) + "\n")
        except OSError:
            return

    def restore(self, lines: list[Json]) -> None:
        """Rebuild from the lines of a transcript, as a real resume does.

        A tool call without a result is left out, and so is all that a compaction put a summary in place of.
        """
        cut = cut_calls(lines)
        for line in lines:
            kind = line.get("type")
            if kind == "assistant" and not line.get("isApiErrorMessage"):
                blocks = [b for b in _blocks(line) if b.get("type") != "tool_use" or b.get("id") not in cut]
                if blocks:
                    self._add("assistant", blocks)
            elif kind == "user":
                self._add("user", _blocks(line))
            elif kind == "system" and line.get("subtype") == "compact_boundary":
                self.clear()
            elif kind == "attachment":
                self._attachment(line.get("attachment") or {})

    def _attachment(self, attachment: Json) -> None:
        if attachment.get("type") == "queued_command":
            text = str(attachment.get("prompt", ""))
            mail = attachment.get("commandMode") == "task-notification"
            self.system(MAIL_BUSY + text if mail else QUEUED.format(text))
        elif attachment.get("type") == "hook_additional_context":
            for text in attachment.get("content") or []:
                self.system(f"{attachment.get('hookName')} hook additional context: {text}")


def cut_calls(lines: list[Json]) -> set[str]:
    """The ids of the tool calls in a transcript that never got a result."""
    blocks = [block for line in lines for block in _blocks(line)]
    done = {block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"}
    return {str(b["id"]) for b in blocks if b.get("type") == "tool_use" and b.get("id") not in done}


def _blocks(line: Json) -> list[Json]:
    content = (line.get("message") or {}).get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [b for b in content or [] if isinstance(b, dict)]
