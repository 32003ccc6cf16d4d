"""Prompts and turns: replies, streaming, tools, the queue, interrupts, the box."""

from __future__ import annotations

from tests.conformance.stage import Setting
from tests.conformance.table.entry import play

SECTION = "Prompts and turns"
BYPASS = Setting(args=("--dangerously-skip-permissions",))

TABLE = (
    play("turn-say", "a prompt and a reply", """
        until idle
        say [[say hello there]]
        until idle
        say [[say and again]]
        until idle
    """),
    play("turn-echo", "a prompt without directives", """
        until idle
        say hello there, who are you
        until idle
    """),
    play("turn-tools", "a turn with tools, one of which fails", """
        until idle
        say [[bash echo hi]] [[saytool now || Bash {"command": "exit 3"}]] [[say done]]
        until idle
    """, BYPASS),
    play("turn-two-tools", "two calls in one reply", """
        until idle
        say [[tools [["Bash", {"command": "echo one"}], ["Bash", {"command": "echo two"}]]]] [[say done]]
        until idle
    """, BYPASS, aside="hooks transcript requests"),
    play("turn-files", "files written, read and edited", """
        until idle
        say [[tool Write {"file_path": "f.txt", "content": "one\\ntwo\\n"}]] [[tool Read {"file_path": "f.txt"}]] [[tool Edit {"file_path": "f.txt", "old_string": "two", "new_string": "three"}]] [[say done]]
        until idle
    """, BYPASS),
    play("turn-cd", "a command that changes the working directory", """
        until idle
        say [[bash mkdir -p sub && cd sub]] [[bash pwd]] [[say done]]
        until idle
    """, BYPASS),
    play("turn-bash-stderr", "a command that writes to both outputs", """
        until idle
        say [[bash echo out; echo err >&2]] [[say done]]
        until idle
    """, BYPASS),
    play("turn-unknown-tool", "a tool that is not there", """
        until idle
        say [[tool Coffee {"cups": 2}]] [[say done]]
        until idle
    """, BYPASS),
    play("turn-streaming", "a reply that comes word by word", """
        until idle
        say [[slow 8 a b c d e f g h]]
        until busy
        until idle
    """),
    play("turn-thinking", "a reply after some thinking", """
        until idle
        say [[think 8 thought]]
        until busy
        until idle
    """),
    play("turn-silent", "a reply that takes long to begin", """
        until idle
        say [[until go at last]]
        until busy
        write go on
        until idle
    """),
    play("turn-max-tokens", "a reply that was cut for its length", """
        until idle
        say [[stop max_tokens half a]]
        until idle
    """, aside="-requests"),
    play("queue-mid-turn", "a prompt typed beside a running tool goes to the model after the tool", """
        until idle
        say [[bash until test -e go; do sleep 0.1; done]] [[say over]]
        shows Running…
        say by the way
        write go on
        until idle
    """, BYPASS),
    play("queue-after-turn", "a prompt typed beside a reply is answered after it", """
        until idle
        say [[until go slow]]
        until busy
        say one more
        write go on
        until idle
    """),
    play("queue-two", "two prompts typed beside a reply are answered together", """
        until idle
        say [[until go slow]]
        until busy
        say one more
        say and another
        write go on
        until idle
    """),
    play("queue-up", "Up takes the queue back into the box", """
        until idle
        say [[until go slow]]
        until busy
        say one more
        keys Up
        look
        keys C-u
        write go on
        until idle
    """),
    play("queue-escape", "Escape with a queue interrupts and submits it", """
        until idle
        say [[bash sleep 30]] [[say over]]
        shows Running…
        say [[say instead]]
        keys Escape
        until idle
    """, BYPASS),
    play("queue-command", "a command typed in mid-turn waits for the end of the turn", """
        until idle
        say [[until go slow]]
        until busy
        say /nonsense
        write go on
        shows Unknown command: /nonsense
        until idle
    """),
    play("escape-in-tool", "Escape while a tool runs", """
        until idle
        say [[bash sleep 30]] [[say over]]
        shows Running…
        keys Escape
        until idle
    """, BYPASS),
    play("escape-in-reply", "Escape while a reply comes, of which nothing is shown yet, takes the prompt back", """
        until idle
        say [[slow 20 a b c d e f g h]]
        until busy
        requests 1
        shows tokens
        keys Escape
        until draft
    """),
    play("escape-before-reply", "Escape before any reply takes the prompt back", """
        until idle
        say [[wait 20 slow]]
        until busy
        requests 1
        keys Escape
        until draft
    """),
    play("ctrl-c-in-tool", "Ctrl+C while a tool runs", """
        until idle
        say [[bash sleep 30]] [[say over]]
        shows Running…
        keys C-c
        until idle
    """, BYPASS),
    play("turn-after-interrupt", "a turn after an interrupted one", """
        until idle
        say [[bash sleep 30]] [[say over]]
        shows Running…
        keys Escape
        until idle
        say [[say well]]
        until idle
    """, BYPASS),
    play("draft", "text in the box", """
        until idle
        paste half a thought
        until draft
    """),
    play("draft-escape", "Escape twice clears the box", """
        until idle
        paste half a thought
        press Escape
        shows Esc again to clear
        press Escape
        until idle
    """),
    play("draft-ctrl-c", "Ctrl+C clears the box", """
        until idle
        paste half a thought
        keys C-c
        look
    """, aside="-rows"),
    play("draft-lines", "a text of two lines in the box, submitted", """
        until idle
        paste one␤two
        until draft
        keys Enter
        until idle
    """),
    play("draft-long", "a long paste is folded in the box and whole for the model", """
        until idle
        paste 1␤2␤3␤4␤5␤6
        until draft
        keys Enter
        until idle
    """, aside="-rows"),
    play("draft-tab", "a tab becomes four blanks", """
        until idle
        say a\tb  c
        until idle
    """),
    play("stash", "Ctrl+S puts a draft aside, the next submit brings it back", """
        until idle
        paste half a thought
        until draft
        keys C-s
        until idle
        say [[say between]]
        until draft
    """),
    play("shell-mode", "a text that begins with `!` runs as a command", """
        until idle
        keys !
        paste echo hi
        look
        keys Enter
        until idle
    """),
    play("rewind", "Escape twice on an empty box opens the list of prompts", """
        until idle
        say [[say hi]]
        until idle
        twice Escape Rewind
        look
        keys Escape
        until idle
    """),
    play("modes", "Shift+Tab walks through the modes", """
        until idle
        keys BTab
        until idle
        keys BTab
        until idle
        keys BTab
        until idle
    """, aside="-rows -transcript"),
    play("modes-bypass", "Shift+Tab walks through the modes, bypass among them", """
        until idle
        keys BTab
        until idle
        keys BTab
        until idle
        keys BTab
        until idle
    """, BYPASS, aside="-rows -transcript"),
    play("misc-hash", "a prompt that begins with `#` is a plain prompt", """
        until idle
        say # not a comment
        until idle
    """),
    play("misc-path", "a prompt that begins with a path is a plain prompt", """
        until idle
        say /tmp/some/path is a path
        until idle
    """),
    play("misc-wide", "wide characters and emoji", """
        until idle
        say [[say 你好 👩‍👩‍👧 ok]]
        until idle
    """),
    *(
        play(f"narrow-{columns}{'-bypass' if bypass else ''}", f"a turn in {columns} columns{' in bypass mode' if bypass else ''}", f"""
            until idle
            say [[{'slow 8' if bypass and columns < 60 else 'until go'} a b c d e f g h]]
            until busy
            write go on
            until idle
            paste half a thought
            until draft
        """, Setting(args=BYPASS.args if bypass else (), size=(columns, 24)))
        for columns in (30, 40, 60, 80)
        for bypass in (False, True)
    ),
    play("resize", "a pane that changes its width", """
        until idle
        say [[say hello there]]
        until idle
        size 60 24
        until idle
        size 120 40
        until idle
    """, aside="-rows"),
)  # fmt: skip
