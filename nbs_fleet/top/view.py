"""What the dashboard shows, as data: what was seen, a time and a width in; tables, lines and titles out. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from nbs_fleet.attention.queue import Item
from nbs_fleet.cli import output, words
from nbs_fleet.cli.output import Piece, Span
from nbs_fleet.cli.rows import remark, state
from nbs_fleet.model import AgentState
from nbs_fleet.supervisor.status import AgentStatus, span
from nbs_fleet.top.grid import Column, Grid, cut_line, fit, paragraph
from nbs_fleet.top.look import Look, Mirror

Line = list[Piece]

WIDE = 140
"""Columns from which on everything is on one screen."""
ROOMY, VAST = 90, 130
"""Columns from which on a table of agents has more columns, all of its columns."""
FULL, HALF = 90, 75
"""Percent of its context from which on an agent's share is red, yellow, where the team file sets no marks."""
BAR = 6
"""Cells of the bar that shows a share."""
TEAM = "team"
LONGEST = 16
"""Columns of the longest name in a chat."""

AGENTS = (
    Column("HANDLE"),
    Column("ROLE", gives=True, above=ROOMY),
    Column("MODEL", gives=True, above=ROOMY),
    Column("STATE"),
    Column("SINCE", right=True),
    Column("CONTEXT", right=True),
    Column("TOKENS", right=True),
    Column("UNREAD", right=True),
    Column("QUEUED", right=True, above=ROOMY),
    Column("RESTARTS", right=True),
    Column("", gives=True, above=VAST),
)
QUEUE = (
    Column("ID"),
    Column("HANDLE"),
    Column("REASON"),
    Column("FOR", right=True),
    Column("WHAT", gives=True),
)


def header(look: Look | None, trouble: str, now: float, width: int, home: str = "") -> Line:
    """The line at the top: which team, where; the supervisor, and what is wrong if anything is."""
    if look is None:
        return cut_line([Span(f" {trouble}" if trouble else " …", "red" if trouble else "dim")], width)
    plan, supervisor = look.fleet.plan, look.fleet.supervisor
    left: Line = [Span(f" {plan.team}", "bold"), Span(f"  {words.home(plan.root, home)}", "dim")]
    healthy = supervisor.state == "running"
    since = f" {span(now - supervisor.since)}" if supervisor.since else ""
    right: Line = [Span(f"supervisor {supervisor.state}{since}", "green" if healthy else "red")]
    for said in _troubles(look, trouble):
        right += ["  ", Span(said, "red")]
    waiting = len(look.queue.visible(now))
    number = len(look.fleet.agents)
    right += [f"  {number} {'agent' if number == 1 else 'agents'}"]
    right += [Span(f"  {waiting} {'waits' if waiting == 1 else 'wait'} for you", "yellow")] if waiting else []
    size = sum(output.width_of(output.clean(p if isinstance(p, str) else p.text)) for p in right)
    room = max(width - size - 1, 0)
    line = cut_line(left, max(room - 2, 0))
    used = sum(output.width_of(p if isinstance(p, str) else p.text) for p in line)
    return cut_line([*line, " " * (room - used), *right, " "], width)


def _troubles(look: Look, trouble: str) -> Iterable[str]:
    if trouble:
        yield trouble
    if not look.fleet.tmux:
        yield "not up"
    if look.fleet.supervisor.alarm:
        yield look.fleet.supervisor.alarm
    if look.fleet.file_changed:
        yield "file changed since up"


def agents(look: Look, now: float, width: int) -> Grid:
    """One row per agent, its handle being the key."""
    rows = [(row.handle, _agent(row, now, roomy=width >= ROOMY)) for row in look.fleet.agents]
    return fit(AGENTS, rows, width)


def _agent(row: AgentStatus, now: float, *, roomy: bool) -> Line:
    record, agent = row.record, row.plan.agent if row.plan else None
    return [
        Span(row.handle, "bold"),
        (agent.role if agent else None) or "",
        Span(record.model or (agent.model if agent else None) or (agent.driver if agent else ""), "dim"),
        Span(state(row), words.STYLES.get(row.state, "dim")),
        span(max(0.0, now - record.since)) if record.since else "",
        _context(row, roomy=roomy),
        amount(sum(record.tokens.values())),
        _number(sum(record.unread.values())),
        _number(record.queued),
        Span(_number(record.restarts), "yellow" if record.restarts else ""),
        Span(remark(row), "dim"),
    ]


def _number(value: int) -> str:
    """A number of things; nothing where there are none, so that what is there stands out."""
    return str(value) if value else "·"


def amount(tokens: int) -> str:
    """A number of tokens in four columns: `950`, `48k`, `1.2M`."""
    if tokens < 1_000:
        return _number(tokens)
    if tokens < 999_500:
        return f"{tokens / 1_000:.0f}k"
    return f"{tokens / 1_000_000:.1f}M"


def _context(row: AgentStatus, *, roomy: bool) -> Span:
    record = row.record
    if not record.context or row.plan is None:
        return Span("·")
    rules = row.plan.agent.context
    share = min(round(100 * record.context / rules.limit), 999)
    full, half = rules.handover or FULL, rules.warn or HALF
    style = "red" if share >= full else "yellow" if share >= half else "green"
    filled = min(round(share * BAR / 100), BAR)
    bar = f"{'━' * filled}{'╌' * (BAR - filled)} " if roomy else ""
    return Span(f"{bar}{share:>3}%", style)


def queue(look: Look, now: float, width: int) -> Grid:
    """One row per item that waits, its id being the key."""
    rows = [
        (
            item.id,
            (
                Span(item.id, "bold"),
                item.handle or TEAM,
                Span(item.need.kind, "yellow"),
                span(max(0.0, now - item.since)),
                item.need.title,
            ),
        )
        for item in look.queue.visible(now)
    ]
    return fit(QUEUE, rows, width)


def queue_title(look: Look, now: float) -> str:
    """The heading of the queue; it says how many items are not shown."""
    shown = len(look.queue.visible(now))
    hidden = len(look.queue.items) - shown
    return f"Waits for you ({shown})" + (f", {hidden} later" if hidden else "")


def chat(look: Look, now: float, width: int) -> list[Line]:
    """The messages of the chat, the newest last."""
    if not look.chat:
        return note("The team has no chat.")
    if not look.messages:
        return note("Nobody has said anything here.")
    lines: list[Line] = []
    wide = min(max(output.width_of(output.clean(message.handle)) for message in look.messages), LONGEST)
    for message in look.messages:
        when = words.moment(message.at, now).rpartition(":")[0] if message.at else ""
        who = output.cut(output.clean(message.handle), wide)
        head: Line = [Span(f"{when} ", "dim"), Span(output.pad(who, wide), "cyan"), "  "]
        lines += paragraph(head, message.text.strip(), width)
    return lines


def story(look: Look, now: float, width: int) -> list[Line]:
    """What happened to the selected agent, the newest last."""
    if not look.story:
        return note("Nothing has happened yet.")
    lines: list[Line] = []
    for told in look.story:
        head: Line = [Span(f"{words.moment(told.at, now)} ", "dim"), told.what, "  "]
        lines += paragraph(head, "  ".join(told.particulars), width, "dim")
    return lines


def screen(mirror: Mirror | None, now: float, width: int) -> list[Line]:
    """The screen of the selected agent, cut to the width; empty rows at its end are left out."""
    if mirror is None:
        return note("…")
    rows = list(mirror.rows)
    while rows and not rows[-1].strip():
        rows.pop()
    kept = note(f"the last screen kept, {words.span(now - mirror.at)} old") if mirror.at else []
    if not rows:
        return note(mirror.remark or "Its screen is empty.")
    return kept + [cut_line([row], width) for row in rows]


def note(text: str) -> list[Line]:
    """A remark in the place of what is not there."""
    return [[Span(text, "dim")]]


def question(item: Item, width: int, height: int) -> list[Line]:
    """What an item asks, in full as far as it fits: its title, its text, the agent's last words."""
    need = item.need
    lines = paragraph([Span(f"{item.handle or TEAM}: {need.kind}  ", "bold")], need.title, width)
    for text, style in ((need.text, ""), (need.context, "dim")):
        if text.strip() and text.strip() != need.title.strip():
            lines += [[""], *paragraph([], text.strip(), width, style)]
    if len(lines) > height:
        lines = [*lines[: max(height - 1, 1)], [Span("… the rest is on its screen", "dim")]]
    return lines


def options(item: Item, width: int) -> list[Line]:
    """The answers to an item, one line each."""
    wide = max((output.width_of(key) for key, _ in item.need.options), default=0)
    return [cut_line([Span(output.pad(key, wide), "bold"), f"  {label}"], width) for key, label in item.need.options]


def find_item(look: Look, now: float, item_id: str, handle: str) -> Item | None:
    """The item that waits under this id, else the first one of this agent."""
    waiting = look.queue.visible(now)
    own = (item for item in waiting if item.handle == handle)
    return next((item for item in waiting if item.id == item_id), None) or next(own, None)


def is_paused(look: Look, handle: str) -> bool:
    """Whether this agent is left in peace."""
    return any(row.handle == handle and row.state is AgentState.PAUSED for row in look.fleet.agents)


def rest(look: Look | None, now: float) -> float:
    """Seconds for which nothing on the dashboard changes by itself: times grow, hidden items come back."""
    if look is None:
        return 1.0
    begun = [row.record.since for row in look.fleet.agents if row.record.since]
    begun += [item.since for item in look.queue.visible(now)]
    begun += [look.fleet.supervisor.since] if look.fleet.supervisor.since else []
    waits = [_until_longer(now - since) for since in begun]
    waits += [item.hidden - now for item in look.queue.items if item.hidden > now]
    return max(min(waits, default=60.0), 1.0)


def _until_longer(age: float) -> float:
    """Seconds until a span of this length is written in another way."""
    for size in (86_400, 3_600, 60):
        if age >= size:
            return size - age % size
    return 1.0 - age % 1.0


def titles(look: Look, handle: str, now: float, *, wide: bool) -> tuple[str, ...]:
    """The headings of the panels that are shown one at a time where there is little room: queue, screen, story, chat."""
    if not wide:
        waiting = len(look.queue.visible(now))
        return (f"Queue ({waiting})" if waiting else "Queue", "Screen", "Story", "Chat")
    chat_name = f"Chat {look.chat}" if look.chat else "Chat"
    return (queue_title(look, now), f"Screen of {handle}", f"Story of {handle}", chat_name)


def tabs(names: Sequence[str], chosen: int) -> Line:
    """The titles of panels that share one place, the chosen one bright."""
    line: Line = []
    for number, name in enumerate(names):
        line += [" "] if number else []
        line.append(Span(f"{number + 1} {name}", "bold reverse" if number == chosen else "dim"))
    return line


def keys(table: Sequence[tuple[str, str]]) -> list[Line]:
    """What each key does."""
    wide = max(output.width_of(key) for key, _ in table)
    return [[Span(output.pad(key, wide), "bold"), f"  {does}"] for key, does in table]
