r"""Finds the commands an agent writes to its sidecar in its own text, and none that it only quotes. Pure.

A command is a line of its own that begins with `\nbs-`. Whatever may be a quotation is left alone: code blocks, inline
code, quoted lines, text between quotation marks, indented lines, HTML blocks. To miss a command costs a second try; to
take one from a quotation would let others speak for the agent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from nbs_fleet.nbs.control_commands import Command, Problem, parse_command

_COMMAND = re.compile(r" {0,3}(\\nbs-[a-z-]+(?:[ \t].*)?)")
_FENCE = re.compile(
    r"(?P<before>[ \t]*(?:>[ \t]*|[-*+][ \t]+|[0-9]{1,9}[.)][ \t]+)*)(?P<fence>`{3,}|~{3,})(?P<rest>.*)"
)
_QUOTE = re.compile(r"[ \t]*(?:[-*+][ \t]+|[0-9]{1,9}[.)][ \t]+)*>")
_OPENING = re.compile(r"<(pre|code|blockquote|script|style|textarea)\b", re.IGNORECASE)
_TICKS = re.compile(r"`+")
_MARKS = re.compile('[`"“”„«»]')


def find_commands(text: str) -> tuple[Command | Problem, ...]:
    """The commands in a text that the agent itself wrote (never tool output, never another's message), in order.

    Lines with an unknown verb come as problems, so that the agent can be told.
    """
    found: list[Command | Problem] = []
    for paragraph in _paragraphs(text):
        for number, line in enumerate(paragraph):
            match = _COMMAND.fullmatch(line)
            if match is None or _MARKS.search(line) or _is_inside("\n".join(paragraph), "\n".join(paragraph[:number])):
                continue
            command = parse_command(match[1])
            if command is not None:
                found.append(command)
    return tuple(found)


def _paragraphs(text: str) -> Iterator[list[str]]:
    """The lines outside of blocks of code, quotations and HTML, paragraph by paragraph."""
    paragraph: list[str] = []
    fence: tuple[str, int] | None = None
    closing: str | None = None
    quoted = False
    for line in text.replace("\r\n", "\n").split("\n"):
        if fence is not None:
            fence = None if _closes(line, fence) else fence
            continue
        if closing is not None:
            closing = None if closing in line.lower() else closing
            continue
        fence, closing = _opens(line)
        if quoted:
            # A line right after a quoted one still belongs to the quotation.
            quoted = bool(line.strip()) and fence is None
        quoted = quoted or _QUOTE.match(line) is not None
        if fence is None and closing is None and not quoted and line.strip():
            paragraph.append(line)
            continue
        yield paragraph
        paragraph = []
    yield paragraph


def _opens(line: str) -> tuple[tuple[str, int] | None, str | None]:
    """(the fence of code that begins here and its indentation, the text that ends HTML that begins here)."""
    match = _FENCE.fullmatch(line)
    if match is not None and not ("`" in match["fence"] and "`" in match["rest"]):
        return (match["fence"], len(match["before"])), None
    tag = _OPENING.search(line)
    if tag is not None:
        end = f"</{tag[1].lower()}>"
        return None, None if end in line.lower()[tag.end() :] else end
    if "<!--" in line and "-->" not in line.partition("<!--")[2]:
        return None, "-->"
    return None, None


def _closes(line: str, fence: tuple[str, int]) -> bool:
    """Whether the line ends a block of code: the same marks, as many at least, alone, no deeper than they began."""
    marks, indentation = fence
    bare = line.lstrip(" \t>")
    end = bare.rstrip()
    return set(end) == {marks[0]} and len(end) >= len(marks) and len(line) - len(bare) <= indentation + 3


def _is_inside(paragraph: str, before: str) -> bool:
    """Whether what follows `before` in a paragraph is inside of inline code or of quotation marks."""
    if before.count('"') % 2 or any(before.count(a) > before.count(b) for a, b in ("“”", "„“", "«»")):
        return True
    runs = [(match.start(), match.end()) for match in _TICKS.finditer(paragraph)]
    while runs:
        start, end = runs.pop(0)
        same = next((n for n, run in enumerate(runs) if run[1] - run[0] == end - start), None)
        if same is not None:
            if start < len(before) < runs[same][1]:
                return True
            del runs[: same + 1]
    return False
