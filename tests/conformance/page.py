"""The reference page of the simulator: what it imitates comes from the table of interactions and its records."""

from __future__ import annotations

from nbs_fleet.sim.args import VERSION
from nbs_fleet.sim.scenario import EXTENSION, FAILURES, STARTUP
from nbs_fleet.sim.script import DIRECTIVES
from tests.conformance import records
from tests.conformance.table import INTERACTIONS, SECTIONS
from tests.conformance.table.entry import Interaction

NOT: tuple[str, ...] = (
    (
        "First-run screens are drawn only for a scenario with `logged_in = false`; they were captured, and are not compared: "
        "the real client asks a server outside before it shows them."
    ),
    "It never logs in, updates itself, reports anything, or opens a network connection.",
    "The model's own ideas: a session's title, prompt suggestions, tips, the explanation of auto mode.",
    (
        "Lists that follow from what only the real client has: its tools, skills, agents and commands. The menu below a box "
        "with a slash in it is not drawn."
    ),
    (
        "Tools other than Bash, Read, Write, Edit, Agent, AskUserQuestion, EnterPlanMode and ExitPlanMode, unless a "
        "scenario gives their results. Read-only calls of one reply run one after the other, not side by side."
    ),
    "Permission rules are matched for plain commands, prefixes and paths; the shell is not parsed as the real client does.",
    "MCP servers are never started; plugins give skills only; there are no worktrees, teams, crons or remote control.",
    "`vim` keys, themes, images, the full-screen and the screen-reader view, and the agents' view behind the left arrow.",
    "Hints at the right of the status line that fade by themselves, but for those that ask for the same key again.",
    "What a background command printed is taken away when the simulator ends; the real client leaves it in `/tmp`.",
    "Several of a client's own commands: it knows `/clear`, `/compact`, `/config`, `/exit` and `/quit`.",
    "Headless use (`--print`): it only refuses it.",
    "ConfigChange and WorktreeCreate hooks, and hooks that are not commands.",
    "Automatic compaction before the model says that the conversation is too long.",
)
"""What it does not do, for people who wonder why their test sees something else."""

ASIDE = {
    "-rows": "the screen's text",
    "-transcript": "the transcript",
    "-requests": "what the model is told",
    "-side_hooks": "hooks without an order of their own",
    "-hooks": "hooks",
    "-files": "files",
    "rows": "the order of the screen's lines",
    "transcript": "the order of the transcript",
    "requests": "the order within requests",
    "hooks": "the order of hooks",
}


def remark(interaction: Interaction) -> str:
    """What is left out when this interaction is compared."""
    left = [ASIDE[part] for part in sorted(interaction.aside) if part in ASIDE]
    return f"without {', '.join(left)}" if left else ""


def tables() -> str:
    """A heading and a table for each part."""
    parts = []
    for heading, entries in SECTIONS:
        shown = [i for i in entries if records.fresh(i)]
        rows = [f"| `{i.name}` | {i.about.replace('|', chr(92) + '|')} | {remark(i)} |" for i in shown]
        parts.append(
            "\n".join((f"### {heading}", "", "| interaction | what happens | compared |", "| --- | --- | --- |", *rows))
        )
    return "\n\n".join(parts)


def simulator() -> tuple[str, ...]:
    """The paragraphs of the page, without its title."""
    directives = "\n".join(f"| `[[{form}]]` | {what} |" for form, what in DIRECTIVES)
    return (
        (
            f"`nbs-fleet sim` stands in for Claude Code {VERSION}: the same command line, screens, keys, files and hooks, with "
            "a scripted model and no account or network. `driver: sim` in a team file, or `up --driver sim`, uses it."
        ),
        "## What it answers",
        (
            "A scenario file (`--scenario FILE`, TOML or JSON) in claudeless's format says what the model answers. What goes "
            f"beyond that format lies below the one key `{EXTENSION}`, so a scenario without it works for both:"
        ),
        "\n".join(
            (
                "| key | meaning |",
                "| --- | --- |",
                (
                    f"| `{EXTENSION}.startup` | dialogs that may be shown at the start, a list of {', '.join(STARTUP)}; each is "
                    "shown unless the client's own config answers it |"
                ),
            )
        ),
        f"A `failure` of a rule is one of {', '.join(f'`{name}`' for name in FAILURES)}.",
        (
            "Without a rule for a prompt, directives in the prompt itself script the reply, one per reply; without any, it "
            "repeats the beginning of the prompt."
        ),
        f"| directive | reply |\n| --- | --- |\n{directives}",
        "`NBS_SIM_LOG=FILE` keeps each request to the model as a line of JSON.",
        "## What it imitates",
        (
            f"The {sum(records.fresh(i) for i in INTERACTIONS)} interactions below were played on Claude Code {VERSION} in tmux with a scripted API, and "
            "what could be seen from outside was recorded: what our driver reads from the screen, the screen's own text, the "
            "pane's title, the state file, every hook with its payload, the transcript, what the model was told, the files in "
            "the project and the exit code. The simulator must show the same. Ids, times, paths and counts are replaced; what "
            "has no order in the real client is compared without one; the last column says what is left out."
        ),
        (
            "`python -m tests.conformance.compare` plays them on both and prints the differences; `--record` keeps what the "
            "real client does now."
        ),
        tables(),
        "## What it does not do",
        "\n".join(f"- {line}" for line in NOT),
    )
