"""Who is let in to the dashboard's page: what a request says of itself in, a verdict out. Pure."""

from __future__ import annotations

from enum import Enum
from hmac import compare_digest

from msgspec import Struct

COOKIE = "nbs_fleet_top"
LOOPBACK = "127.0.0.1"
NEAR = (None, "none", "same-origin")
"""What a browser says of where a request comes from (Sec-Fetch-Site) if that is a person, or our own page."""


class Verdict(Enum):
    """`ADMIT`: the ticket is right, a cookie goes out for it. `ENTER`: the cookie is right. `REFUSE`: nothing goes out."""

    REFUSE = "refuse"
    ADMIT = "admit"
    ENTER = "enter"


class Asked(Struct, frozen=True):
    """One request. None: it does not say. `upgrade`: it wants to become a websocket."""

    method: str
    path: str
    host: str | None = None
    origin: str | None = None
    site: str | None = None
    ticket: str | None = None
    cookie: str | None = None
    upgrade: bool = False


class Gate(Struct):
    """The secrets of one server: `ticket` opens it once, `session` is the cookie that goes out then.

    Everything lies below `folder`, a name that nobody can guess: a cookie of that path is not sent to what other
    people of this machine serve on other ports of the same address.
    """

    port: int
    folder: str
    ticket: str
    session: str
    used: bool = False

    @property
    def base(self) -> str:
        """The path of the page."""
        return f"/{self.folder}/"

    @property
    def authority(self) -> str:
        """The only host that is answered."""
        return f"{LOOPBACK}:{self.port}"

    @property
    def origin(self) -> str:
        """The only origin that is answered."""
        return f"http://{self.authority}"

    @property
    def url(self) -> str:
        """What a person opens, once."""
        return f"{self.origin}{self.base}?ticket={self.ticket}"

    def judge(self, asked: Asked) -> Verdict:
        """The verdict on a request; a ticket that was right is used up by it."""
        if asked.method != "GET" or asked.host != self.authority or not asked.path.startswith(self.base):
            return Verdict.REFUSE
        if asked.origin not in ((self.origin,) if asked.upgrade else (None, self.origin)):
            return Verdict.REFUSE
        if asked.path == self.base and not self.used and _same(asked.ticket, self.ticket):
            self.used = True
            return Verdict.ADMIT
        if asked.site not in NEAR or not _same(asked.cookie, self.session):
            return Verdict.REFUSE
        return Verdict.ENTER


def _same(given: str | None, right: str) -> bool:
    """Compared in a time that does not tell how much of it is right."""
    return given is not None and compare_digest(given.encode("utf-8", "surrogateescape"), right.encode())
