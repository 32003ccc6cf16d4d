"""What a message's text becomes before it reaches an agent, rung by rung, and in a story. Pure."""

from __future__ import annotations

import re

from nbs_fleet.errors import UsageError

LIMIT = 100_000
"""Bytes (UTF-8) of the longest text: as much as was seen to arrive whole by each rung (Claude Code 2.1.197)."""
NOTICE = (
    "Waiting for you: {summary}. Read it with `nbs-fleet chat read CHAT --unread` and `nbs-fleet bus check`; "
    "answer in the chat, and acknowledge events with `nbs-fleet bus ack`."
)
"""What an agent is told when something waits for it; never the content."""
NOTICE_SKILL = "nbs-notify"
NOTICE_CALL = f"/{NOTICE_SKILL} {{summary}}"
SUMMARY = 200
"""Characters of a text in a story."""

_LINE_END = re.compile(r"\r\n?")
_NAMES = {"\x00": "NUL", "\x07": "BEL", "\x08": "BS", "\x1b": "ESC", "\x7f": "DEL"}
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")
_BIDI = re.compile(r"[\u202a-\u202e\u2066-\u2069]")
"""Embeddings, overrides and isolates: they can show a text in another order than the one it is read in."""
_TAG = re.compile(r"<(?=\s*/?\s*(?:system-reminder|task-notification)(?![\w-]))", re.IGNORECASE)
_BREAK = "\u200b"
_COMPLETED = re.compile(r"(?:@\S*|\\)\Z")
_COMMAND = re.compile(r"/[A-Za-z0-9][\w:.-]*(?: .*)?")


def clean(text: str) -> tuple[str, tuple[str, ...]]:
    """The text without what a terminal or a client may take for a command, and remarks on what was changed.

    CRLF and CR become LF; other control characters except newline and tab go, and so do characters that reorder
    text; halves of surrogate pairs (bytes that were no UTF-8) become U+FFFD. A clean text stays as it is.
    """
    remarks: list[str] = []
    text, ends = _LINE_END.subn("\n", text)
    if ends:
        remarks.append(f"{_count(ends, 'line end')} changed to LF")
    controls = _CONTROL.findall(text)
    if controls:
        names = ", ".join(sorted({_NAMES.get(c, f"U+{ord(c):04X}") for c in controls}))
        remarks.append(f"{_count(len(controls), 'control character')} removed ({names})")
        text = _CONTROL.sub("", text)
    text, reordering = _BIDI.subn("", text)
    if reordering:
        remarks.append(f"{_count(reordering, 'character')} removed that would reorder text")
    text, halves = _SURROGATE.subn("\ufffd", text)
    if halves:
        remarks.append(f"{_count(halves, 'character')} replaced that can't be written as UTF-8")
    return text, tuple(remarks)


def check_size(text: str) -> None:
    """Raise UsageError if a clean text is longer than LIMIT."""
    size = len(text.encode("utf-8", "replace"))
    if size > LIMIT:
        raise UsageError(
            f"the text has {size:,} bytes; a message may have {LIMIT:,}",
            hint="put it into a file and send the file's path",
        )


def check_command(text: str) -> None:
    """Raise UsageError unless this is one line that the client takes for a command: `/name` and what follows."""
    if not _COMMAND.fullmatch(text):
        raise UsageError(
            f'"{summary(text, 60)}" is no command of a client', hint="write one line that begins with /, like /compact"
        )


def for_mail(text: str) -> tuple[str, bool]:
    """The text for a client's mail, and whether it was changed.

    Claude Code 2.1.197 puts mail into `<task-notification>` and `<system-reminder>` and escapes nothing (measured):
    only these two tags, opening or closing, are broken up by an invisible character; other text stays as written.
    """
    broken, count = _TAG.subn("<" + _BREAK, text)
    return broken, count > 0


def for_keys(text: str) -> tuple[str, tuple[str, ...]]:
    """The text as it is pasted, and remarks on what was changed.

    Measured with Claude Code 2.1.197: a pasted tab becomes four blanks, which is done here so that what arrives is
    what the story has; Enter after a last `@word` picks a file name instead of submitting, and after a backslash
    it begins a line; a blank at the end prevents both and is not submitted.
    """
    remarks: tuple[str, ...] = ()
    if "\t" in text:
        text = text.replace("\t", "    ")
        remarks = ("tabs changed to four blanks",)
    if _COMPLETED.search(text):
        text += " "
    return text, remarks


def one_line(text: str) -> str:
    """The text on one line, for clients whose input takes no newline: lines joined by ` / `, empty ones left out."""
    return " / ".join(line.strip() for line in text.split("\n") if line.strip()).replace("\t", " ")


def plain_line(text: str) -> tuple[str, tuple[str, ...]]:
    """One line of ASCII, and remarks, for a client that takes only that; other characters become `?`.

    claudeless 0.2.2 ends in a panic over any other character in its input box (measured), at each try again.
    """
    line = one_line(text.replace(_BREAK, " "))
    plain = line.encode("ascii", "replace").decode("ascii")
    others = sum(not c.isascii() for c in line)
    return plain, ((f"{_count(others, 'character')} replaced that this client can't take",) if others else ())


def notice(template: str | None, summary: str, handle: str, *, by_skill: bool = False, plain: bool = False) -> str:
    """The text of a notice: the team file's template with `{summary}` and `{handle}` filled in, else our own words.

    `by_skill`: the agent has the skill for it, whose call they are then. `plain`: no call of anything.
    """
    text = template or (NOTICE_CALL if by_skill else NOTICE)
    if plain and text.startswith("/"):
        text = NOTICE
    return text.replace("{summary}", summary).replace("{handle}", handle)


def recovery(
    summary: str, handle: str, chats: tuple[str, ...], buses: tuple[str, ...], skills: tuple[str, ...] = ()
) -> str:
    """What an agent is told when notices had no effect: who it is, each command in full, the files of its skills."""
    lines = [f"You are {handle}. This waits for you, and reminders had no effect: {summary}.", "Please do this now:"]
    lines += [f"- `nbs-fleet chat read {chat} --unread` reads the chat {chat}" for chat in chats]
    lines += [f"- `nbs-fleet bus check {bus}` lists the events in {bus}" for bus in buses]
    lines.append(
        "Then answer with `nbs-fleet chat send CHAT HANDLE TEXT`, and `nbs-fleet bus ack DIR EVENT` what is done."
    )
    lines += [f"If you don't know the skill {path.split('/')[-2]} any more, read {path}." for path in skills]
    return "\n".join(lines)


def summary(text: str, length: int = SUMMARY) -> str:
    """The beginning of the text on one line, of at most `length` characters, for a story or a table."""
    # Whatever the length of the text, only its beginning has to be looked at.
    head = one_line(clean(text[: length * 4 + 100])[0])
    if len(head) > length or len(text) > length * 4 + 100:
        return head[: length - 1].rstrip() + "…"
    return head


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"
