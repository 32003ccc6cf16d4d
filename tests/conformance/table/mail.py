"""What comes by itself: files that wake the client, background commands, subagents."""

from __future__ import annotations

import json

from tests.conformance.stage import Setting
from tests.conformance.table.entry import play

SECTION = "Mail, background work and subagents"
DRAIN = (
    'cat >/dev/null; for f in {base}/project/mail/*.msg; do [ -e "$f" ] || continue; cat "$f" >&2; rm "$f"; '
    "exit 2; done; exit 0"
)
WAKE = {
    "type": "command",
    "command": DRAIN,
    "asyncRewake": True,
    "timeout": 30,
    "rewakeMessage": "Message from nbs-fleet:",
    "rewakeSummary": "fleet mail",
}
MAIL_HOOKS = {
    "FileChanged": [
        {"matcher": "{base}/project/mail", "hooks": [{"type": "command", "command": "true"}]},
        {"hooks": [WAKE]},
    ]
}
BYPASS = ("--dangerously-skip-permissions",)
MAIL = Setting(args=BYPASS, hooks=MAIL_HOOKS, files={"mail/tok": ""})
ASKING = Setting(hooks=MAIL_HOOKS, files={"mail/tok": ""})
AGENT = {"description": "sub job", "prompt": "((say from below))", "subagent_type": "general-purpose"}

TABLE = (
    play("mail-idle", "a file wakes an idle client", """
        until idle
        write mail/1.msg [[say got it]]
        shows fleet mail
        until idle
    """, MAIL),
    play("mail-second", "a second file, after a turn", """
        until idle
        say [[say hi]]
        until idle
        write mail/1.msg [[say got it]]
        shows got it
        until idle
        write mail/2.msg [[say and this]]
        shows and this
        until idle
    """, MAIL),
    play("mail-busy", "a file beside a running tool goes to the model after the tool", """
        until idle
        say [[bash until test -e go; do sleep 0.1; done]] [[say over]]
        shows Running…
        write mail/1.msg by the way
        queued 1
        write go on
        until idle
    """, MAIL),
    play("mail-streaming", "a file beside a reply is answered after it", """
        until idle
        say [[until go slow]]
        until busy
        write mail/1.msg [[say got it]]
        queued 1
        write go on
        shows got it
        until idle
    """, MAIL),
    play("mail-dialog", "a file beside a permission waits for the answer", """
        until idle
        say [[bash touch made]] [[say did]]
        until permission
        write mail/1.msg by the way
        queued 1
        look
        keys 1
        until idle
    """, ASKING),
    play("mail-draft", "a file beside a draft leaves the draft alone", """
        until idle
        paste half a thought
        write mail/1.msg [[say got it]]
        shows got it
        until draft
    """, MAIL),
    play("mail-start", "mail that waits at the start", """
        shows got it
        until idle
    """, Setting(args=BYPASS, hooks={"SessionStart": [{"hooks": [WAKE]}]}, files={"mail/1.msg": "[[say got it]]"})),
    play("mail-unlink", "a file that is taken away rings at once", """
        until idle
        write mail/1.msg [[say got it]]
        remove mail/tok
        shows got it
        until idle
    """, MAIL, aside="-side_hooks"),
    play("mail-clear", "mail after /clear", """
        until idle
        say [[say hi]]
        until idle
        say /clear
        until idle
        write mail/1.msg [[say got it]]
        shows got it
        until idle
    """, MAIL),
    play("mail-unnamed", "a hook that names neither message nor summary", """
        until idle
        write mail/1.msg [[say got it]]
        shows got it
        until idle
    """, Setting(args=BYPASS, files={"mail/tok": ""}, hooks={"FileChanged": [
        MAIL_HOOKS["FileChanged"][0],
        {"hooks": [{"type": "command", "command": DRAIN, "asyncRewake": True, "timeout": 30}]},
    ]})),
    play("background", "a background command, and its end", """
        until idle
        say [[bg until test -e go; do sleep 0.1; done]] [[say started]]
        until idle
        write go on
        shows completed
        until idle
    """, Setting(args=BYPASS)),
    play("background-fails", "a background command that fails", """
        until idle
        say [[bg until test -e go; do sleep 0.1; done; exit 4]] [[say started]]
        until idle
        write go on
        shows exit code 4
        until idle
    """, Setting(args=BYPASS)),
    play("background-shown", "a background command in the mode that asks", """
        until idle
        say [[bg sleep 20]] [[say started]]
        until idle
    """),
    play("background-busy", "a background command beside a reply, and its end in mid-turn", """
        until idle
        say [[bg until test -e over; do sleep 0.1; done]] [[until go started]]
        shows 1 shell
        requests 2
        look
        write over yes
        queued 1
        write go on
        shows completed
        until idle
    """, Setting(args=BYPASS)),
    play("subagent", "a subagent that answers", f"""
        until idle
        say [[tool Agent {json.dumps(AGENT)}]] [[say done]]
        until idle
    """, Setting(args=BYPASS), aside="-rows"),
    play("subagent-tool", "a subagent that uses a tool", f"""
        until idle
        say [[tool Agent {json.dumps({**AGENT, "prompt": "((bash echo below)) ((say from below))"})}]] [[say done]]
        until idle
    """, Setting(args=BYPASS), aside="-rows"),
)  # fmt: skip
