"""The texts of the small shell programs in a run directory: bin/nbs-fleet and supervise.sh."""

from __future__ import annotations

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
