"""What the team's tmux looks like: its configuration file, and the commands that put panes into windows."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from nbs_fleet.launch.tmux_text import Pane, check_pane, line, session_target, window_target
from nbs_fleet.plan.script import quote
from nbs_fleet.spec.team import Layout

SHELL = "/bin/sh"
"""Runs launch.sh, which replaces it by the client: two words of argv, so tmux starts no login shell for them."""


class PaneWanted(Struct, frozen=True):
    """A pane to start: whose it is, the window it belongs to, its number in there, and its launch.sh."""

    handle: str
    window: str
    slot: int
    script: str


KEYS = (("Tab", "next"), ("S", "skip"), ("B", "back"))
"""Keys after the prefix (free in tmux itself) for the attention queue."""
LIST_KEY = "g"


def conf(layout: Layout, team: str, bin_dir: str | None = None) -> str:
    """The text of the team's own tmux.conf.

    First what is merely pleasant, then the person's own `~/.config/nbs-fleet/tmux.conf` if there is one, then
    what the fleet can't work without, so that no wish can break it. `bin_dir` has the programs `key` and `segment`.
    """
    columns, height = layout.size
    pleasant = (
        ("set", "-g", "mouse", "on"),
        ("set", "-g", "base-index", "0"),
        ("set", "-g", "history-limit", "10000"),
        ("set", "-g", "status-left", f"[{team}] "),
        ("set", "-g", "status-left-length", "40"),
        (
            *("set", "-g", "status-right"),
            f"{_segment(bin_dir)}#{{?pane_dead,ended  ,}}#{{?pane_in_mode,copy mode  ,}}#{{=40:pane_title}}",
        ),
        ("set", "-g", "status-interval", "2" if bin_dir else "0"),
        *_resting(team),
        *_bindings(bin_dir),
        ("set", "-g", "display-time", "2000"),
        ("set", "-s", "escape-time", "20"),
        ("set", "-g", "default-terminal", "tmux-256color"),
        ("source-file", "-q", "~/.config/nbs-fleet/tmux.conf"),
    )
    musts = (
        # A dead pane stays, with its exit status and its last screen.
        ("set", "-g", "remain-on-exit", "on"),
        # tmux's own "Pane is dead" would scroll the first row of that screen away (an option since 3.3).
        ("set", "-gq", "remain-on-exit-format", ""),
        ("set", "-g", "focus-events", "on"),
        ("set", "-g", "automatic-rename", "off"),
        ("set", "-g", "allow-rename", "off"),
        # The title is one of the sources that say what a client does (an option since 3.6; before, always so).
        ("set", "-gq", "allow-set-title", "on"),
        # What a person who attaches has in their environment is no business of the agents.
        ("set", "-g", "update-environment", ""),
        ("set", "-g", "default-size", f"{columns}x{height}"),
        # `manual` here makes 3.3a to 3.6b crash at the next new window.
        ("set", "-g", "window-size", "latest"),
        ("set", "-g", "synchronize-panes", "off"),
        ("set", "-g", "destroy-unattached", "off"),
        ("set", "-s", "exit-unattached", "off"),
        ("set", "-g", "monitor-silence", "0"),
        ("set", "-sq", "extended-keys-format", "xterm"),
    )
    return "".join(f"{_conf_line(words)}\n" for words in (*pleasant, *musts))


def _resting(team: str) -> tuple[tuple[str, ...], ...]:
    """No timer for a status line that nobody sees: tmux keeps one for each client, our own control client included."""
    target = session_target(team)
    # A person's client is named by its terminal.
    seen = "#{m:*/dev/*,#{session_attached_list}}"
    rest = f"set -t {target}: status-interval 0"
    choose = f"if-shell -F -t {target}: '{seen}' 'set -u -t {target}: status-interval' '{rest}'"
    told = {"session-created": rest, "client-attached": choose, "client-detached": choose}
    return tuple(("set-hook", "-g", f"{event}[90]", command) for event, command in told.items())


def _segment(bin_dir: str | None) -> str:
    # The status line's formats are read as times first.
    return f"#({_program(bin_dir, 'segment')})".replace("%", "%%") if bin_dir else ""


def _bindings(bin_dir: str | None) -> tuple[tuple[str, ...], ...]:
    if not bin_dir:
        return ()
    key = _program(bin_dir, "key")
    bound = tuple(("bind-key", name, "run-shell", "-b", f"{key} {verb} '#{{client_name}}'") for name, verb in KEYS)
    popup = ("bind-key", LIST_KEY, "display-popup", "-w", "95%", "-h", "90%", "-E", f"{key} list")
    return (*bound, popup)


def _program(bin_dir: str, name: str) -> str:
    """A program of the run directory as a shell word; tmux takes a `#` for the beginning of a format."""
    return quote(f"{bin_dir}/{name}").replace("#", "##")


def start_lines(session: str, wanted: Sequence[PaneWanted], existing: Sequence[Pane], layout: Layout) -> list[str]:
    """Commands, one per line for one `source-file`, that start the wanted panes and mark them as ours.

    The session is named like the team. `existing` is all panes of the server. A wanted handle whose pane is there and dead is respawned in place; one
    that lives is left alone. (A pane whose client is known to be gone while a child keeps the terminal open is
    to be passed as dead.) Nobody's focus moves, and no index is used anywhere.

    Each pane is born in a window of its own under a name that is free, marked there, where it can't be mixed up
    with another, and then joined to its place: so it has its mark before anyone can look. Where there is no
    room for it, it simply stays in its own window.
    """
    names = _Names({pane.window for pane in existing})
    ours = {pane.handle: pane for pane in existing if pane.team == session and pane.handle}
    lines: list[str] = []
    fresh: dict[str, list[PaneWanted]] = {}
    for want in wanted:
        found = ours.get(want.handle)
        if found is None:
            fresh.setdefault(want.window, []).append(want)
        elif found.dead:
            lines += _respawn(found, want)
    for window, wants in fresh.items():
        born: list[str] = []
        for want in sorted(wants, key=lambda want: want.slot):
            born.append(names.free(want.handle))
            lines += _birth(session, born[-1], want)
        lines += _place(session, window, born, _last_of(window, wants, existing, session), layout.arrange)
    return lines


class _Names:
    """Gives out window names that are free, so that a target by name means one window."""

    def __init__(self, taken: set[str]) -> None:
        self._taken = set(taken)

    def free(self, handle: str) -> str:
        name, number = handle, 1
        while name in self._taken:
            number += 1
            name = f"{handle}_{number}"
        self._taken.add(name)
        return name


def _place(session: str, window: str, born: list[str], last: Pane | None, arrange: str) -> list[str]:
    lines: list[str] = []
    if last is None:
        place, rest = window_target(session, born[0]), born[1:]
    else:
        place, rest = check_pane(last.id), born
    # A pane is joined right after the target: from the last to the first, they end up in order.
    for name in reversed(rest):
        lines.append(line("join-pane", "-d", "-s", window_target(session, name), "-t", place))
        lines.append(line("select-layout", "-t", place, arrange))
    if last is None and born[0] != window:
        lines.append(line("rename-window", "-t", place, window))
    return lines


def _birth(session: str, name: str, want: PaneWanted) -> list[str]:
    target = window_target(session, name)
    return [
        line("new-window", "-d", "-t", f"{session_target(session)}:", "-n", name, "--", SHELL, want.script),
        line("set-option", "-p", "-t", target, "@nbs_handle", want.handle),
        line("set-option", "-p", "-t", target, "@nbs_team", session),
    ]


def _respawn(pane: Pane, want: PaneWanted) -> list[str]:
    target = check_pane(pane.id)
    return [
        # The title of the client that died would be read as news of the one that starts.
        line("select-pane", "-t", target, "-T", ""),
        line("respawn-pane", "-k", "-t", target, "--", SHELL, want.script),
    ]


def _last_of(window: str, wants: Sequence[PaneWanted], existing: Sequence[Pane], session: str) -> Pane | None:
    """The last pane of the window they belong to, if that window is there already."""
    handles = {want.handle for want in wants}
    theirs = [pane for pane in existing if pane.team == session and pane.handle not in handles]
    home = next((pane.window_id for pane in theirs if pane.window == window), None)
    return next((pane for pane in reversed(existing) if pane.window_id == home), None)


def _conf_line(words: Sequence[str]) -> str:
    # tmux expands a leading tilde only outside of quotes.
    return " ".join(word if word.startswith("~/") else line(word) for word in words)
