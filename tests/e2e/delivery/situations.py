"""Brings an agent into a state and out of it again, the way its person and its model would."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.delivery.crew import Crew, token

QUESTION = {
    "questions": [
        {
            "question": "Which library should we use?",
            "header": "Library",
            "multiSelect": False,
            "options": [
                {"label": "aiohttp", "description": "async"},
                {"label": "requests", "description": "sync"},
            ],
        }
    ]
}


def fresh(crew: Crew, kind: str) -> Path:
    """A path in the project that is not there yet."""
    return crew.fleet.root / f"{kind}-{secrets.token_hex(4)}"


@contextmanager
def idle(crew: Crew, handle: str) -> Iterator[None]:
    """Nothing runs."""
    crew.becomes(handle, "idle")
    yield


@contextmanager
def streaming(crew: Crew, handle: str) -> Iterator[None]:
    """The model is writing a long reply."""
    crew.type(handle, f"[[slow 4 one two three four five six {token()}]]")
    # A screen that stands still is all that claudeless shows of a turn.
    crew.begins(handle, "unknown" if crew.client.name == "claudeless" else "busy")
    yield


@contextmanager
def tool(crew: Crew, handle: str) -> Iterator[None]:
    """A tool runs until the block ends."""
    gate = fresh(crew, "gate")
    crew.type(handle, f"[[bash until [ -e {gate.name} ]; do sleep 0.1; done]]")
    crew.begins(handle, "busy")
    crew.until(lambda: crew.shows(handle, gate.name), "the tool runs")
    yield
    gate.touch()


@contextmanager
def permission(crew: Crew, handle: str) -> Iterator[None]:
    """A permission is asked for; nobody has answered until the block ends."""
    path = fresh(crew, "written")
    crew.type(handle, f"[[tool Write {json.dumps({'file_path': str(path), 'content': 'x'})}]]")
    crew.becomes(handle, "blocked: permission")
    yield
    crew.becomes(handle, "blocked: permission")
    assert not path.exists()
    crew.press(handle, "1")
    if crew.client.name == "claudeless":  # it forgets the tool once it is approved
        crew.until(lambda: crew.state(handle) != "blocked: permission", "the dialog is gone")
    else:
        crew.until(path.exists, f"{path.name} is written after the answer")


@contextmanager
def question(crew: Crew, handle: str) -> Iterator[None]:
    """The agent asks its person something."""
    crew.type(handle, f"[[tool AskUserQuestion {json.dumps(QUESTION)}]]")
    crew.becomes(handle, "blocked: question")
    yield
    crew.becomes(handle, "blocked: question")
    assert crew.shows(handle, "1. aiohttp")
    crew.press(handle, "2")
    crew.until(lambda: not crew.shows(handle, "Chat about this"), "the question is answered")


@contextmanager
def plan(crew: Crew, handle: str) -> Iterator[None]:
    """A plan waits for approval (for an agent in plan mode)."""
    crew.type(handle, "[[plan # The plan]] [[tool ExitPlanMode {}]]")
    crew.becomes(handle, "blocked: plan")
    yield
    crew.becomes(handle, "blocked: plan")
    crew.press(handle, "Escape")
    crew.until(lambda: crew.state(handle) != "blocked: plan", "the plan is refused")


@contextmanager
def compacting(crew: Crew, handle: str) -> Iterator[None]:
    """The conversation is being summarised."""
    if crew.client.api is not None:
        crew.client.api.control.compact_seconds = 4.0
    passed = crew.passed(handle, "compacting")
    crew.type(handle, "/compact")
    crew.begins(handle, "compacting", passed)
    yield


@contextmanager
def draft(crew: Crew, handle: str) -> Iterator[None]:
    """A person has typed something and not sent it; it is as it was when the block ends."""
    text = f"half a thought {token()}"
    crew.type(handle, text, enter=False)
    crew.until(lambda: crew.draft(handle) == text, "the draft stands in the box")
    yield
    assert crew.draft(handle) == text
    crew.clear(handle)


Situation = Callable[[Crew, str], Iterator[None]]
