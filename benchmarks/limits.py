"""Why a goal is missed, for each figure of which that is known: the limit that stops it. Pure."""

from __future__ import annotations

LIMITS: dict[str, str] = {
    "idle CPU": "All of it is the slow poll, the supervisor's one wake-up each 30 s, in which it looks at a "
    "twentieth of the agents: 0.2 to 0.5 ms for each by a profile, and as much for the whole team. A bare process "
    "that only wakes up as often stands beside it. On a virtual machine at rest the same poll takes up to ten times as "
    "long (43 ms instead of 4, without any fault seen inside): each page that it touches is slow for the first time.",
    "wake-ups": "One for each slow poll, and those for the answers of tmux to its looks.",
    "memory (PSS)": "What Python takes for the imports alone stands beside it: asyncio 11.5 MB, with msgspec, "
    "inotify_simple and the supervisor's own modules 15.5 MB, without OpenSSL and what an idle team never needs. By "
    "tracemalloc the rest is 1.2 MB and 29 kB for each agent; the allocator keeps as much again in blocks that a "
    "start left half full.",
    "memory, each agent": "By tracemalloc 29 kB: paths and their strings 5 kB, closures and suspended coroutines of "
    "three tasks 8, what it knows and reports 4, watched folders 4, what its files should hold 2, its environment 1, "
    "its messages 1. The allocator takes as much again.",
    "CPU with": "A client without hooks or a state file is known by its screen alone: each second of redrawing costs "
    "a look at its pane, 0.2 ms of the supervisor and as much of tmux. Clients with a state file are not looked at "
    "meanwhile.",
    "pane output": "Two processes stand between, tmux's server and its client, and each is woken for itself: raw "
    "output of a terminal beside it needs one. The decision and its line in the story come before the time is taken.",
    "message -> in": "The client waits until a file of its mail has settled before it runs its hooks, and then builds its "
    "request.",
    "up of 50 stubs": "The command's imports and checks take 0.19 s of CPU before anything starts (0.11 s of it "
    "pydantic with the schema). Then each agent takes 3 ms in `up`, for nine folders and some seven files, and "
    "launch.sh 2 ms more than a bare sh; the supervisor's own start is a quarter of all CPU until then. At most 16 "
    "starting agents may want a core at the same time; who rests for 20 ms makes room.",
    "up of 200 stubs": "As with 50: the imports, and each agent's folders, files and launch.sh.",
    "up of 10 simulated": "The start of `up` itself and of the supervisor (0.5 s of CPU for both) is not hidden behind "
    "that few clients.",
    "up of": "All of it is CPU: for 50 agents their own starts take 2.6 to 3.2 s, the supervisor 0.9 s and `up` 0.7 s (by "
    "/proc/PID/stat once all were idle), on the same cores as the clients.",
    "supervisor killed": "A new Python process imports its modules for 0.09 s of CPU before it can look at anything; "
    "the taking over itself takes as much again for 50 agents (2 ms each: the marker of a sidecar and a record are "
    "written, a story is begun, seven folders are watched, the screen is read; by a profile none of it is more than "
    "a quarter).",
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
