"""Which reply is due: reads the directives in a request's own messages. Pure.

    [[say TEXT]]            plain text, stop_reason end_turn
    [[slow SECS TEXT]]      the same, streamed word by word over SECS seconds
    [[wait SECS TEXT]]      headers and message_start only after SECS seconds, then TEXT
    [[until FILE TEXT]]     the same once that file exists, in the control's folder
    [[hang SECS TEXT]]      message_start, then silence (pings) for SECS seconds, then TEXT
    [[think SECS TEXT]]     a thinking block over SECS seconds, then TEXT
    [[bash CMD]]            tool_use Bash {"command": CMD}
    [[bg CMD]]              tool_use Bash with run_in_background
    [[tool NAME JSON]]      any tool_use
    [[tools JSON]]          several tool_use blocks in one reply: [["Name", {...}], ...]
    [[saytool TEXT || NAME JSON]]   a text block, then a tool_use
    [[plan TEXT]]           Write of the plan file that plan mode named (then use [[tool ExitPlanMode {}]])
    ((VERB ...))            the same inside a subagent's prompt (a [[tool Agent {"prompt": "((say x))"}]])
    [[err STATUS N]]        the first N requests for this step get HTTP STATUS, then "recovered"
    [[streamerr TYPE]]      an SSE error event in mid-stream
    [[drop]]                the connection is closed in mid-stream
    [[stop REASON TEXT]]    text with that stop_reason (max_tokens, refusal, pause_turn ...)
    [[usage N TEXT]]        a reply that claims N input tokens (drives automatic compaction)

The last user message that holds directives is the script; each directive is one assistant reply; the one due is
the number of assistant messages after it. After the last directive, or without any: "ok: <first 60 characters>".
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from typing import Any

VERBS = "say|slow|wait|until|hang|think|bash|bg|tools|tool|saytool|plan|err|streamerr|drop|stop|usage"
DIRECTIVE = re.compile(rf"\[\[({VERBS})(?:\s+(.*?))?\]\](?!\])", re.DOTALL)
REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
SUMMARY = "<analysis>short</analysis><summary>SUMMARY of the conversation so far.</summary>"

Body = dict[str, Any]


@dataclass(frozen=True)
class Directive:
    """One reply to give. `key` tells the same step of the same conversation again; None where nothing is counted."""

    verb: str
    arg: str
    key: str | None = None

    def __str__(self) -> str:
        return f"[[{self.verb} {self.arg[:80]}]]"

    @property
    def words(self) -> tuple[str, str]:
        """The first word of the argument, and the rest."""
        head, _, rest = self.arg.partition(" ")
        return head, rest


def texts(content: object) -> list[str]:
    """The text blocks of one message's content (a string, or a list of blocks)."""
    if isinstance(content, str):
        return [content]
    if not isinstance(content, list):
        return []
    return [str(b.get("text", "")) for b in content if isinstance(b, dict) and b.get("type") == "text"]


def text_of(message: Body) -> str:
    """All text of one message."""
    return "\n".join(texts(message.get("content")))


def strip_reminders(text: str) -> str:
    """Drop the client's own reminders, but keep one that carries directives: mail arrives in that wrapper."""
    return REMINDER.sub(lambda found: found[0] if DIRECTIVE.search(found[0]) else "", text)


def parse(text: str) -> Directive | None:
    """The first directive in a text."""
    found = DIRECTIVE.search(text)
    return Directive(found[1], found[2] or "") if found else None


def summary_wanted(body: Body) -> bool:
    """Whether this is the client's compaction request."""
    messages = body.get("messages") or []
    last = text_of(messages[-1]) if messages else ""
    return "detailed summary of the conversation" in last or "summarizing conversations" in system_of(body)


def system_of(body: Body) -> str:
    """The system prompt as one text."""
    return "\n".join(texts(body.get("system")))


def side_request(body: Body, *, compact_seconds: float) -> Directive | None:
    """The canned reply to what the client asks for itself: summaries, suggestions, titles. None: a real turn."""
    messages = body.get("messages") or []
    last = text_of(messages[-1]) if messages else ""
    if summary_wanted(body):
        return Directive("slow", f"{compact_seconds} {SUMMARY}") if compact_seconds else Directive("say", SUMMARY)
    if "[SUGGESTION MODE" in last:
        return Directive("say", "run the tests")
    if not body.get("tools"):
        return Directive("say", '{"title": "A title"}' if "title" in system_of(body) + last else "a side answer")
    return None


def wished_word(body: Body) -> str | None:
    """The word that the last message which asks for one wants to hear."""
    wishes = [re.search(r"this one word and nothing else: (\w+)", text_of(m)) for m in body.get("messages") or ()]
    return next((found[1] for found in reversed(wishes) if found), None)


def pick(body: Body) -> Directive:
    """The directive due for a turn's request."""
    messages = body.get("messages") or []
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].get("role") not in ("user", "system"):
            continue
        text = strip_reminders(text_of(messages[index]))
        if "[[" not in text:
            text = text.replace("((", "[[").replace("))", "]]")
        steps = DIRECTIVE.findall(text)
        if steps:
            due = sum(1 for later in messages[index + 1 :] if later.get("role") == "assistant")
            if due < len(steps):
                key = hashlib.sha256(f"{text}{due}/{index}".encode()).hexdigest()
                return Directive(steps[due][0], steps[due][1], key)
            break
    said = [strip_reminders(text_of(m)).strip() for m in messages if m.get("role") == "user"]
    last = next((text for text in reversed(said) if text), "")
    return Directive("say", "ok: " + last[:60].replace("\n", " "))
