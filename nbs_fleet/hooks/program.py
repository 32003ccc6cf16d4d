"""Answers one hook of a client: hands over the messages that wait, and applies the team's policies.

Copied into a run directory and run there by bare `python -I -S`: standard library only, and little of it. It gets
the event's name, the file that holds the payload, and the name under which the supervisor is to find it.
"""

from __future__ import annotations

import json
import os
import sys

Json = dict[str, object]

MOST_BLOCKS = 8
"""Stops held back per prompt. After 9 in a row Claude Code 2.1.197 overrides the hook (measured)."""
TAIL_BYTES = 65_536
BETWEEN = "\n\n"
CONTEXT_BYTES = 9_900
"""Of more than 10,000 characters Claude Code 2.1.197 shows the model only the first 2,000 (measured); a held stop
carries any length. A driver's dialect may say otherwise."""
TEXT, EVENT = "$TEXT", "$EVENT"
"""What stands in a shape of the driver's dialect for the text, and for the client's own name of the event."""

UNSIGNALLED = """\
You are about to stop, and nobody knows whether you are done. Say it with one of these commands, then stop:
  nbs-fleet signal complete "what is done"        your task is done
  nbs-fleet signal escalate "what you need"       a person has to help
  nbs-fleet signal continue "what you wait for"   you are not done, and something will wake you
If there is something left that you can do now, do it first."""

DECLINED = {
    "plan": "The rules of this team decline plans in this place. Rework the plan, or say "
    "`nbs-fleet signal escalate WHY` if a person should look at it.",
    "permission": "The rules of this team decline what asks for a permission. Find a way that needs none, or say "
    "`nbs-fleet signal escalate WHY`.",
    "question": "Nobody is here to answer a dialog. Decide by what you know and say what you assumed; ask a teammate "
    "with `nbs-fleet send HANDLE TEXT`; or say `nbs-fleet signal escalate WHY` if only a person can tell.",
}


class Agent:
    """The files of the agent whose client runs this."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.policy = load(self.path("hooks.json"))
        self.shapes = below(self.policy, "shapes")

    def path(self, *names: str) -> str:
        """A path below the agent's folder."""
        return os.path.join(self.folder, *names)

    def shape(self, name: str) -> Json:
        """How this client is told something; empty: it can't be."""
        return below(self.shapes, name)

    def normal(self, event: str, payload: Json) -> Json:
        """A payload with the keys that the rest of this program knows, and our name of the event."""
        fields = below(self.shapes, "fields")
        renamed = {str(fields.get(key, key)): value for key, value in payload.items()}
        return {**renamed, "hook_event_name": event}

    def take(self, room: int | None = None) -> tuple[list[str], list[str]]:
        """Claim what waits in the inbox: ids and texts, oldest first, as far as they fit into `room` bytes.

        A token that another hook renames first is that one's.
        """
        ids: list[str] = []
        texts: list[str] = []
        for name in sorted(listing(self.path("inbox"))):
            message_id = name.partition("-")[2][: -len(".msg")]
            if not name.endswith(".msg") or not os.path.isfile(self.path("queue", f"{message_id}.json")):
                continue
            token, claimed = self.path("inbox", name), self.path("claimed", name)
            try:
                if room is not None:
                    room -= os.stat(token).st_size + len(BETWEEN)
                    if room < 0:
                        break
                os.rename(token, claimed)
                with open(claimed, encoding="utf-8", errors="replace") as file:
                    texts.append(file.read())
            except OSError:
                continue
            ids.append(message_id)
        return ids, texts


def below(value: Json, key: str) -> Json:
    """The JSON object under a key, or an empty one."""
    found = value.get(key)
    return found if isinstance(found, dict) else {}


def filled(shape: object, text: str, event: str) -> object:
    """A shape with its text and event."""
    if isinstance(shape, dict):
        return {key: filled(value, text, event) for key, value in shape.items()}
    if isinstance(shape, list):
        return [filled(value, text, event) for value in shape]
    return {TEXT: text, EVENT: event}.get(shape, shape) if isinstance(shape, str) else shape


def load(path: str) -> Json:
    """The JSON object in a file, or an empty one."""
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            found = json.load(file)
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def listing(folder: str) -> list[str]:
    """The names in a folder; none if it is not there."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


def write(path: str, value: Json) -> bool:
    """Replace a file by a JSON object in one step; False if that was not possible."""
    folder, name = os.path.split(path)
    temporary = os.path.join(folder, f".{name}.{os.getpid()}.write")
    try:
        # What could be read may still be nested too deep to be written.
        text = json.dumps(value)
        with open(temporary, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write(text)
        os.replace(temporary, path)
    except (OSError, RecursionError):
        if os.path.exists(temporary):
            os.unlink(temporary)
        return False
    return True


def stamp(path: str) -> int:
    """When a file was last written, in nanoseconds; 0 if it is not there."""
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def api_error(payload: Json) -> bool:
    """Whether the turn ended in an error of the service, by the payload or by the end of the transcript."""
    if str(payload.get("last_assistant_message") or "").startswith("API Error"):
        return True
    try:
        with open(str(payload.get("transcript_path") or ""), "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - TAIL_BYTES))
            lines = file.read().splitlines()
    except OSError:
        return False
    for line in reversed(lines):
        try:
            entry = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(entry, dict) and entry.get("type") in ("user", "assistant"):
            return entry.get("isApiErrorMessage") is True
    return False


def ledger_of(agent: Agent, payload: Json) -> Json:
    """What is remembered about the stops of this prompt: blocks, whether the agent was asked, signals used up.

    A client without prompt ids begins a new prompt with a stop that no hook has held back before; the transcript's
    size makes the same stop, asked about twice, the same prompt.
    """
    old = load(agent.path("stops.json"))
    key = payload.get("prompt_id")
    if not key:
        if payload.get("stop_hook_active") and old.get("prompt"):
            return old
        try:
            size = os.stat(str(payload.get("transcript_path") or "")).st_size
        except OSError:
            size = 0
        key = f"{payload.get('session_id')}:{size}"
    if old.get("prompt") == key:
        return old
    return {"prompt": key, "blocks": 0, "asked": False, "used": old.get("seen", 0), "seen": 0}


def signalled(agent: Agent, ledger: Json) -> bool:
    """Whether the agent has said of itself how it stands, in this turn."""
    at = stamp(agent.path("signal.json"))
    ledger["seen"] = at or ledger["used"]
    return at != 0 and at != ledger["used"] and at >= stamp(agent.path("turn"))


def stop(agent: Agent, payload: Json) -> tuple[Json, Json]:
    """Hold a stop back for messages that wait, or once for a missing signal."""
    if not agent.shape("block") or api_error(payload):
        return {}, {}
    ledger = ledger_of(agent, payload)
    said = signalled(agent, ledger)
    blocks = ledger.get("blocks")
    room = isinstance(blocks, int) and blocks < MOST_BLOCKS
    if isinstance(blocks, int) and room:
        ids, texts = agent.take()
        if ids:
            write(agent.path("stops.json"), {**ledger, "blocks": blocks + 1})
            return say(agent, "block", BETWEEN.join(texts)), {"answer": "block", "why": "message", "ids": ids}
        if agent.policy.get("stop") == "signal" and not said and not ledger.get("asked"):
            # What can't be counted is not held back: it might never end.
            if write(agent.path("stops.json"), {**ledger, "blocks": blocks + 1, "asked": True}):
                return say(agent, "block", UNSIGNALLED), {"answer": "block", "why": "signal"}
            return {}, {}
    write(agent.path("stops.json"), ledger)
    return {}, {}


def say(agent: Agent, shape: str, text: str = "") -> Json:
    """What the client is told, in its own shape."""
    said = filled(agent.shape(shape), text, "")
    return said if isinstance(said, dict) else {}


def context(agent: Agent, event: str, payload: Json) -> tuple[Json, Json]:
    """Hand over messages beside a tool or prompt, without a word on permissions. A subagent gets none.

    Nor does an empty prompt, a tool's result on its way to the model: Qwen Code tells the model what is added to that,
    and its transcript does not have it (0.15.10, read), so that nothing would prove that the message arrived.
    """
    shape = below(agent.shape("context"), event)
    if not shape or payload.get("agent_id") or (event == "UserPromptSubmit" and payload.get("prompt") == ""):
        return {}, {}
    room = agent.shapes.get("context_bytes")
    ids, texts = agent.take(room if isinstance(room, int) else CONTEXT_BYTES)
    if not ids:
        return {}, {}
    said = filled(shape, BETWEEN.join(texts), str(agent.shape("names").get(event, event)))
    return (said if isinstance(said, dict) else {}), {"answer": "context", "why": "message", "ids": ids}


def briefed(agent: Agent, payload: Json) -> tuple[Json, Json]:
    """Tell a new session what the fleet is; one that goes on has been told."""
    text, shape = agent.policy.get("briefing"), below(agent.shape("context"), "SessionStart")
    if not text or not shape or payload.get("source") == "resume":
        return {}, {}
    said = filled(shape, str(text), str(agent.shape("names").get("SessionStart", "SessionStart")))
    return (said if isinstance(said, dict) else {}), {}


def permission(agent: Agent, payload: Json) -> tuple[Json, Json]:
    """Answer a dialog that is about to open, as the team's policy says; `ask` leaves it to a person."""
    tool = payload.get("tool_name")
    kind = str(agent.shape("tools").get(str(tool), "permission"))
    wish = agent.policy.get(kind)
    if not tool or wish in (None, "ask") or (kind == "question" and wish != "deny"):
        return {}, {}
    behavior = "deny" if wish == "deny" else "allow"
    said = say(agent, behavior, DECLINED.get(kind, ""))
    return said, ({"answer": behavior, "why": "policy"} if said else {})


def question(agent: Agent) -> tuple[Json, Json]:
    """Refuse a question's dialog before it opens, with a reason that the agent can go on with."""
    said = say(agent, "refuse", DECLINED["question"])
    return said, ({"answer": "deny", "why": "policy"} if said else {})


def decide(agent: Agent, event: str, payload: Json) -> tuple[Json, Json]:
    """What the client is told, and what the supervisor is told of it; both empty: nothing."""
    if not agent.policy:
        return {}, {}
    if event == "Stop":
        return stop(agent, payload)
    if event == "SessionStart":
        return briefed(agent, payload)
    if event == "PermissionRequest":
        return permission(agent, payload)
    asks = agent.shape("tools").get(str(payload.get("tool_name"))) == "question"
    if event == "PreToolUse" and asks and agent.policy.get("question") == "deny":
        return question(agent)
    return context(agent, event, payload)


def main(event: str, new: str, kept: str) -> None:
    """Decide, let the supervisor know, then tell the client: one JSON object, or nothing."""
    payload = load(new)
    folder = os.path.join(os.environ["NBS_FLEET_RUN"], "agents", os.environ["NBS_HANDLE"])
    agent = Agent(folder)
    said, note = decide(agent, event, agent.normal(event, payload)) if payload else ({}, {})
    if note and write(kept, {**payload, "nbs": note}):
        os.unlink(new)
    else:
        os.replace(new, kept)
    if said:
        sys.stdout.write(json.dumps(said))
        sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:4])
