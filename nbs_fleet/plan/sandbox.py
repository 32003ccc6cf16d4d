"""One template in its sandbox: text and values in, text or a problem with its line out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from difflib import get_close_matches
from itertools import chain
from posixpath import join, normpath
from types import TracebackType
from typing import Any

from jinja2 import (
    BaseLoader,
    StrictUndefined,
    TemplateError,
    TemplateNotFound,
    TemplateRuntimeError,
    TemplateSyntaxError,
    UndefinedError,
)
from jinja2 import meta as jinja_meta
from jinja2 import nodes as jinja_nodes
from jinja2.exceptions import SecurityError
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import missing

from nbs_fleet.plan.templates import LIMIT, PACKAGED, PlanProblem, Template, fault_of

_STEPS = 100_000
"""Loop turns and calls that one prompt may take: far more than text needs, and done within a second."""

_LONGEST = 1_000_000
"""The longest text or list that a multiplication may make."""

_RETURNS = "\u205f\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u3000\x1c\x1d\x1e\x1f"
"""Candidates to stand in for a carriage return: whitespace to Jinja2, and hardly ever in a prompt."""


def includes(template: Template) -> tuple[str, ...]:
    """Keys of `prompts` that the template's includes may need, for whoever reads them in; () if it does not parse.

    For `{% include "NAME" %}`: NAME in the template's folder, and the packaged template NAME.
    """
    environment = _Environment(_Loader({}, template, _FIRST_RETURN))
    try:
        names = jinja_meta.find_referenced_templates(environment.parse(_conceal(template.text, _FIRST_RETURN)))
        return tuple(chain.from_iterable(_places(name, template.folder) for name in names if name))
    except (TemplateError, RecursionError):
        return ()


class Renderer:
    """Renders templates that may include each other; compiles each one once."""

    def __init__(self, prompts: Mapping[str, str]) -> None:
        """`prompts`: absolute path or `template:NAME` -> text, all that may be included."""
        self._prompts = prompts
        self._candidates = _free(_RETURNS, prompts.values())
        self._returns = any("\r" in text for text in prompts.values())
        self._environments: dict[tuple[Template, str], _Environment] = {}

    def render(self, template: Template, values: Mapping[str, Any]) -> str | PlanProblem:
        """The text. What stands outside Jinja2's marks survives byte for byte, CR and final newlines included.

        A problem is: a mistake in the template or in what it includes, a name that is not defined, something the
        sandbox forbids, a loop that takes too long, a text over LIMIT bytes, a NUL, a text that is no UTF-8.
        """
        stand_in = self._stand_in(template, values)
        environment = self._environment(template, stand_in)
        try:
            pieces = environment.get_template(template.where).generate(dict(values))
            text = _gather(pieces, stand_in)
        except TemplateSyntaxError as error:
            return PlanProblem(error.filename or template.where, error.lineno, str(error.message))
        except _TEMPLATE_FAULTS as error:
            where, line = _at(error.__traceback__, environment.known, template.where)
            return PlanProblem(where, line, _words(error, values))
        fault = fault_of(text)
        return PlanProblem(template.where, None, fault) if fault else text

    def _stand_in(self, template: Template, values: Mapping[str, Any]) -> str:
        """What a return is written as meanwhile; itself (which Jinja2 makes a newline) if nothing else is left."""
        if not self._returns and "\r" not in template.text:
            return "\r"
        return (_free(self._candidates, chain([template.text], _texts(values))) or "\r")[0]

    def _environment(self, template: Template, stand_in: str) -> _Environment:
        found = self._environments.get((template, stand_in))
        if found is None:
            texts = {**self._prompts, template.where: template.text}
            found = _Environment(_Loader(texts, template, stand_in))
            self._environments[template, stand_in] = found
        found.steps = 0
        return found


_TEMPLATE_FAULTS = (
    *(TemplateError, ArithmeticError, AttributeError, LookupError, MemoryError, RecursionError),
    *(SyntaxError, TypeError, ValueError),
)
"""What a template's own words can bring about: a filter on the wrong type, a division by zero, too deep a nest, ..."""


class _TooLongError(TemplateError):
    """The output passed the limit; the rest is not worth making."""


class _Missing(StrictUndefined):
    """An undefined value; for a missing key it says which there are."""

    __slots__ = ()

    def __init__(
        self,
        hint: str | None = None,
        obj: Any = missing,
        name: str | None = None,
        exc: type[TemplateRuntimeError] = UndefinedError,
    ) -> None:
        if hint is None and isinstance(obj, Mapping):
            hint = f"there is no key {name!r}{_instead(str(name), obj)}"
        super().__init__(hint, obj, name, exc)


class _Loader(BaseLoader):
    """Templates out of a mapping: an include is looked for beside the prompt, then among the packaged ones."""

    def __init__(self, texts: Mapping[str, str], main: Template, stand_in: str) -> None:
        self.texts = texts
        self.main = main
        self.stand_in = stand_in
        self.known: set[str] = set()

    def get_source(self, environment: Any, template: str) -> tuple[str, str, None]:
        del environment
        keys = (template,) if template == self.main.where else _places(template, self.main.folder)
        for key in keys:
            if key in self.texts:
                self.known.add(key)
                return _conceal(self.texts[key], self.stand_in), key, None
        raise TemplateNotFound(template, f"no template {template!r} beside the prompt or among the packaged ones")


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox, with a bound on the work that one rendering may do."""

    intercepted_binops = frozenset({"*", "**"})

    def __init__(self, loader: _Loader) -> None:
        super().__init__(loader=loader, undefined=_Missing, keep_trailing_newline=True)
        self.known = loader.known
        self.steps = 0
        self.filters["_counted"] = self._counted
        # The same file must give the same prompt each time, or every `up` would restart the agent.
        del self.filters["random"], self.globals["lipsum"]

    def _parse(self, source: str, name: str | None, filename: str | None) -> jinja_nodes.Template:
        """Parse, and count the turns of each loop."""
        tree = super()._parse(source, name, filename)
        for loop in tree.find_all(jinja_nodes.For):
            loop.iter = jinja_nodes.Filter(loop.iter, "_counted", [], [], None, None, lineno=loop.lineno)
        return tree

    def _counted(self, items: Iterable[Any]) -> Iterable[Any]:
        for item in items:
            self._step()
            yield item

    def _step(self) -> None:
        self.steps += 1
        if self.steps > _STEPS:
            raise SecurityError(f"takes more than {_STEPS} loop turns and calls")

    def call(self, context: Context, obj: Any, /, *args: Any, **kwargs: Any) -> Any:
        self._step()
        return super().call(context, obj, *args, **kwargs)

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator == "**" or _length(left) * _number(right) > _LONGEST or _length(right) * _number(left) > _LONGEST:
            raise SecurityError(f"the result of {operator} may be too large")
        return super().call_binop(context, operator, left, right)


_FIRST_RETURN = _RETURNS[0]


def _conceal(text: str, stand_in: str) -> str:
    """Jinja2 makes every line end a plain newline (3.1, read in its lexer); a stand-in saves the returns."""
    return text.replace("\r", stand_in)


def _free(candidates: str, texts: Iterable[str]) -> str:
    """Those of the candidates that occur in none of the texts."""
    for text in texts:
        candidates = "".join(c for c in candidates if c not in text)
    return candidates


def _gather(pieces: Iterable[str], stand_in: str) -> str:
    """Join what the template gives, but stop where it is too long anyway."""
    texts: list[str] = []
    size = 0
    for piece in pieces:
        texts.append(piece)
        size += len(piece)
        if size > LIMIT:
            break
    text = "".join(texts).replace(stand_in, "\r")
    if size > LIMIT:
        raise _TooLongError(f"the prompt is longer than {LIMIT // 1000} kB")
    return text


def _places(name: str, folder: str | None) -> tuple[str, ...]:
    """Where an include may be: nowhere for a name that leaves the folder."""
    if name.startswith(PACKAGED):
        return (name,)
    if name.startswith("/") or normpath(name).startswith(".."):
        return ()
    packaged = PACKAGED + normpath(name)
    return (packaged,) if folder is None else (normpath(join(folder, name)), packaged)


def _at(trace: TracebackType | None, known: set[str], where: str) -> tuple[str, int | None]:
    """The template and line that an error comes from: the innermost frame that is a template's."""
    found: tuple[str, int | None] = (where, None)
    while trace is not None:
        if trace.tb_frame.f_code.co_filename in known:
            found = (trace.tb_frame.f_code.co_filename, trace.tb_lineno)
        trace = trace.tb_next
    return found


def _instead(name: str, known: Iterable[str]) -> str:
    """The second half of a sentence about a name that is not there: what was meant, or what there is."""
    names = sorted(str(one) for one in known)
    near = get_close_matches(name, names, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; there are: {', '.join(names)}" if names else "; there are none"


def _words(error: Exception, values: Mapping[str, Any]) -> str:
    if isinstance(error, RecursionError):
        return "is nested too deep, or includes or calls itself without end"
    if isinstance(error, MemoryError):
        return "needs more memory than there is"
    text = str(error) or type(error).__name__
    undefined = isinstance(error, UndefinedError) and text.endswith("' is undefined")
    return text + _instead(text.split("'")[1], values) if undefined else text


def _texts(value: Any) -> Iterable[str]:
    """All texts inside a value, keys included."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from _texts(key)
            yield from _texts(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _texts(item)


def _length(value: Any) -> int:
    return len(value) if isinstance(value, (str, list, tuple)) else 0


def _number(value: Any) -> int:
    return value if isinstance(value, int) else 0
