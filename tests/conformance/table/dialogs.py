"""Dialogs of a running turn: permissions, plans, questions."""

from __future__ import annotations

import json

from tests.conformance.stage import Setting
from tests.conformance.table.entry import play

SECTION = "Dialogs"
BYPASS = Setting(args=("--dangerously-skip-permissions",))
PLAN = Setting(args=("--permission-mode", "plan"))
MAKE = "say [[bash touch made]] [[say did]]"
ONE = [
    {
        "question": "Which library?",
        "header": "Library",
        "multiSelect": False,
        "options": [
            {"label": "aiohttp", "description": "one of them"},
            {"label": "httpx", "description": "the other one"},
        ],
    }
]
MANY = [
    {
        "question": "Which parts?",
        "header": "Parts",
        "multiSelect": True,
        "options": [{"label": "head", "description": "h"}, {"label": "tail", "description": "t"}],
    }
]
TWO = [*ONE, {**ONE[0], "question": "Which colour?", "header": "Colour"}]


def ask(questions: list[dict[str, object]]) -> str:
    """The step that has the model ask."""
    return f"say [[tool AskUserQuestion {json.dumps({'questions': questions})}]] [[say thanks]]"


PLANNED = "say [[plan # Plan\\n\\n1. step one]] [[tool ExitPlanMode {}]] [[say on it]]"

TABLE = (
    play("permission-yes", "a Bash permission, answered with 1", f"""
        until idle
        {MAKE}
        until permission
        keys 1
        until idle
    """),
    play("permission-always", "a Bash permission, answered with 2", f"""
        until idle
        {MAKE}
        until permission
        keys 2
        until idle
    """),
    play("permission-no", "a Bash permission, refused with 3", f"""
        until idle
        {MAKE}
        until permission
        keys 3
        until idle
    """),
    play("permission-escape", "a Bash permission, left with Escape", f"""
        until idle
        {MAKE}
        until permission
        keys Escape
        until idle
    """),
    play("permission-text-enter", "text and Enter into a permission: the text is lost, Enter says yes", f"""
        until idle
        {MAKE}
        until permission
        blind a message for nobody
        look
        keys Enter
        until idle
    """),
    play("permission-arrows", "arrows in a permission", f"""
        until idle
        {MAKE}
        until permission
        keys Down Down
        look
        keys Enter
        until idle
    """),
    play("permission-write", "a file to create", """
        until idle
        say [[tool Write {"file_path": "f.txt", "content": "one\\ntwo\\n"}]] [[say done]]
        until permission
        keys 1
        until idle
    """),
    play("permission-write-always", "a file to create, and all edits from then on", """
        until idle
        say [[tool Write {"file_path": "f.txt", "content": "one\\n"}]] [[tool Write {"file_path": "g.txt", "content": "two\\n"}]] [[say done]]
        until permission
        keys 2
        until idle
    """),
    play("permission-write-no", "a file to create, refused", """
        until idle
        say [[tool Write {"file_path": "f.txt", "content": "one\\ntwo\\n"}]] [[say done]]
        until permission
        keys 3
        until idle
    """),
    play("permission-edit", "a file to edit", """
        until idle
        say [[tool Read {"file_path": "f.txt"}]] [[tool Edit {"file_path": "f.txt", "old_string": "two", "new_string": "three"}]] [[say done]]
        until permission
        keys 1
        until idle
    """, Setting(files={"f.txt": "one\ntwo\n"})),
    play("permission-second", "the same command asks again", f"""
        until idle
        {MAKE}
        until permission
        keys 1
        until idle
        say [[bash touch other]] [[say did]]
        until permission
        keys 1
        until idle
    """),
    play("permission-allowed", "a rule that allows", f"""
        until idle
        {MAKE}
        until idle
    """, Setting(settings={"permissions": {"allow": ["Bash(touch:*)"]}})),
    play("permission-denied", "a rule that denies", f"""
        until idle
        {MAKE}
        until idle
    """, Setting(settings={"permissions": {"deny": ["Bash(touch:*)"]}})),
    play("permission-asked", "a rule that asks though the mode would not", f"""
        until idle
        {MAKE}
        until permission
        keys 1
        until idle
    """, Setting(args=BYPASS.args, settings={"permissions": {"ask": ["Bash(touch:*)"]}})),
    play("permission-narrow", "a permission in 60 columns", f"""
        until idle
        {MAKE}
        until permission
        keys 1
        until idle
    """, Setting(size=(60, 24))),
    play("permission-notice", "after six seconds the permission is told once more", f"""
        until idle
        {MAKE}
        until permission
        hook Notification 1
        keys 1
        until idle
    """, aside="notice"),
    play("plan-yes", "a plan, answered with 1", f"""
        until idle
        {PLANNED}
        until plan
        keys 1
        until idle
    """, PLAN),
    play("plan-manual", "a plan, answered with 2", f"""
        until idle
        {PLANNED}
        until plan
        keys 2
        until idle
    """, PLAN),
    play("plan-feedback", "a plan, answered with a wish", f"""
        until idle
        {PLANNED}
        until plan
        keys 3
        blind shorter
        look
        keys Enter
        until idle
    """, PLAN),
    play("plan-escape", "a plan, left with Escape", f"""
        until idle
        {PLANNED}
        until plan
        keys Escape
        until idle
    """, PLAN),
    play("plan-empty", "a plan that was never written", """
        until idle
        say [[tool ExitPlanMode {}]] [[say on it]]
        until plan
        keys 1
        until idle
    """, PLAN),
    play("plan-bypass", "a plan of an agent that may bypass", f"""
        until idle
        {PLANNED}
        until plan
        keys 1
        until idle
    """, Setting(args=("--permission-mode", "plan", "--allow-dangerously-skip-permissions"))),
    play("plan-narrow", "a plan in 60 columns", f"""
        until idle
        {PLANNED}
        until plan
        keys 1
        until idle
    """, Setting(args=PLAN.args, size=(60, 30)), aside="-rows"),
    play("plan-enter", "the model goes into plan mode", """
        until idle
        say [[say hello]]
        until idle
        say [[tool EnterPlanMode {}]] [[say planning]]
        until idle
    """, BYPASS),
    play("question-one", "a question, answered with 1", f"""
        until idle
        {ask(ONE)}
        until question
        keys 1
        until idle
    """),
    play("question-bypass", "a question is asked in bypass mode, too", f"""
        until idle
        {ask(ONE)}
        until question
        keys 2
        until idle
    """, BYPASS),
    play("question-text-enter", "text and Enter into a question choose the first option", f"""
        until idle
        {ask(ONE)}
        until question
        blind a message for nobody
        keys Enter
        until idle
    """),
    play("question-free", "a question, answered in own words", f"""
        until idle
        {ask(ONE)}
        until question
        keys 3
        blind requests
        look
        keys Enter
        until idle
    """),
    play("question-chat", "a question, talked about", f"""
        until idle
        {ask(ONE)}
        until question
        keys 4
        until idle
    """),
    play("question-escape", "a question, left with Escape", f"""
        until idle
        {ask(ONE)}
        until question
        keys Escape
        until idle
    """),
    play("question-two", "two questions", f"""
        until idle
        {ask(TWO)}
        until question
        keys 1
        look
        keys 2
        look
        keys 1
        until idle
    """),
    play("question-many", "a question with several answers", f"""
        until idle
        {ask(MANY)}
        until question
        keys 1
        look
        keys 2
        look
        keys Tab
        look
        keys 1
        until idle
    """),
    play("question-narrow", "a question in 40 columns", f"""
        until idle
        {ask(ONE)}
        until question
        keys 1
        until idle
    """, Setting(size=(40, 30))),
    play("config", "`/config` is a dialog; Escape closes it", """
        until idle
        say /config
        look
        keys Escape Escape
        until idle
    """, aside="-rows"),
)  # fmt: skip
