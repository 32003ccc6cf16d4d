"""The names a team file declares and refers to: handles and their copies, roles, chats, drivers, who waits for whom."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct

from nbs_fleet.spec.nodes import Map, Node, Scalar, Seq, scalars, text_of
from nbs_fleet.spec.problems import Path, Problems, quoted, suggest

RESERVED = ("team", "sidecar", "system", "hub", "chat-repair", "nbs-chat", "nbs-chat-terminal")
"""Names that the nbs tools use for themselves."""

MAX_AGENTS = 500
MAX_CHATS = 100
CROWD = 50
"""Members of a chat that leave room for a person and `sidecar`: nbs-chat aborts at the 53rd writer of a chat."""


class Entry(Struct, frozen=True):
    """One item of `agents`: `base` is its handle, `copies` the handles it stands for."""

    path: Path
    node: Map
    base: str
    handle: Scalar
    copies: tuple[str, ...]
    count: int | None


class Names(Struct, frozen=True):
    """What is declared.

    `owners` maps a base handle and each of its copies to its item; `members` a chat to the handles that take part
    (None: all). `hidden` maps a name that came from a variable to what may be shown. `whole` is false where a faulty item hides names; then a name that is missing is no error.
    """

    entries: tuple[Entry, ...]
    owners: dict[str, Entry]
    roles: dict[str, Map]
    members: dict[str, frozenset[str] | None]
    hidden: dict[str, str]
    whole: bool

    def copies(self, name: str) -> tuple[str, ...]:
        """The handles that a name stands for: all copies of a base handle, or the one agent itself."""
        entry = self.owners.get(name)
        if entry is None:
            return ()
        return entry.copies if name == entry.base else (name,)

    def written(self, name: str) -> str:
        """The name as it stands in the file, in quotes."""
        return quoted(self.hidden.get(name, name))

    def offered(self, names: Iterable[str]) -> list[str]:
        """The names that may be suggested."""
        return [name for name in names if name not in self.hidden]


def names_of(tree: Map) -> Names:
    """Collect the declared names; values of the wrong kind are left out (the shape check names them)."""
    declared, chats = tree.get("agents"), tree.get("chats")
    items = declared.items if isinstance(declared, Seq) else ()
    entries: list[Entry] = []
    owners: dict[str, Entry] = {}
    for n, item in enumerate(items[: MAX_AGENTS + 1]):
        entry = _entry(n, item, room=2 * MAX_AGENTS - len(owners))
        if entry is not None:
            entries.append(entry)
            for name in (entry.base, *entry.copies):
                owners.setdefault(name, entry)
    roles = tree.get("roles")
    found = {k: v for k, v in roles.items.items() if isinstance(v, Map)} if isinstance(roles, Map) else {}
    named = list(chat_names(tree))
    hidden = {text: node.source for _, _, node, text in named if node.expanded}
    hidden |= {name: e.handle.source for e in entries if e.handle.expanded for name in (e.base, *e.copies)}
    bare = Names(tuple(entries), owners, found, {}, hidden, whole=True)
    members = {text: _members(bare, item) for item, _, _, text in named}
    whole = len(entries) == len(items) and len(named) == (len(chats.items) if isinstance(chats, Seq) else 0)
    return Names(bare.entries, owners, found, members, hidden, whole)


def _entry(n: int, item: Node, room: int) -> Entry | None:
    handle = item.get("handle") if isinstance(item, Map) else None
    base = text_of(handle)
    if not isinstance(item, Map) or not isinstance(handle, Scalar) or base is None:
        return None
    count_node = item.get("count")
    count: int | None = None
    if isinstance(count_node, Scalar):
        digits = count_node.text
        count = int(digits) if digits.isdecimal() and digits.isascii() and len(digits) < 7 else 1
    copies = (base,) if count is None else tuple(f"{base}-{i}" for i in range(1, min(count, room) + 1))
    return Entry(("agents", n), item, base, handle, copies, count)


def _members(names: Names, chat: Node) -> frozenset[str] | None:
    listed = chat.get("members") if isinstance(chat, Map) else None
    if listed is None:
        return None
    return frozenset(handle for _, member in scalars(listed) for handle in names.copies(member.text))


def chat_names(tree: Map) -> Iterator[tuple[Node, Path, Scalar, str]]:
    """Each declared chat: its item, where its name stands, and the name."""
    chats = tree.get("chats")
    for n, item in enumerate(chats.items[:MAX_CHATS] if isinstance(chats, Seq) else ()):
        name = item.get("name") if isinstance(item, Map) else item
        text = text_of(name)
        if isinstance(name, Scalar) and text is not None:
            yield item, ("chats", n, "name") if isinstance(item, Map) else ("chats", n), name, text


def check_names(tree: Map, names: Names, drivers: Collection[str] | None, problems: Problems) -> None:
    """Add a problem for each collision and each reference that leads nowhere."""
    _check_handles(names, problems)
    _check_chat_names(tree, problems)
    for path, section in sections(tree, names):
        if path[:1] == ("agents",):
            _refers(section.get("role"), (*path, "role"), "role", names.roles, names=names, problems=problems)
            for n, item in scalars(section.get("depends_on")):
                _agent_refers(item, (*path, "depends_on", n), names, problems)
    for entry in names.entries:
        _check_agent_chats(entry, names, problems)
    _check_cycles(names, problems)
    _check_members(tree, names, problems)
    _warn_of_crowds(tree, names, problems)
    _check_duties(tree, names, problems)
    if drivers is not None:
        for path, section in sections(tree, names):
            _refers(section.get("driver"), (*path, "driver"), "driver", drivers, names=names, problems=problems)


def sections(tree: Map, names: Names) -> Iterator[tuple[Path, Map]]:
    """The file itself, each role and each agent: where common keys stand."""
    yield (), tree
    for name, role in names.roles.items():
        yield ("roles", name), role
    agents = tree.get("agents")
    for n, item in enumerate(agents.items if isinstance(agents, Seq) else ()):
        if isinstance(item, Map):
            yield ("agents", n), item


def _refers(
    node: Node | None, path: Path, what: str, known: Collection[str], *, names: Names, problems: Problems
) -> None:
    text = text_of(node)
    if isinstance(node, Scalar) and text and text not in known and not problems.many:
        none = f"no {what} is declared" if what != "driver" else "none is installed"
        problems.add(
            node.mark, path, f"unknown {what} {quoted(node.source)}; {suggest(text, names.offered(known), none=none)}"
        )


def _check_handles(names: Names, problems: Problems) -> None:
    taken: dict[str, tuple[str, Entry]] = {}
    bases: set[str] = set()
    total = 0
    for entry in names.entries:
        path = (*entry.path, "handle")
        mine = quoted(entry.handle.source)
        total += entry.count or 1
        if total > MAX_AGENTS:
            problems.add(entry.handle.mark, path, f"more than {MAX_AGENTS} agents; split the team")
            return
        if entry.base.lower() in RESERVED:
            problems.add(entry.handle.mark, path, f"{mine} is reserved for the nbs tools; choose another handle")
            continue
        if entry.copies and len(entry.copies[-1]) > 63:
            problems.add(
                entry.handle.mark, path, f"{mine} with its number is longer than 63 characters; choose a shorter handle"
            )
        clash = _clash(entry, taken, bases)
        if clash:
            problems.add(entry.handle.mark, path, clash)
        bases.add(_folded(entry.base))
        for copy in entry.copies:
            taken.setdefault(_folded(copy), (copy, entry))
    _check_pid_files(names, problems)


def _folded(handle: str) -> str:
    """Handles that are equal here would share names of files, sessions or mentions."""
    return handle.lower().replace("_", "-")


def _clash(entry: Entry, taken: dict[str, tuple[str, Entry]], bases: set[str]) -> str | None:
    for copy in (*entry.copies, entry.base):
        other = taken.get(_folded(copy))
        if other is None:
            continue
        name, first = other
        where = f"line {first.handle.mark.line}"
        if entry.handle.expanded or first.handle.expanded:
            return f"the same handle as in {where}; each agent needs its own"
        if name == copy:
            return f"{quoted(copy)} is already the handle of an agent in {where}; each agent needs its own"
        how = "case" if name.lower() == copy.lower() else '"-" and "_"'
        return f"{quoted(copy)} differs from {quoted(name)} in {where} only in {how}; choose another handle"
    if _folded(entry.base) in bases:
        return f"{quoted(entry.handle.source)} is already a base handle; choose another or raise its count"
    return None


def _check_pid_files(names: Names, problems: Problems) -> None:
    """`.nbs/pids/<handle>.pid` of one agent must not be `.nbs/pids/sidecar-<handle>.pid` of another."""
    handles = {copy.lower(): copy for entry in names.entries for copy in entry.copies}
    for entry in names.entries:
        if not entry.base.lower().startswith("sidecar-"):
            continue
        others = [handles.get(copy.lower().removeprefix("sidecar-")) for copy in entry.copies]
        other = next((name for name in others if name is not None), None)
        if other is not None:
            mine, file = quoted(entry.handle.source), f"the sidecar of {names.written(other)}"
            text = f"{mine} would share a file with {file}; choose another handle"
            problems.add(entry.handle.mark, (*entry.path, "handle"), text)


def _check_chat_names(tree: Map, problems: Problems) -> None:
    seen: dict[str, int] = {}
    for _, path, node, text in chat_names(tree):
        if text.lower() in seen:
            problems.add(
                node.mark, path, f"{quoted(node.source)} is already a chat in line {seen[text.lower()]}; remove one"
            )
        elif "-archive" in text:
            problems.add(
                node.mark, path, f"{quoted(node.source)} looks like an archive to the nbs tools; leave out -archive"
            )
        seen.setdefault(text.lower(), node.mark.line)


def _agent_refers(node: Node, path: Path, names: Names, problems: Problems) -> bool:
    text = text_of(node)
    if not isinstance(node, Scalar) or not text or names.copies(text):
        return True
    if names.whole and not problems.many:
        hint = suggest(text, names.offered(names.owners), none="no agent is declared")
        problems.add(node.mark, path, f"unknown handle {quoted(node.source)}; {hint}")
    return False


def _check_cycles(names: Names, problems: Problems) -> None:
    """Each circle of `depends_on` once, with its chain. Copies share their declaration, so base handles suffice."""
    edges: dict[str, list[tuple[str, Scalar, Path]]] = {}
    for entry in names.entries:
        for n, item in scalars(entry.node.get("depends_on")):
            target = names.owners.get(item.text)
            if target is not None:
                edges.setdefault(entry.base, []).append((target.base, item, (*entry.path, "depends_on", n)))
    done: set[str] = set()
    for entry in names.entries:
        chain: list[str] = [entry.base]
        stack = [iter(edges.get(entry.base, ()))] if entry.base not in done else []
        while stack:
            step = next(stack[-1], None)
            if step is None:
                stack.pop()
                done.add(chain.pop())
                continue
            target_base, item, path = step
            if target_base in chain:
                circle = [*chain[chain.index(target_base) :], target_base]
                text = " -> ".join(names.written(handle)[1:-1] for handle in circle[:20])
                problems.add(item.mark, path, f"agents wait for each other: {text}; remove one of these")
            elif target_base not in done:
                chain.append(target_base)
                stack.append(iter(edges.get(target_base, ())))


def _check_agent_chats(entry: Entry, names: Names, problems: Problems) -> None:
    for n, item in scalars(entry.node.get("chats")):
        path = (*entry.path, "chats", n)
        if item.text not in names.members:
            if names.whole and not problems.many:
                hint = suggest(item.text, names.offered(names.members), none="no chat is declared")
                problems.add(item.mark, path, f"unknown chat {quoted(item.source)}; {hint}")
            continue
        members = names.members[item.text]
        if members is not None and members.isdisjoint(entry.copies) and names.whole:
            problems.add(
                item.mark,
                path,
                f"{quoted(entry.handle.source)} is not among the members of {quoted(item.source)}; add it there",
            )


def _check_members(tree: Map, names: Names, problems: Problems) -> None:
    chats = tree.get("chats")
    for n, item in enumerate(chats.items if isinstance(chats, Seq) else ()):
        if isinstance(item, Map):
            for m, member in scalars(item.get("members")):
                _agent_refers(member, ("chats", n, "members", m), names, problems)


def _warn_of_crowds(tree: Map, names: Names, problems: Problems) -> None:
    total = sum(len(entry.copies) for entry in names.entries)
    for _, path, node, text in chat_names(tree):
        members = names.members[text]
        count = total if members is None else len(members)
        if count > CROWD:
            problems.warn(node.mark, path, f"{count} members; nbs-chat can't take more than 52 writers in one chat")


def _check_duties(tree: Map, names: Names, problems: Problems) -> None:
    standup, pythia = tree.get("standup"), tree.get("pythia")
    if isinstance(standup, Map):
        chat = standup.get("chat")
        if chat is not None and names.whole:
            _refers(chat, ("standup", "chat"), "chat", names.members, names=names, problems=problems)
        elif chat is None and not names.members and names.whole:
            problems.add(standup.mark, ("standup",), "needs a chat to post in; declare one under chats")
    agent = pythia.get("agent") if isinstance(pythia, Map) else None
    if isinstance(agent, Scalar) and _agent_refers(agent, ("pythia", "agent"), names, problems):
        copies = names.copies(agent.text)
        if len(copies) > 1:
            text = f"{quoted(agent.source)} stands for {len(copies)} agents; name one"
            text += f", such as {quoted(copies[0])}" if copies[0] not in names.hidden else ""
            problems.add(agent.mark, ("pythia", "agent"), text)
