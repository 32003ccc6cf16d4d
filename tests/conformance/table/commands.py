"""Commands and skills: known, unknown, compaction, a new session."""

from __future__ import annotations

from tests.conformance.stage import Setting
from tests.conformance.table.entry import play

SECTION = "Commands and skills"
SKILL = "---\nname: greet\ndescription: says hello\n---\n[[say hello $ARGUMENTS]]\n"
PLAIN = "---\ndescription: says hello\n---\n[[say hello]]\n"
SKILLED = Setting(files={".claude/skills/greet/SKILL.md": SKILL})
SLOW = Setting(compact_seconds=3)

TABLE = (
    play("command-unknown", "a command that nobody knows", """
        until idle
        say /nonsense
        until idle
    """),
    play("command-unknown-args", "a command that nobody knows, with arguments", """
        until idle
        say /nonsense and more
        until idle
    """),
    play("command-skill", "a skill of the project", """
        until idle
        say /greet
        until idle
    """, SKILLED),
    play("command-skill-args", "a skill with arguments", """
        until idle
        say /greet bo and cy
        until idle
    """, SKILLED),
    play("command-skill-plain", "arguments for a skill that has no place for them", """
        until idle
        say /greet bo
        until idle
    """, Setting(files={".claude/skills/greet/SKILL.md": PLAIN})),
    play("command-file", "a command file of the project", """
        until idle
        say /greet bo
        until idle
    """, Setting(files={".claude/commands/greet.md": SKILL})),
    play("command-plugin", "a skill of a plugin", """
        until idle
        say /nbs:greet bo
        until idle
    """, Setting(args=("--plugin-dir", "{base}/project/plug"), files={
        "plug/.claude-plugin/plugin.json": '{"name": "nbs", "version": "1.0.0"}',
        "plug/skills/greet/SKILL.md": SKILL,
    })),
    play("command-added-dir", "a skill of an added directory", """
        until idle
        say /greet bo
        until idle
    """, Setting(args=("--add-dir", "{base}/project/more"), files={"more/.claude/skills/greet/SKILL.md": SKILL})),
    play("command-queued", "a skill typed in mid-turn runs after the turn", """
        until idle
        say [[until go slow]]
        until busy
        say /greet bo
        write go on
        shows hello bo
        until idle
    """, SKILLED),
    play("command-start", "a skill on the command line", """
        shows hello bo
        until idle
    """, Setting(args=("/greet bo",), files=SKILLED.files)),
    play("clear", "`/clear` begins another session", """
        until idle
        say [[say hi]]
        until idle
        say /clear
        until idle
        say [[say anew]]
        until idle
    """),
    play("clear-named", "`/clear` of a named session", """
        until idle
        say [[say hi]]
        until idle
        say /clear
        until idle
    """, Setting(args=("--name", "ana"))),
    play("compact", "`/compact`", """
        until idle
        say [[say one]]
        until idle
        say [[say two]]
        until idle
        say /compact
        until compacting
        until idle
        say [[say after]]
        until idle
    """, SLOW, aside="-requests"),
    play("compact-words", "`/compact` with instructions", """
        until idle
        say [[say one]]
        until idle
        say [[say two]]
        until idle
        say /compact keep the names
        until compacting
        until idle
    """, SLOW, aside="-requests"),
    play("compact-queue", "a prompt typed during a compaction is answered after it", """
        until idle
        say [[say one]]
        until idle
        say [[say two]]
        until idle
        say /compact
        until compacting
        say [[say queued]]
        shows ● queued
        until idle
    """, Setting(compact_seconds=5), aside="-requests"),
    play("compact-escape", "Escape during a compaction", """
        until idle
        say [[say one]]
        until idle
        say [[say two]]
        until idle
        say /compact
        until compacting
        keys Escape
        until draft
    """, Setting(compact_seconds=20), aside="-requests -rows"),
    play("compact-short", "too little to compact", """
        until idle
        say [[say one]]
        until idle
        say /compact
        until idle
    """),
    play("compact-tool", "one turn with a tool is enough to compact", """
        until idle
        say [[bash echo hi]] [[say done]]
        until idle
        say /compact
        until idle
    """, aside="-requests"),
    play("compact-nothing", "nothing to compact", """
        until idle
        say /compact
        until idle
    """),
)  # fmt: skip
