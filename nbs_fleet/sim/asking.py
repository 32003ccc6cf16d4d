"""The dialogs of a running turn: permission, plan approval and questions. Pure."""

from __future__ import annotations

import os.path
from typing import Any

from nbs_fleet.sim.cells import wrap
from nbs_fleet.sim.dialogs import FREE, Answer, Dialog, Option
from nbs_fleet.sim.keys import Key
from nbs_fleet.sim.screen import rule

Json = dict[str, Any]
CHAT = "\0chat"
_MAX_PLAN_LINES = 200


def dashes(columns: int) -> str:
    """The dashed rule around file contents and plans."""
    return "╌" * columns


def _indented(text: str, indent: str, columns: int) -> list[str]:
    return [(indent + line).rstrip() for line in wrap(text, columns - len(indent) - 2)]


def permission(tool: str, given: Json, cwd: str, preview: list[str], why: str | None = None) -> Dialog:
    """May this tool run? `preview` is how a file will look; `why` it is asked though the mode would not ask."""
    if tool == "Bash":
        command, about = str(given.get("command", "")), str(given.get("description", ""))

        def bash(columns: int) -> list[str]:
            body = _indented(command, "   ", columns) + (_indented(about, "   ", columns) if about else [])
            reason = ["", *(f" {row}" for row in wrap(why, columns - 2))] if why else []
            return [" Bash command", "", *body, *reason, "", " Do you want to proceed?"]

        place = f"{os.path.basename(cwd)}/"
        options = [
            Option("Yes", "yes"),
            Option(f"Yes, and always allow access to {place} from this project", "always"),
            Option("No", "no"),
        ]
        if why:
            del options[1]
        return Dialog(bash, options, foot="Esc to cancel · Tab to amend · ctrl+e to explain", indent=" ")
    path = str(given.get("file_path", ""))
    shown = os.path.relpath(path, cwd) if path.startswith("/") else path
    head, question = ("Create file", "create") if tool == "Write" else ("Edit file", "make this edit to")

    def edit(columns: int) -> list[str]:
        middle = [dashes(columns), *preview, dashes(columns)]
        return [f" {head}", f" {shown}", *middle, f" Do you want to {question} {os.path.basename(path)}?"]

    def other(columns: int) -> list[str]:
        body = [f"   {key}: {value}" for key, value in given.items()]
        return [" Tool use", "", f"   {tool}", *(line[: columns - 1] for line in body), "", " Do you want to proceed?"]

    if tool not in {"Write", "Edit"}:
        options = [Option("Yes", "yes"), Option(f"Yes, and don't ask again for {tool}", "always"), Option("No", "no")]
        return Dialog(other, options, foot="Esc to cancel · Tab to amend", indent=" ")
    options = [
        Option("Yes", "yes"),
        Option("Yes, allow all edits during this session (shift+tab)", "always"),
        Option("No", "no"),
    ]
    return Dialog(edit, options, foot="Esc to cancel · Tab to amend", indent=" ")


def plan(text: str, path: str, first: str, home: str) -> Dialog:
    """Approve a plan. `first` is what the first option does beyond Yes."""
    shown = path.replace(home, "~", 1) if home and path.startswith(home + "/") else path
    if not text.strip():

        def empty(_columns: int) -> list[str]:
            return [" Exit plan mode?", "", "  Claude wants to exit plan mode", ""]

        return Dialog(empty, [Option("Yes", "first"), Option("No", "no")], foot="", indent="  ")

    def head(columns: int) -> list[str]:
        body = []
        for line in text.splitlines()[:_MAX_PLAN_LINES]:
            body += _indented(line.lstrip("#").lstrip() if line.startswith("#") else line, " ", columns)
        question = "Claude has written up a plan and is ready to execute. Would you like to proceed?"
        return [
            " Ready to code?",
            "",
            " Here is Claude's plan:",
            dashes(columns),
            *body,
            dashes(columns),
            "",
            rule(columns),
            *(f" {line}" for line in wrap(question, columns - 2)),
            "",
        ]

    options = [
        Option(f"Yes, {first}", "first"),
        Option("Yes, manually approve edits", "manual"),
        Option("Tell Claude what to change", FREE, ("shift+tab to approve with this feedback",)),
    ]
    return Dialog(head, options, foot=f"ctrl+g to edit in  Vim  · {shown}", indent=" ")


class Questions(Dialog):
    """AskUserQuestion: one tab per question, with a last tab to submit when there are several or many may be chosen."""

    def __init__(self, questions: list[Json]) -> None:
        super().__init__(lambda _columns: [], [], indent="", spaced=False)
        self.questions = questions
        self.at = 0
        self.answers: dict[str, list[str]] = {}
        self.tabs = len(questions) > 1 or any(q.get("multiSelect") for q in questions)
        self._show()

    def result(self) -> dict[str, str]:
        """Question -> labels, joined by ", "."""
        return {question: ", ".join(labels) for question, labels in self.answers.items() if labels}

    @property
    def question(self) -> Json:
        """The question on screen."""
        return self.questions[self.at]

    def _show(self) -> None:
        self.cursor = 0
        self.typed = ""
        if self.at >= len(self.questions):
            self.options = [Option("Submit answers", "submit"), Option("Cancel", "cancel")]
            return
        listed = [o for o in self.question.get("options", []) if isinstance(o, dict)]
        self.options = [
            Option(str(o.get("label", "")), str(o.get("label", "")), (str(o.get("description", "")),)) for o in listed
        ]
        self.options += [Option("Type something.", FREE), Option("Chat about this", CHAT)]

    def _head(self) -> list[str]:
        chips = []
        for q in self.questions:
            mark = "☒" if self.answers.get(str(q.get("question"))) else "☐"
            chips.append(f"{mark} {q.get('header', '')}")
        return [f"←  {'  '.join(chips)}  ✔ Submit  →"] if self.tabs else [f" {chips[0]}"]

    def lines(self, columns: int) -> list[str]:
        """The question, its options, and below a rule the way out into talk."""
        if self.at >= len(self.questions):
            review = []
            for question, answer in self.result().items():
                review += [f" ● {question}", f"   → {answer}"]
            body = ["Review your answers", "", *review, "", "Ready to submit your answers?", ""]
            picks = [line for i, o in enumerate(self.options) for line in self._option_lines(i, o)]
            return ["", rule(columns), *self._head(), "", *body, *picks]
        many = bool(self.question.get("multiSelect"))
        lines = [rule(columns), *self._head(), "", *wrap(str(self.question.get("question", "")), columns), ""]
        chosen = self.answers.get(str(self.question.get("question")), [])
        for i, option in enumerate(self.options[:-1]):
            if many:
                box = f"[{'✔' if option.value in chosen else ' '}] "
                label = option.label.rstrip(".") if option.value == FREE else option.label
                option = Option(box + label, option.value, option.below)  # noqa: PLW2901 - the line as shown
            drawn = self._option_lines(i, option)
            lines += [drawn[0], *(line[3:] for line in drawn[1:])] if many else drawn
        if many:
            lines.append("     Submit")
        last = len(self.options) - 1
        lines += [rule(columns), *self._option_lines(last, self.options[last]), ""]
        move = "Tab/Arrow keys" if len(self.questions) > 1 else "↑/↓"
        vim = "ctrl+g to edit in Vim · " if self.options[self.cursor].value == FREE else ""
        return [*lines, f"Enter to select · {move} to navigate · {vim}Esc to cancel"]

    def key(self, key: Key) -> Answer | None:
        """As in any dialog; Tab and the side arrows change the question."""
        if self.tabs and key.name in {"tab", "right", "left", "shift-tab"}:
            step = 1 if key.name in {"tab", "right"} else -1
            self.at = min(max(0, self.at + step), len(self.questions))
            self._show()
            return None
        return super().key(key)

    def choose(self, index: int) -> Answer | None:
        """Take an option: go on to the next question, or end."""
        answer = super().choose(index)
        if answer is None or answer.value == CHAT:
            return answer
        if self.at >= len(self.questions):
            return Answer("submit" if answer.value == "submit" else None)
        key = str(self.question.get("question"))
        label = answer.text or str(answer.value)
        if self.question.get("multiSelect"):
            chosen = self.answers.setdefault(key, [])
            if label in chosen:
                chosen.remove(label)
            else:
                chosen.append(label)
            return None
        self.answers[key] = [label]
        self.at += 1
        if not self.tabs and self.at >= len(self.questions):
            return Answer("submit")
        self._show()
        return None
