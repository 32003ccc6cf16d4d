"""Why a goal is missed, for each figure of which that is known: the limit that stops it. Pure."""

from __future__ import annotations

LIMITS: dict[str, str] = {
    "idle CPU": "tmux looks at what is subscribed to of each pane once a second (a timer of the server's own, 1 s fixed): a "
    "bare server with 50 windows and nothing else took 0.000 % of a core, with one subscription to a constant of all panes "
    "0.028 %, with what is needed of each pane 0.048 % (8 s each, on this kind of machine). Without it clients that have no "
    "state file would be seen late. The rest is the slow poll: a look at a tenth of the agents each 30 s.",
    "wake-ups": "One a second is the tmux server's timer for subscriptions; the supervisor adds one for every slow poll, and "
    "those for the answers of tmux to its looks (0.2 a second together, at 50 agents).",
    "memory (PSS)": "What Python takes for the imports alone stands beside it: asyncio 10 to 11 MB, with msgspec, psutil, "
    "tenacity, asyncinotify and the supervisor's own modules 17 MB. By tracemalloc the rest is 2 MB for 50 agents (42 kB "
    "each: plan, environment, mind, watches, queues) and what the allocator keeps of a start; one arena for all threads, or "
    "malloc for small objects, changed less than 1 MB of it.",
    "memory, each agent": "A sidecar keeps its driver, its plan, what it knows, a dozen watched folders and a subscription; "
    "tmux -C keeps a pane's subscription, too.",
    "CPU with": "A client without hooks or a state file is known by its screen alone: each second of redrawing costs a look "
    "at its pane. Clients with a state file are not looked at meanwhile.",
    "up of 50 stubs": "The command imports pydantic, typer, libtmux and msgspec and checks the file before anything starts "
    "(0.4 s of CPU); then at most 16 agents may be starting at once, on purpose: fifty real clients at a time would keep "
    "each other from ever becoming ready. tmuxp and shells have no such bound, and do not look whether anything runs.",
    "up of 200 stubs": "As with 50: the imports, and at most 16 agents starting at once.",
    "up of 10 simulated": "The start of `up` itself and of the supervisor (0.5 s of CPU for both) is not hidden behind "
    "that few clients.",
    "up of": "At most 16 agents may be starting at once, and the supervisor's own start needs a core meanwhile.",
    "supervisor killed": "A new Python process imports its modules for 0.15 s of CPU before it can look at anything; the "
    "taking over itself, for 50 agents, takes as much again (3 ms each: a record, marks and a story are written, seven "
    "folders watched, the screen read; by a profile none of it is more than a tenth).",
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
    "nbs-fleet ps": "The start of Python, typer and msgspec, then the plan and a record for each agent.",
    "nbs-fleet --version": "The start of Python and of the package.",
    "dialog": "The screen and the hook are both read before anybody is called.",
}
"""By the beginning of a figure's name."""
UNKNOWN = "The limit is not known yet."


def limit_of(name: str) -> str:
    """What stops this figure; the longest beginning that fits counts."""
    fitting = [beginning for beginning in LIMITS if name.startswith(beginning)]
    return LIMITS[max(fitting, key=len)] if fitting else UNKNOWN
