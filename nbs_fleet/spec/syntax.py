"""What the YAML parser's complaints mean for the person who wrote the file."""

from __future__ import annotations

import re
from collections.abc import Callable

import yaml

from nbs_fleet.spec.problems import printable, quoted

_CHARACTER = re.compile(r"found character (['\"])(.*)\1 that cannot start any token")
_ESCAPE = re.compile(r"found unknown escape character (['\"])(.*)\1")
_CLOSE = re.compile(r"expected ',' or '([\]}])', but got (.*)")
_UNEXPECTED = re.compile(r"expected the node content, but found (.*)")

_PREFIXES = (
    (
        "mapping values are not allowed here",
        '":" where no key can stand; indent keys of one mapping alike, and quote text that holds ": "',
    ),
    (
        "expected <block end>",
        "wrong indentation, or text after a closing quote; keys of one mapping start in the same column",
    ),
    ("could not find expected ':'", 'a key without its ":"; write key: value'),
    ("expected '<document start>'", "wrong indentation; the keys of the file start in column 1"),
    ("found undefined tag handle", "tags are not allowed; write a plain value"),
    ("found incompatible YAML document", "this YAML version is not supported; remove the %YAML line"),
    ("expected chomping or indentation", 'text on the line of "|" or ">"; begin it on the next line'),
    ("found duplicate anchor", "an anchor of that name exists; give each its own name"),
)


def explain(error: yaml.MarkedYAMLError) -> tuple[int, int, str]:
    """Line and column (from 1) of a syntax error, and the sentence that says what would be right."""
    mark = error.problem_mark
    problem = error.problem or "can't be read"
    context = error.context_mark
    unclosed = "unexpected end of stream" in problem or "unexpected document separator" in problem
    if unclosed and context is not None:
        return (
            context.line + 1,
            context.column + 1,
            "this quote is never closed; close it, or double it inside the text",
        )
    line, col = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    return line, col, _sentence(problem, context)


def _sentence(problem: str, context: yaml.Mark | None) -> str:
    for shape, writer in _SHAPES:
        found = shape.match(problem)
        if found:
            return writer(found, context)
    for prefix, sentence in _PREFIXES:
        if problem.startswith(prefix):
            return sentence
    return f"not valid YAML ({printable(problem)}); check the quotes and indentation here"


def _character(found: re.Match[str], _context: yaml.Mark | None) -> str:
    if found.group(2) in ("\\t", "\t"):
        return "a tab; indent and separate with spaces"
    return f"a value can't begin with {quoted(found.group(2))}; quote the value"


def _escape(found: re.Match[str], _context: yaml.Mark | None) -> str:
    return f'"\\{printable(found.group(2))}" is no escape; double the backslash or use single quotes'


def _unclosed(found: re.Match[str], context: yaml.Mark | None) -> str:
    what = "list" if found.group(1) == "]" else "mapping"
    begun = f" that begins at {context.line + 1}:{context.column + 1}" if context is not None else ""
    if found.group(2) == "'{'":
        return f'"{{" inside a value of the {what}{begun}; quote a value that holds ${{NAME}}'
    return f'the {what}{begun} is not closed here; write "," between its parts and "{found.group(1)}" at its end'


def _unexpected(found: re.Match[str], _context: yaml.Mark | None) -> str:
    return f"{quoted(found.group(1).strip(chr(39)))} where a value should be; remove it or quote the value"


_SHAPES: tuple[tuple[re.Pattern[str], Callable[[re.Match[str], yaml.Mark | None], str]], ...] = (
    (_CHARACTER, _character),
    (_ESCAPE, _escape),
    (_CLOSE, _unclosed),
    (_UNEXPECTED, _unexpected),
)
