"""The text of `<run>/bin/nbs-hook`, the small shell program that a client's hooks call."""

from __future__ import annotations

FRONT = "nbs-hook"
PROGRAM = "nbs-hook.py"
COMPILED = "nbs-hook.pyc"

_FRONT = """\
#!/bin/sh
# What a client's hooks call. `nbs-fleet up` writes this file; changes made here are lost.
#   nbs-hook EVENT   keeps the event's payload in the agent's spool/; only when something waits for the agent or
#                    a policy may apply, the program beside this one decides what the client is told
#   nbs-hook drain   prints the mail that waits and ends with 2, which wakes the client; with none it ends with 0
#   nbs-hook sweep   the same, but leaves the probe: only a change of mail/ proves that the client watches it
# It never fails the client: whatever is missing or full, it takes in all its input and ends with 0.

# A failed redirection of a special builtin ends the shell with 2, which would block the client.
trap 'exit 0' EXIT
PATH=/usr/bin:/bin:$PATH
LC_ALL=C
umask 077
case $1 in
drain | sweep) exec 3>&2 ;;
esac
exec 2>/dev/null

give_up() {
    cat >/dev/null
    exit 0
}

if [ -z "$NBS_FLEET_RUN" ] || [ -z "$NBS_HANDLE" ]; then give_up; fi
agent=$NBS_FLEET_RUN/agents/$NBS_HANDLE

# Hand over the mail; does not return.
hand_over() {
    cat >/dev/null
    mail=$agent/mail
    claimed=$agent/claimed
    if [ ! -d "$mail" ] || [ ! -d "$claimed" ]; then exit 0; fi
    # The bell is hung up before the look around, so that a later ring is heard. An existing one is left
    # alone: a touch is a change too, and would wake this very program for ever.
    if [ ! -e "$mail/tok" ]; then true >"$mail/tok"; fi
    if [ "$1" = drain ] && [ -e "$mail/probe" ]; then mv -f "$mail/probe" "$claimed/probe"; fi
    took=
    for token in "$mail"/*.msg; do
        name=${token##*/}
        id=${name#*-}
        if [ ! -f "$agent/queue/${id%.msg}.json" ]; then continue; fi
        # Of several drains at once, one renames; the others find nothing.
        if ! mv "$token" "$claimed/$name"; then continue; fi
        if [ "$took" ]; then printf '\\n\\n' >&3; fi
        cat "$claimed/$name" >&3
        took=1
    done
    if [ -z "$took" ]; then exit 0; fi
    trap - EXIT
    exit 2
}

case $1 in
drain | sweep) hand_over "$1" ;;
esac

event=$1
spool=$agent/spool
new=$spool/.$event.$$.new
if ! cat >"$new"; then
    if [ -e "$new" ]; then rm -f "$new"; fi
    give_up
fi
# A process number comes again; the event of the one before may still lie there unread.
turn=0
while [ -e "$spool/$event.$$.$turn.json" ]; do turn=$((turn + 1)); done
kept=$spool/$event.$$.$turn.json

policy=
read -r policy <"$agent/hooks.json"
ask=
case $policy in
*"\\"$event\\""*) ask=1 ;;
esac
case $event in
Stop | PreToolUse | PostToolUse | UserPromptSubmit)
    for token in "$agent"/inbox/*.msg; do
        if [ -e "$token" ]; then ask=1; fi
        break
    done
    ;;
esac
if [ "$event" = UserPromptSubmit ] && ! grep -q '"prompt" *: *""' "$new"; then
    # What the agent signalled before now belongs to an earlier turn. (Qwen Code tells of an empty prompt within one.)
    true >"$agent/turn"
fi
if [ "$ask" ] && [ "$policy" ]; then
    # It takes the new file away before it says anything; a Python that can't run the one form runs the other.
    for form in pyc py; do
        if [ -e "$new" ]; then
            @PYTHON@ -I -S "$NBS_FLEET_RUN/bin/nbs-hook.$form" "$event" "$new" "$kept" </dev/null
        fi
    done
    if [ ! -e "$new" ]; then exit 0; fi
fi
mv -f "$new" "$kept"
exit 0
"""


def front(python: str) -> str:
    """The text of the front for a run directory whose hook program is run by the interpreter `python` (absolute).

    It runs in any POSIX shell and needs `cat`, `mv`, `rm` and `grep`. Its environment names the agent: NBS_FLEET_RUN (the
    run directory) and NBS_HANDLE.
    """
    quoted = "'" + python.replace("'", "'\\''") + "'"
    return _FRONT.replace("@PYTHON@", quoted)
