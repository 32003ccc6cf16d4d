"""Which tests are meant: `-k EXPR`, words joined by `and`, `or`, `not` and brackets. Pure."""

from __future__ import annotations

import re
from collections.abc import Callable

Choice = Callable[[str], bool]
_TOKEN = re.compile(r"\(|\)|[^\s()]+")


def choice(expression: str) -> Choice:
    """Whether a test's name is meant: a word fits where it stands in the name, in any case of letters.

    Raises ValueError that says what is wrong with the expression.
    """
    parser = _Parser(_TOKEN.findall(expression))
    found = parser.either()
    if parser.tokens:
        raise ValueError(f"has {parser.tokens[0]!r} where and, or or the end was expected")
    return found


class _Parser:
    """Reads tokens from the left."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens = tokens

    def either(self) -> Choice:
        found = self.both()
        while self._takes("or"):
            found = _or(found, self.both())
        return found

    def both(self) -> Choice:
        found = self.single()
        while self._takes("and"):
            found = _and(found, self.single())
        return found

    def single(self) -> Choice:
        if not self.tokens:
            raise ValueError("ends where a word was expected")
        token = self.tokens.pop(0)
        if token == "not":  # noqa: S105 - a word of the expression
            inner = self.single()
            return lambda name: not inner(name)
        if token == "(":  # noqa: S105
            found = self.either()
            if not self._takes(")"):
                raise ValueError("lacks a closing bracket")
            return found
        if token in (")", "and", "or"):
            raise ValueError(f"has {token!r} where a word was expected")
        word = token.casefold()
        return lambda name: word in name.casefold()

    def _takes(self, token: str) -> bool:
        if self.tokens[:1] == [token]:
            self.tokens.pop(0)
            return True
        return False


def _or(left: Choice, right: Choice) -> Choice:
    return lambda name: left(name) or right(name)


def _and(left: Choice, right: Choice) -> Choice:
    return lambda name: left(name) and right(name)
