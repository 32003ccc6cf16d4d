"""The steps an interaction is written in, and how each is carried out on a stage.

    start ARGS...        start the client (again); an interaction begins with one that is not written
    say TEXT             paste a prompt, see it in the box, press Enter, and see that it was taken
    paste TEXT           paste, and see it in the box
    blind TEXT           paste where there is no box (a dialog)
    keys NAME...         press keys by their tmux names, one after the other
    press NAME           press a key and go on at once
    twice NAME TEXT      press a key twice at once, and again if the screen doesn't show that text soon
    pass SECONDS         let that time pass: something must not happen in it
    queued N             wait until the transcript says that N things were put into the queue
    until STATE          wait until the screen says so and everything is quiet; then look
    until rest           wait until the state file says idle, whatever the screen says; then look
    look                 wait until everything is quiet; then look
    shows TEXT           wait until the screen shows a text
    hook EVENT N         wait until N hooks of that event have ended
    requests N           wait for the N-th request to the model
    effect EVENT SHELL   from now on that event's hook runs this shell line and ends with its exit code
    write FILE TEXT      write a file of the project; `remove FILE` takes it away
    size WIDTH HEIGHT    resize the pane
    signal NAME          send the client a signal
    gone                 wait for its end

`␤` in a text is a newline; `{base}` the interaction's folder. STATE is idle, busy, compacting, limited, or the kind
of a dialog. Every wait has a generous end, after which the interaction fails with the screen as it was.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable
from typing import Any

from nbs_fleet.model import AgentState, BlockedKind
from tests.conformance.stage import Stage

Json = dict[str, Any]
PATIENCE = 45.0
POLL = 0.04
QUIET = 0.45
"""Seconds without any change after which what can be seen is looked at; transcripts are flushed every 0.1 s."""
CUT = 3.0
"""A hook that was killed never says that it ended: after so long without any change it is not waited for."""
SOON = 3.0
ASKED = {BlockedKind.PERMISSION, BlockedKind.PLAN, BlockedKind.QUESTION}
MOVING = "·✢✳✶✻✽●*"


class LostError(Exception):
    """A step did not come to its end; the text has the screen."""


class Player:
    """Plays steps on one stage and keeps what was seen at each look."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.looks: list[Json] = []
        self.asked = 0
        self.step = ""

    def play(self, steps: tuple[str, ...]) -> None:
        """Carry the steps out in order. Raises LostError."""
        for self.step in steps:
            verb, _, rest = self.step.partition(" ")
            text = rest.replace("␤", "\n").replace("{base}", str(self.stage.base))
            VERBS[verb](self, text)

    # --- waiting

    def wait(self, look: Callable[[], Any], patience: float = PATIENCE) -> None:
        """Until `look` is true."""
        end = time.monotonic() + patience
        while not look():
            if time.monotonic() > end:
                rows = "\n".join(self.stage.screen().rows).rstrip()
                raise LostError(f"step {self.step!r} did not come to its end; the screen:\n{rows}")
            time.sleep(POLL)

    def marks(self) -> tuple[object, ...]:
        """All that must stand still before a look."""
        stage = self.stage
        rows = tuple(row for row in stage.screen().rows if row[:1] not in MOVING)
        state = stage.state()
        return rows, state.get("status"), state.get("waitingFor"), len(stage.lines()), stage.count("ended")

    def settle(self, test: Callable[[], bool] = lambda: True) -> None:
        """Until the test holds, nothing changes any more and no hook is at work."""
        seen: list[Any] = [None, time.monotonic()]

        def quiet() -> bool:
            now, marks = time.monotonic(), self.marks()
            if marks != seen[0] or not test():
                seen[:] = [marks, now]
                return False
            working = self.stage.count("begun") > self.stage.count("ended")
            return now - float(seen[1]) > (CUT if working else QUIET)

        self.wait(quiet)

    def look(self) -> None:
        """Note what the screen, the title and the state file say."""
        stage = self.stage
        screen, state = stage.screen(), stage.state()
        reading = stage.driver.read_screen(screen)
        seen: Json = {
            "after": self.step,
            "screen": str(reading.state),
            "draft": reading.draft,
            "detail": reading.detail,
        }
        if reading.blocked is not None:
            seen["blocked"] = str(reading.blocked)
        if reading.dialog is not None:
            seen["dialog"] = {
                "text": reading.dialog.text.split("\n"),
                "options": [[o.key, o.label] for o in reading.dialog.options],
                "cursor": reading.dialog.cursor,
            }
        seen["title"] = screen.title
        seen["file"] = [state.get("status"), state.get("waitingFor"), state.get("name")] if state else None
        seen["rows"] = list(screen.rows)
        self.looks.append(seen)

    # --- steps

    def start(self, text: str) -> None:
        self.stage.start(*shlex.split(text))

    def say(self, text: str) -> None:
        stage = self.stage
        self.paste(text)
        self.settle()
        before = (stage.state().get("statusUpdatedAt"), len(stage.lines()), len(stage.requests()))
        stage.keys("Enter")

        def taken() -> bool:
            reading = stage.driver.read_screen(stage.screen())
            if reading.draft is None or stage.status() is not None:
                return True
            return (stage.state().get("statusUpdatedAt"), len(stage.lines()), len(stage.requests())) != before

        self.wait(taken)

    def paste(self, text: str) -> None:
        stage = self.stage
        before = stage.driver.read_screen(stage.screen()).draft
        stage.paste(text)
        self.wait(lambda: stage.driver.read_screen(stage.screen()).draft != before)

    def blind(self, text: str) -> None:
        self.stage.paste(text)
        self.settle()

    def keys(self, text: str) -> None:
        for name in text.split():
            self.stage.keys(name)
            self.settle() if name == "Escape" else time.sleep(POLL)

    def press(self, text: str) -> None:
        self.stage.keys(text)

    def twice(self, text: str) -> None:
        """Two presses count together only within a second or so, which a loaded machine may miss."""
        name, _, wanted = text.partition(" ")

        def shown() -> bool:
            self.stage.keys(name)
            time.sleep(POLL)
            self.stage.keys(name)
            end = time.monotonic() + SOON
            while time.monotonic() < end:
                if any(wanted in row for row in self.stage.screen().rows):
                    return True
                time.sleep(POLL)
            return False

        self.wait(shown)

    def pass_time(self, text: str) -> None:
        time.sleep(float(text))

    def queued(self, text: str) -> None:
        self.wait(lambda: sum(line.get("operation") == "enqueue" for line in self.stage.lines()) >= int(text))

    def until(self, text: str) -> None:
        wanted = text.strip()

        def there() -> bool:
            if wanted == "rest":
                return self._file_agrees("idle")
            reading = self.stage.driver.read_screen(self.stage.screen())
            if wanted in {str(state) for state in AgentState}:
                return str(reading.state) == wanted and self._file_agrees(wanted)
            return str(reading.blocked) == wanted

        asks = wanted in {str(kind) for kind in ASKED} and self.stage.setting.hooked
        if asks:
            self.asked += 1
            self.wait(lambda: self.stage.count("ended", "PermissionRequest") >= self.asked)
        if wanted == "busy":
            self.wait(there)
        else:
            self.settle(there)
        self.look()

    def _file_agrees(self, wanted: str) -> bool:
        """The screen shows it before the state file does, and an idle one between two turns, too."""
        said = self.stage.state().get("status")
        return {"idle": said in {"idle", "shell"}, "busy": said == "busy"}.get(wanted, True)

    def just_look(self, _text: str) -> None:
        self.settle()
        self.look()

    def shows(self, text: str) -> None:
        wanted = "".join(text.split())
        self.wait(lambda: wanted in "".join("".join(self.stage.screen().rows).split()))

    def hook(self, text: str) -> None:
        event, _, number = text.partition(" ")
        self.wait(lambda: self.stage.count("ended", event) >= int(number or 1))

    def requests(self, text: str) -> None:
        self.wait(lambda: len(self.stage.requests()) >= int(text))

    def effect(self, text: str) -> None:
        event, _, line = text.partition(" ")
        (self.stage.base / "effects" / event).write_text(line + "\n", encoding="utf-8")

    def write(self, text: str) -> None:
        name, _, content = text.partition(" ")
        path = self.stage.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        beside = path.with_name(f".{path.name}.new")
        beside.write_text(content, encoding="utf-8")
        beside.rename(path)

    def remove(self, text: str) -> None:
        (self.stage.project / text).unlink()

    def size(self, text: str) -> None:
        width, _, height = text.partition(" ")
        self.stage.resize(int(width), int(height))

    def signal(self, text: str) -> None:
        self.stage.signal(text)

    def gone(self, _text: str) -> None:
        self.wait(lambda: self.stage.status() is not None)
        self.settle()
        self.looks.append({"after": self.step, "code": self.stage.status(), "rows": list(self.stage.screen().rows)})


VERBS: dict[str, Callable[[Player, str], None]] = {
    "start": Player.start,
    "say": Player.say,
    "paste": Player.paste,
    "blind": Player.blind,
    "keys": Player.keys,
    "press": Player.press,
    "twice": Player.twice,
    "pass": Player.pass_time,
    "queued": Player.queued,
    "until": Player.until,
    "look": Player.just_look,
    "shows": Player.shows,
    "hook": Player.hook,
    "requests": Player.requests,
    "effect": Player.effect,
    "write": Player.write,
    "remove": Player.remove,
    "size": Player.size,
    "signal": Player.signal,
    "gone": Player.gone,
}
