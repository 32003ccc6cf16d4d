"""The client's dialogs: what each one shows and what each key does in it. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from nbs_fleet.sim.cells import width, wrap
from nbs_fleet.sim.keys import Key
from nbs_fleet.sim.screen import rule

Json = dict[str, Any]
FREE = "\0free"
"""The value of an option into which text is typed."""


class Option(NamedTuple):
    """One line to choose; `below` stands under it."""

    label: str
    value: str
    below: tuple[str, ...] = ()


class Answer(NamedTuple):
    """What was chosen; value None: cancelled. `text` is what was typed into a free option."""

    value: str | None
    text: str = ""


class Dialog:
    """A list of options under some text. A digit chooses at once, Enter takes the highlighted line, Esc cancels."""

    def __init__(
        self,
        head: Callable[[int], list[str]],
        options: list[Option],
        *,
        foot: str = "Enter to confirm · Esc to cancel",
        indent: str = "  ",
        cursor: int = 0,
        waiting_for: str | None = "permission prompt",
        title: str = "",
        spaced: bool = True,
    ) -> None:
        self.head = head
        self.options = options
        self.foot = foot
        self.indent = indent
        self.cursor = cursor
        self.waiting_for = waiting_for
        self.title = title
        self.spaced = spaced
        self.typed = ""

    def lines(self, columns: int) -> list[str]:
        """The whole dialog, from its upper rule to its footer."""
        lines = [rule(columns), *self.head(columns)]
        for i, option in enumerate(self.options):
            lines += self._option_lines(i, option, columns)
        return [*lines, "", self.indent + self.foot]

    def _option_lines(self, i: int, option: Option, columns: int = 0) -> list[str]:
        """The lines of one option. A label that is too wide for the pane is wrapped and loses the blank before it."""
        mark = "❯" if i == self.cursor else " "
        label = self.typed if option.value == FREE and self.typed else option.label
        head = f"{self.indent}{mark} {i + 1}. "
        rows = [label]
        if columns and width(head + label) >= columns:
            rows, head = wrap(label, columns - width(head)), head.rstrip()
        under = f"{self.indent}    "
        below = [f"{self.indent}     {text}" for text in option.below]
        return [head + rows[0], *(under + row for row in rows[1:]), *below]

    def key(self, key: Key) -> Answer | None:
        """Apply a key; an Answer ends the dialog. Typed text is swallowed where no option takes it."""
        if key.name in {"esc", "ctrl-c"}:
            return Answer(None)
        if key.name == "enter":
            return self.choose(self.cursor)
        if key.name in {"up", "down"}:
            self.cursor = (self.cursor + (1 if key.name == "down" else -1)) % len(self.options)
            return None
        free = self.options[self.cursor].value == FREE
        if free and key.name in {"text", "paste"}:
            self.typed += key.text
        elif free and key.name == "backspace":
            self.typed = self.typed[:-1]
        elif key.name == "text" and len(key.text) == 1 and key.text.isdigit():
            return self.digit(int(key.text) - 1)
        return None

    def digit(self, index: int) -> Answer | None:
        """A digit chooses at once; on a free option it only moves there."""
        if not 0 <= index < len(self.options):
            return None
        if self.options[index].value != FREE:
            return self.choose(index)
        self.cursor = index
        return None

    def choose(self, index: int) -> Answer | None:
        """Take an option; an empty free one is not taken."""
        option = self.options[index]
        if option.value == FREE and not self.typed.strip():
            return None
        return Answer(option.value, self.typed.strip() if option.value == FREE else "")


def _paragraphs(*texts: str, indent: str = "  ") -> Callable[[int], list[str]]:
    """Wrapped paragraphs; an empty one is a blank line."""

    def draw(columns: int) -> list[str]:
        lines = []
        for text in texts:
            lines += [(indent + line).rstrip() for line in wrap(text, columns - 2 * len(indent))]
        return lines

    return draw


def trust(cwd: str) -> Dialog:
    """Folder trust."""
    head = _paragraphs(
        "Accessing workspace:",
        "",
        cwd,
        "",
        "Quick safety check: Is this a project you created or one you trust? (Like your own code, a well-known open "
        "source project, or work from your team). If not, take a moment to review what's in this folder first.",
        "",
        "Claude Code'll be able to read, edit, and execute files here.",
        "",
        "Security guide",
        "",
        indent=" ",
    )
    options = [Option("Yes, I trust this folder", "yes"), Option("No, exit", "exit")]
    return Dialog(head, options, indent=" ", waiting_for=None, title="trust")


def bypass() -> Dialog:
    """The warning before bypass mode; its default is to exit."""
    head = _paragraphs(
        "WARNING: Claude Code running in Bypass Permissions mode",
        "",
        "In Bypass Permissions mode, Claude Code will not ask for your approval before running potentially dangerous "
        "commands.",
        "This mode should only be used in a sandboxed container/VM that has restricted internet access and can easily "
        "be restored if damaged.",
        "",
        "By proceeding, you accept all responsibility for actions taken while running in Bypass Permissions mode.",
        "",
        "https://code.claude.com/docs/en/security",
        "",
    )
    return Dialog(head, [Option("No, exit", "exit"), Option("Yes, I accept", "yes")], waiting_for=None, title="bypass")


def api_key(key: str) -> Dialog:
    """A custom API key was found; its default is to refuse it."""
    head = _paragraphs(
        "Detected a custom API key in your environment",
        "",
        f"ANTHROPIC_API_KEY: sk-ant-...{key[-20:]}",
        "",
        "Do you want to use this API key?",
        "",
    )
    options = [Option("Yes", "yes"), Option("No (recommended)", "no")]
    return Dialog(head, options, cursor=1, waiting_for=None, title="apikey")


def mcp_server(name: str) -> Dialog:
    """A server of the project's .mcp.json is not approved yet."""
    head = _paragraphs(
        f"New MCP server found in this project: {name}",
        "",
        "MCP servers may execute code or access system resources. All tool calls require approval. Learn more in the "
        "MCP documentation.",
        "",
    )
    options = [
        Option("Use this MCP server", "yes"),
        Option("Use this and all future MCP servers in this project", "all"),
        Option("Continue without using this MCP server", "no"),
    ]
    return Dialog(head, options, waiting_for=None, title=f"mcp {name}")


def settings_fault(path: str, problems: tuple[str, ...], advice: tuple[str, ...], *, fatal: bool) -> Dialog:
    """A settings file can't be used, or not all of it."""

    def head(columns: int) -> list[str]:
        lines = ["  Settings Error" if fatal else "  Settings Warning", "", f"  {path}"]
        for i, problem in enumerate(problems):
            mark = "└" if i == len(problems) - 1 else "├"
            for j, line in enumerate(wrap(problem, columns - 6)):
                lines.append(f"  {mark} {line}" if j == 0 else f"    {line}")
        for text in advice:
            lines += ["", *(f"  {line}" for line in wrap(text, columns - 4))]
        what = "Files with errors are skipped entirely, not just the invalid settings."
        if not fatal:
            what = "The values listed above were skipped; the rest of the file is in effect."
        return [*lines, "", *([""] if advice else []), f"  {what}", ""]

    fix, leave = Option("Fix with Claude", "fix"), Option("Exit and fix manually", "exit")
    if fatal:
        options = [fix, leave, Option("Continue without these settings", "go")]
    else:
        options = [Option("Continue", "go"), fix, leave]
    return Dialog(head, options, waiting_for=None, title="settings")


class Card(Dialog):
    """Only text; Enter and Esc end it."""

    def lines(self, columns: int) -> list[str]:
        """The text alone."""
        return self.head(columns)


class Notice(Card):
    """A screen that only Enter ends."""

    def key(self, key: Key) -> Answer | None:
        """Enter goes on, Ctrl+C leaves."""
        if key.name == "enter":
            return Answer("yes")
        return Answer(None) if key.name == "ctrl-c" else None


class Menu(Dialog):
    """A first-run choice without rules around it."""

    def lines(self, columns: int) -> list[str]:
        """Text and options."""
        lines = self.head(columns)
        for i, option in enumerate(self.options):
            lines += self._option_lines(i, option)
        return lines


def theme() -> Dialog:
    """The first screen of a first run."""
    head = _paragraphs(
        "Welcome to Claude Code v2.1.197",
        "",
        " Let's get started.",
        "",
        " Choose the text style that looks best with your terminal",
        " To change this later, run /theme",
        "",
        indent="",
    )
    names = (
        "Auto (match terminal)",
        "Dark mode ✔",
        "Light mode",
        "Dark mode (colorblind-friendly)",
        "Light mode (colorblind-friendly)",
        "Dark mode (ANSI colors only)",
        "Light mode (ANSI colors only)",
    )
    return Menu(head, [Option(n, n) for n in names], indent=" ", cursor=1, waiting_for=None, title="setup")


def login() -> Dialog:
    """The choice of a login method."""
    head = _paragraphs(
        "Welcome to Claude Code v2.1.197",
        "",
        " Claude Code can be used with your Claude subscription or billed based on API usage through your Console "
        "account.",
        "",
        " Select login method:",
        "",
        indent="",
    )
    options = [
        Option("Claude account with subscription · Pro, Max, Team, or Enterprise", "subscription"),
        Option("Anthropic Console account · API usage billing", "console"),
        Option("3rd-party platform · Amazon Bedrock, Microsoft Foundry, or Vertex AI", "platform"),
    ]
    return Menu(head, options, indent=" ", waiting_for=None, title="login")


def security() -> Dialog:
    """The last screen of a first run."""
    head = _paragraphs(
        "Welcome to Claude Code v2.1.197",
        "",
        " Security notes:",
        "",
        " 1. Claude can make mistakes.",
        "    You're responsible for Claude's actions and should always",
        "    review them, especially when running code.",
        "",
        " 2. Due to prompt injection risks, only use it with code you trust",
        "    Learn more: https://code.claude.com/docs/en/security",
        "",
        " Press Enter to continue…",
        indent="",
    )
    return Notice(head, [], waiting_for=None, title="setup")
