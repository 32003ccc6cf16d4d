"""A small world in which a client, its disk, and crashes are played against the ladder of delivery."""

from __future__ import annotations

from dataclasses import dataclass, field

from nbs_fleet.model import AgentState, Message
from nbs_fleet.sidecar import delivery as d


@dataclass
class World:
    """A client with mail and keys, its disk, and a sidecar that may be replaced at any moment."""

    means: d.Means
    armed: bool
    now: float = 0.0
    state: AgentState = AgentState.IDLE
    disk: dict[str, tuple[Message, d.Place]] = field(default_factory=dict)
    used: list[str] = field(default_factory=list)
    finished: list[str] = field(default_factory=list)
    lost_with_client: set[str] = field(default_factory=set)
    probe: bool = False

    def __post_init__(self) -> None:
        self.post = d.Post(self.means)

    def view(self) -> d.View:
        return d.View(self.state, ready=self.state is not AgentState.STARTING)

    def tell(self, event: d.PostEvent) -> None:
        self.post, actions = d.receive(self.post, event, self.now)
        self.perform(actions)
        self.work()

    def work(self) -> None:
        self.post, actions = d.dispatch(self.post, self.view(), self.now)
        self.perform(actions)

    def count(self) -> None:
        self.tell(d.Counted(tuple(self.disk.values())))

    def perform(self, actions: tuple[d.PostAction, ...]) -> None:
        for action in actions:
            match action:
                case d.PutMail(id=i) | d.PutInbox(id=i):
                    place: d.Place = "mail" if isinstance(action, d.PutMail) else "inbox"
                    if i in self.disk:
                        assert self.disk[i][1] == "queue", "a token in two places"
                        self.disk[i] = (self.disk[i][0], place)
                        self.count()
                case d.Hand(id=i):
                    self.disk[i] = (self.disk[i][0], "claimed")
                    self.tell(d.Handed(i))
                    self.count()
                case d.TakeBack(id=i):
                    if i in self.disk and self.disk[i][1] in ("mail", "inbox"):
                        self.disk[i] = (self.disk[i][0], "queue")
                        self.count()
                case d.PutBack(id=i):
                    assert i in self.lost_with_client, "put back although the client lives"
                    self.disk[i] = (self.disk[i][0], "queue")
                    self.count()
                case d.Probe():
                    self.probe = True
                case d.Type(id=i, interrupt=interrupt):
                    self.type(i, interrupt=interrupt)
                case d.Seek(ids=ids):
                    for i in ids:
                        if i in self.used:
                            self.tell(d.Proved(i, "transcript"))
                    self.tell(d.Sought(ids))
                case d.Finish(id=i):
                    assert i not in self.finished, "finished twice"
                    self.finished.append(i)
                    self.disk.pop(i, None)
                    self.count()
                case d.Ring() | d.Enter() | d.Rehook():
                    pass

    def type(self, i: str, *, interrupt: bool) -> None:
        assert self.state is AgentState.IDLE or (interrupt and self.state is AgentState.BUSY), self.state
        assert i not in self.used, "typed again although it had arrived"
        self.used.append(i)
        self.state = AgentState.BUSY
        self.tell(d.Typed(i, "sent"))
        self.tell(d.Proved(i, "hook"))

    def drain(self) -> None:
        """The client's hook runs: it claims what lies in mail/, and uses it when it is not in a dialog."""
        if not self.armed or self.state is AgentState.STARTING:
            return
        if self.probe:
            self.probe = False
            self.tell(d.ProbeTaken())
        for i, (one, place) in list(self.disk.items()):
            if place == "mail":
                self.disk[i] = (one, "claimed")
        self.count()

    def use(self) -> None:
        """The client takes what it claimed into its context."""
        if self.state in (AgentState.IDLE, AgentState.BUSY):
            for i, (_, place) in list(self.disk.items()):
                if place == "claimed" and i not in self.lost_with_client:
                    assert i not in self.used, "used twice"
                    self.used.append(i)
                    self.tell(d.Proved(i, "transcript"))

    def die(self) -> None:
        self.lost_with_client = {i for i, (_, place) in self.disk.items() if place == "claimed" and i not in self.used}
        self.replace(died=True)
        self.lost_with_client = set()

    def replace(self, *, died: bool) -> None:
        """A new sidecar, for a new client or for the same one."""
        self.post = d.Post(self.means)
        self.probe = False
        self.tell(d.Renewed(tuple(self.disk.values()), tuple(self.lost_with_client) if died else ()))
