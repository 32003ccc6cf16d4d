"""Why a goal is missed, for each figure of which that is known: the limit that stops it. Pure."""

from __future__ import annotations

LIMITS: dict[str, str] = {
    "idle CPU": "While all rest, a poll comes each 150 s, in which a quarter of the agents are looked at: 0.2 to 0.5 ms for each by "
    "a profile, and another one after it that touches next to nothing. On a virtual machine at rest all of that takes up to ten "
    "times as long: a bare process that only wakes up each 30 s stands beside it, and took 0.6 to 24 ms for each wake-up of "
    "nothing at all on the machine of this table. Each page that is touched is slow for the first time.",
    "wake-ups": "One for each slow poll, and those for the answers of tmux to its looks.",
    "memory (PSS)": "What Python takes for the imports alone stands beside it; the control client takes 0.55 MB. By tracemalloc an agent "
    "has 24 kB. Python gives an arena of 1 MB back only once it is empty: after a start of 200 agents 4 MB lay in unused and "
    "half-full parts of them.",
    "memory, each agent": "By tracemalloc 24 kB: what its three tasks hold while they wait, paths, what it knows and reports, watched folders, "
    "what its files should hold, its messages. The allocator takes nearly as much again.",
    "CPU with": "A client without hooks or a state file is known by its screen alone: each second of redrawing costs a look at its "
    "pane, 0.2 ms of the supervisor and as much of tmux.",
    "pane output": "tmux's server and its client stand between, and each is woken for itself: what a bare control client needs stands "
    "beside it. The decision and its line in the story come before the time is taken.",
    "message -> in": "The client waits until a file of its mail has settled before it runs its hooks, and then builds its "
    "request.",
    "up of 50 stubs": "All of it is CPU, on two cores: the imports and the check of the team file take a fifth of it before anything "
    "starts, then `up` takes 3 to 5 ms for each agent (nine folders and some seven files, half of it in the file system), launch.sh "
    "with the stub 3.6, tmux 1.2; the start of the supervisor is a quarter of all.",
    "up of 200 stubs": "All of it is CPU: 2.7 s on two cores. Raw tmux alone takes longer than the goal. For each agent `up` takes 4 ms, "
    "launch.sh with the stub 3.6, the supervisor 3, tmux 1.7.",
    "up of 10 simulated": "The start of `up` itself and of the supervisor (0.5 s of CPU for both) is not hidden behind "
    "that few clients.",
    "up of": "All of it is CPU: for 50 agents their own starts take 2.6 to 3.2 s, the supervisor 0.9 s and `up` 0.7 s (by "
    "/proc/PID/stat once all were idle), on the same cores as the clients.",
    "supervisor killed": "A new Python process imports its modules for 0.09 s of CPU before it can look at anything; the rest is some 2 ms for "
    "each agent: the marker of a sidecar is replaced, a record is written, seven folders are watched, a story is begun, the screen "
    "is read.",
    "chat line -> acknowledged": "Nearly all of it is the client's own part: the simulator imitates how Claude Code waits "
    "until a file of its mail has settled, and runs its hooks, before it answers. A shell loop counts as soon as it has "
    "typed, and its client acknowledges without thinking.",
    "state file written": "One event loop in Python: the read of the file, the decision and the record of it come before "
    "the time is taken. Shell loops need half a second on the average, so 1,000 times sooner would be below 0.5 ms.",
    "chat line written": "As with state files; the chat and its cursors are read, and each agent's share is counted.",
    "bus event written": "As with chats; the folder is listed, and each new event is read and parsed. In a bare loop the "
    "news of a renamed file needs 0.11 to 0.14 ms to its callback, so more than the goal, and the look at the folder 0.04 ms "
    "(medians of 300 and 200 on two cores with other work); the rest is the decision of the agent's sidecar.",
    "agent killed": "tmux has to reap the process and to say its exit status, for which it is asked again and again.",
    "hook, nothing": "The program does more than the bare one: it looks at what its client asks for and what waits.",
    "hook, a message": "It is Python, whose start with json takes most of it.",
    "drain, one": "Each message takes a `mv` and a `cat` more.",
    "nbs-fleet ps": "Of its 0.11 s of CPU (least of 12), Python takes 0.01 s, the import of typer and the table of commands "
    "0.05 s, msgspec and the readers of the run directory as much; the team's records themselves are not to be seen in it.",
    "nbs-fleet --version": "The start of Python and of the package.",
    "dialog": "The screen and the hook are both read before anybody is called.",
}
"""By the beginning of a figure's name."""
UNKNOWN = "The limit is not known yet."


def limit_of(name: str) -> str:
    """What stops this figure; the longest beginning that fits counts."""
    fitting = [beginning for beginning in LIMITS if name.startswith(beginning)]
    return LIMITS[max(fitting, key=len)] if fitting else UNKNOWN
