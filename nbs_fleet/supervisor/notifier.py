"""Calls people outside the terminal: desktop, program or webhook; what fails is told in the story and stops nothing."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, assert_never

from nbs_fleet import jsontext
from nbs_fleet.attention.notifications import Call, Memory, Now, due
from nbs_fleet.attention.queue import Item
from nbs_fleet.launch.environment import read_values
from nbs_fleet.launch.processes import moment
from nbs_fleet.launch.tmux import Tmux
from nbs_fleet.plan.addresses import PREFIX
from nbs_fleet.sidecar import wording
from nbs_fleet.spec.team import Notification

CALL_SECONDS = 20.0
"""How long one notification may take."""
AT_ONCE = 4
"""Notifications that run at the same time; more wait for their turn."""
TITLE, TEXT = 80, 400
"""Characters of what is shown."""
SCRIPT = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"
"""The words come as arguments: text in the script itself could end its quotes."""

Told = Callable[..., None]


class Notifier:
    """Watches the queue for one team; `tell(what, **more)` writes into the team's story.

    `addresses` is the file that holds where webhooks are, by name.
    """

    def __init__(self, tmux: Tmux, team: str, *, tell: Told, addresses: str = "") -> None:
        self._tmux, self._team, self._tell, self._addresses = tmux, team, tell, addresses
        self._rules: Mapping[str, Sequence[Notification]] = {}
        self._items: tuple[Item, ...] = ()
        self._memory = Memory()
        self._looking: asyncio.Task[None] | None = None
        self._again = False
        self._timer: asyncio.TimerHandle | None = None
        self._calls: set[asyncio.Task[None]] = set()
        self._turns = asyncio.Semaphore(AT_ONCE)

    def open(self, rules: Mapping[str, Sequence[Notification]]) -> None:
        """Work by these rules from now on: each agent's own, and the team's under an empty handle."""
        self._rules = rules
        self.look(self._items)

    def _address(self, rule: Notification) -> str:
        """Where a webhook is: a plan has only its name."""
        url = rule.url or ""
        if not url.startswith(PREFIX):
            return url
        known = read_values(self._addresses).get(url)
        if known is None:
            raise ValueError("its address is not known any more; `nbs-fleet up` writes it down again")
        return known

    def look(self, items: tuple[Item, ...]) -> None:
        """See to what waits now."""
        self._items = items
        if not any(self._rules.values()):
            return
        if self._looking is not None and not self._looking.done():
            self._again = True
            return
        self._looking = asyncio.get_running_loop().create_task(self._look())

    async def close(self) -> None:
        """What runs is given up."""
        if self._timer is not None:
            self._timer.cancel()
        tasks = [*self._calls, *([self._looking] if self._looking else [])]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _look(self) -> None:
        self._again = True
        while self._again:
            self._again = False
            away = bool(self._items) and not await asyncio.to_thread(self._tmux.clients)
            instant = moment()
            local = datetime.fromtimestamp(instant.wall).astimezone()
            now = Now(instant.wall, instant.mono, local.hour * 60 + local.minute, away)
            self._memory, calls, wake = due(self._rules, self._items, self._memory, now)
            for call in calls:
                task = asyncio.get_running_loop().create_task(self._carry_out(call))
                self._calls.add(task)
                task.add_done_callback(self._calls.discard)
            self._wake(wake, instant.mono)

    def _wake(self, at: float | None, now: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at is not None:
            wait = max(0.05, at - now)
            self._timer = asyncio.get_running_loop().call_later(wait, lambda: self.look(self._items))

    async def _carry_out(self, call: Call) -> None:
        about = [item.id for item in call.items]
        try:
            async with self._turns, asyncio.timeout(CALL_SECONDS):
                await self._send(call)
        except TimeoutError:
            self._tell("notification failed", via=call.rule.via, items=about, error=f"took over {CALL_SECONDS:g} s")
        except (OSError, ValueError) as error:
            self._tell("notification failed", via=call.rule.via, items=about, error=wording.summary(str(error), 200))
        else:
            self._tell("notified", via=call.rule.via, items=about, urgent=call.urgent)

    async def _send(self, call: Call) -> None:
        title = wording.summary(f"{self._team}: {call.title}", TITLE)
        text = wording.clean(call.text[:TEXT])[0]
        match call.rule.via:
            case "desktop":
                await run(desktop(title, text, urgent=call.urgent))
            case "command":
                await run(list(call.rule.command or ()), jsontext.encode(self._as_json(call, title, text)))
            case "webhook":
                body = jsontext.encode(self._as_json(call, title, text))
                await asyncio.to_thread(post, self._address(call.rule), body)
            case _:
                assert_never(call.rule.via)

    def _as_json(self, call: Call, title: str, text: str) -> dict[str, Any]:
        """What a program gets on stdin and a webhook as its body; the shape is documented and stable."""
        items = [
            {"id": i.id, "handle": i.handle, "kind": i.need.kind, "title": i.need.title, "since": i.since}
            for i in call.items
        ]
        return {"schema": 1, "team": self._team, "title": title, "text": text, "urgent": call.urgent, "items": items}


def desktop(title: str, text: str, *, urgent: bool) -> list[str]:
    """The argv that shows a notification on this desktop; FileNotFoundError if there is no program for it."""
    import shutil  # noqa: PLC0415 -- most teams notify nobody this way

    if shutil.which("notify-send"):
        level = "critical" if urgent else "normal"
        return ["notify-send", "--app-name=nbs-fleet", f"--urgency={level}", "--", title, text]
    if sys.platform == "darwin":
        return ["osascript", "-e", SCRIPT, title, text]
    raise FileNotFoundError("no notify-send here (Debian: libnotify-bin)")


async def run(argv: list[str], given: bytes = b"") -> None:
    """Run a program to its end, in a session of its own; OSError if it can't run or fails."""
    process = await asyncio.create_subprocess_exec(
        *argv,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, said = await process.communicate(given)
    except asyncio.CancelledError:
        if process.returncode is None:
            process.kill()
            await process.wait()
        raise
    if process.returncode:
        last = said.decode(errors="replace").strip().splitlines()[-1:]
        raise OSError(f"{argv[0]} ended with {process.returncode}" + (f": {last[0]}" if last else ""))


def post(url: str, body: bytes) -> None:
    """Send JSON to an address (http or https, checked by the team file); OSError without the address, it may be secret."""
    # Few teams need it, and it is two megabytes of every supervisor.
    import urllib.request  # noqa: PLC0415

    request = urllib.request.Request(url, body, {"Content-Type": "application/json"})  # noqa: S310 - http(s) only
    try:
        with urllib.request.urlopen(request, timeout=CALL_SECONDS) as answer:  # noqa: S310 - as above
            answer.read(1_000)
    except OSError as error:
        # A redirect or an error page may repeat the address.
        code = getattr(error, "code", None)
        raise OSError(f"the webhook answered {code}" if code else "the webhook can't be reached") from None
