"""The texts of the small shell programs in a run directory: bin/nbs-fleet and supervise.sh."""

from __future__ import annotations

from collections.abc import Mapping

from nbs_fleet.plan.script import quote

FAILED = "supervisor.failed"
"""The file in the run directory that says, for people and `ps`, that supervise.sh has given up, and why."""

_SUPERVISE = """\
#!/bin/sh
# Keeps this team's supervisor running. It is rendered by `nbs-fleet up`; changes made here are lost.
# Ends with the supervisor's exit 0. After any other end it waits 1, 2, 4 .. 60 s and starts it again.
# The tenth death within ten minutes is the last: the reason goes to {failed}, and this ends with 1.
umask 077
run={run}
failed=$run/{failed}
log=$run/supervisor.log
unit=${{NBS_SUPERVISE_UNIT:-1000}} # milliseconds of one unit of waiting
gone= # the last child that was waited for to its end
trap '' INT QUIT TSTP # a stray key in this window is no reason to end
trap 'leave 129' HUP
trap 'leave 143' TERM

# Take the child along: nothing may outlive this script unseen.
leave() {{
    trap '' HUP TERM
    if [ "$!" != "$gone" ]; then
        kill -TERM "$!" 2>/dev/null
        wait "$!" 2>/dev/null
    fi
    exit "$1"
}}

# Wait $1 units, and not a moment longer once a signal comes.
rest() {{
    ms=$(($1 * unit))
    if [ $((ms % 1000)) -eq 0 ]; then
        sleep $((ms / 1000)) &
    else
        sleep "$((ms / 1000)).$(printf %03d $((ms % 1000)))" &
    fi
    wait "$!"
    gone=$!
}}

give_up() {{
    {{
        printf '%s\\n' "the supervisor died 10 times within 10 minutes (last exit $1); the end of its log:"
        tail -n 20 "$log" 2>/dev/null
    }} >"$failed.new"
    mv -f "$failed.new" "$failed"
    printf '%s\\n' "nbs-fleet: the supervisor keeps dying; see $failed" >&2
    exit 1
}}

rm -f "$failed"
delay=1
set -- # "$@" holds the times of the last ten deaths, oldest first
while :; do
    began=$(date +%s)
    {python} -I -m nbs_fleet.supervisor "$run" 2>>"$log" &
    wait "$!"
    status=$?
    gone=$!
    if [ "$status" -eq 0 ]; then exit 0; fi

    now=$(date +%s)
    set -- "$@" "$now"
    if [ $# -gt 10 ]; then shift; fi
    if [ $# -eq 10 ] && [ $((now - $1)) -le 600 ]; then give_up "$status"; fi
    # A run of a minute or more was a good one: be quick again.
    if [ $((now - began)) -ge 60 ]; then delay=1; fi
    rest "$delay"
    delay=$((delay * 2))
    if [ "$delay" -gt 60 ]; then delay=60; fi
done
"""

_KEY = """\
#!/bin/sh
# Carries out what a key of this team's tmux is bound to: key next|skip|back|list [CLIENT]
# It is rendered by `nbs-fleet up`; changes made here are lost.
{exports}fleet() {{ {program} "$@" --team {file}; }}
# tmux takes `#` for the beginning of a format, which can run commands, and `%` for that of a time: what is said may
# hold the words of an agent.
say() {{ tmux display-message ${{client:+-c "$client"}} "$(printf '%s' "$1" | sed 's/[#%]/&&/g')"; }}
client=$2
case $1 in
next | back) said=$(fleet "$1" --client "$client" 2>&1) || say "$said" ;;
skip)
    if said=$(fleet skip 2>&1); then fleet next --client "$client"; else say "$said"; fi
    ;;
list)
    # The dashboard previews the pane of the chosen item; it is an extra, which may be missing.
    fleet top --queue && exit 0
    fleet queue
    printf '\\nEnter closes this. '
    read -r _
    ;;
esac
exit 0
"""

_SEGMENT = """\
#!/bin/sh
# What the status line says of the attention queue: how many wait, nothing if none, `down` without a supervisor.
read -r pid start number 2>/dev/null <{waiting} || {{ echo 'down '; exit 0; }}
if [ -r "/proc/$pid/stat" ]; then
    read -r rest <"/proc/$pid/stat"
    # The 22nd field, counted behind the name, says when the process began: a number may be given out again.
    set -f
    set -- ${{rest##*) }}
    if [ "${{20}}" != "$start" ]; then number=down; fi
elif [ -d /proc/self ] || ! kill -0 "$pid" 2>/dev/null; then
    number=down
fi
case $number in
0) ;;
down) echo 'down ' ;;
*) echo "$number waiting " ;;
esac
"""


def key_script(program: str, file: str, environ: Mapping[str, str]) -> str:
    """The text of `<run>/bin/key`, which the key bindings of the team's tmux run.

    `program` is the absolute path of nbs-fleet, `file` of the team file; `environ` what it must know of the caller's.
    """
    exports = "".join(f"export {name}={quote(value)}\n" for name, value in environ.items())
    return _KEY.format(exports=exports, program=quote(program), file=quote(file))


def segment_script(waiting: str) -> str:
    """The text of `<run>/bin/segment`, which the status line runs; `waiting` is the file that the supervisor keeps."""
    return _SEGMENT.format(waiting=quote(waiting))


def bin_wrapper(python: str) -> str:
    """The text of `<run>/bin/nbs-fleet`: this very nbs-fleet, whatever python or PATH its caller has.

    `python` is the absolute path of the interpreter; `-I` keeps the caller's PYTHON* variables and folder out.
    """
    return f'#!/bin/sh\nexec {quote(python)} -I -m nbs_fleet "$@"\n'


def supervise_script(python: str, run: str) -> str:
    """The text of supervise.sh for the team whose run directory is `run` (absolute), with the interpreter `python`.

    HUP and TERM end it together with its child. NBS_SUPERVISE_UNIT is the length of one unit of its waits in
    milliseconds (1000).
    """
    return _SUPERVISE.format(run=quote(run), python=quote(python), failed=FAILED)
