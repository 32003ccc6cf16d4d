"""From the command line to a running client: checks, scenario, session, startup dialogs."""

from __future__ import annotations

import json
import os
import re
import sys
from typing import Any

from nbs_fleet.sim import args as arguments
from nbs_fleet.sim import place
from nbs_fleet.sim.args import Args, ArgsError

Json = dict[str, Any]
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", re.IGNORECASE)
_ROOT = "--dangerously-skip-permissions cannot be used with root/sudo privileges for security reasons"


class Refused(Exception):  # noqa: N818 - the client says no
    """The client ends before it takes the screen."""

    def __init__(self, text: str, code: int = 1, *, told: bool = False) -> None:
        super().__init__(text)
        self.text = text
        self.code = code
        self.told = told
        """The SessionEnd hooks are told of it."""


def main(argv: list[str]) -> int:
    """Run the client with these arguments (without a program name); returns its exit code."""
    try:
        given = arguments.parse(argv)
        if given.version:
            os.write(1, f"{arguments.VERSION} (Claude Code)\n".encode())
            return 0
        if given.help:
            os.write(1, arguments.HELP.encode())
            return 0
        return _client(given, dict(os.environ))
    except ArgsError as error:
        return _say(str(error), 1)
    except Refused as refused:
        return _say(refused.text, refused.code)


def _say(text: str, code: int) -> int:
    sys.stderr.write(text + "\n")
    return code


def _client(given: Args, env: dict[str, str]) -> int:
    from nbs_fleet.sim.scenario import Scenario, ScenarioError, load  # noqa: PLC0415 - not for --version
    from nbs_fleet.sim.settings import MissingSettingsError  # noqa: PLC0415

    if given.headless or not os.isatty(0):
        raise Refused("Error: Input must be provided either through stdin or as a prompt argument when using --print")
    if (given.skip or given.permission_mode == "bypassPermissions") and os.geteuid() == 0 and not env.get("IS_SANDBOX"):
        raise Refused(_ROOT)
    path = given.scenario or env.get("CLAUDELESS_SCENARIO")
    try:
        scenario = load(path) if path else Scenario(trusted=True)
    except ScenarioError as error:
        raise Refused(str(error), 2) from None
    try:
        session_id, restored = _choose_session(given, env, scenario.session_id)
    except Refused as refused:
        if refused.told:
            _tell_end(given, env, scenario)
        raise
    from nbs_fleet.sim.app import IDLE_NOTICE_MS, App  # noqa: PLC0415
    from nbs_fleet.sim.kernel import Loop, start  # noqa: PLC0415
    from nbs_fleet.sim.session import Session  # noqa: PLC0415

    loop = Loop()
    try:
        session = Session(loop, given, env, scenario, session_id)
    except MissingSettingsError as error:
        raise Refused(str(error)) from None
    config = place.read_json(place.config_file(env))
    config = config if isinstance(config, dict) else {}
    idle = config.get("messageIdleNotifThresholdMs")
    app = App(loop, session, idle if isinstance(idle, int) else IDLE_NOTICE_MS)
    if restored:
        from nbs_fleet.sim import resume  # noqa: PLC0415

        resume.restore(app, restored)
    app.open()
    start(_begin(app, config))
    try:
        return loop.run()
    finally:
        app.close()


def _tell_end(given: Args, env: dict[str, str], scenario: Any) -> None:
    """SessionEnd of a client that ends before it has a session."""
    from nbs_fleet.sim.kernel import Loop, start  # noqa: PLC0415
    from nbs_fleet.sim.session import Session  # noqa: PLC0415
    from nbs_fleet.sim.transcript import new_uuid  # noqa: PLC0415

    loop = Loop()
    session = Session(loop, given, env, scenario, new_uuid())

    async def tell() -> None:
        await session.end_hooks("other")
        loop.stop(1)

    start(tell())
    loop.run()


def _choose_session(given: Args, env: dict[str, str], wanted: str | None) -> tuple[str, list[Json]]:
    """The session's id, and the lines of the transcript it goes on from. Raises Refused as the real client does."""
    from nbs_fleet.sim import transcript  # noqa: PLC0415
    from nbs_fleet.sim.statefile import live_session  # noqa: PLC0415

    folder = place.transcripts(env, os.getcwd())
    own = given.session_id
    if own is not None and not _UUID.fullmatch(own):
        raise Refused("Error: Invalid session ID. Must be a valid UUID.")
    if given.resume is None and not given.cont:
        own = own or wanted or transcript.new_uuid()
        if given.session_id is not None:
            on_disk = os.path.exists(os.path.join(folder, f"{own}.jsonl"))
            if on_disk or live_session(env, own):
                raise Refused(f"Error: Session ID {own} is already in use.")
        return own, []
    if own is not None and not given.fork:
        raise Refused(
            "Error: --session-id can only be used with --continue or --resume if --fork-session is also specified."
        )
    from nbs_fleet.sim import resume  # noqa: PLC0415

    found = resume.find(folder, given)
    if found is None and given.resume is None:
        raise Refused("No conversation found to continue")
    if found is None:
        raise Refused(f"No conversation found with session ID: {given.resume}", told=True)
    lines = transcript.read(os.path.join(folder, f"{found}.jsonl"))
    if given.fork:
        return own or transcript.new_uuid(), lines
    return found, lines


async def _begin(app: Any, config: Json) -> None:
    """Startup dialogs in order; each can end the client."""
    session = app.session
    scenario = session.scenario
    if _plain_start(app, config):
        await app.begin()
        return
    from nbs_fleet.sim import dialogs  # noqa: PLC0415 - most starts show none

    queue: list[dialogs.Dialog] = []
    if not scenario.logged_in:
        queue += [dialogs.theme(), dialogs.login(), dialogs.security()]
    if _asks_key(app, config):
        queue.append(dialogs.api_key(session.env.get("ANTHROPIC_API_KEY", "")))
    for fault in session.settings.faults:
        queue.append(dialogs.settings_fault(fault.path, fault.problems, fault.advice, fatal=fault.fatal))
    if _asks_trust(app, config):
        queue.append(dialogs.trust(session.cwd))
    if "mcp" in scenario.startup:
        found = place.read_json(os.path.join(session.cwd, ".mcp.json"))
        servers = found.get("mcpServers", {}) if isinstance(found, dict) else {}
        queue += [dialogs.mcp_server(name) for name in servers or {"scripted": None}]
    if _asks_bypass(app, config):
        queue.append(dialogs.bypass())
    for dialog in queue:
        answer = await app.ask(dialog)
        if answer.value in {None, "exit"}:
            if dialog.title != "trust":
                await app.session.end_hooks("other")  # in a trusted folder hooks run
            app.leave(1, "other")
            return
        _remember(app, dialog.title, config, answer.value)
    app.withdraw()
    app.view.redraw()
    await app.begin()


def _plain_start(app: Any, config: Json) -> bool:
    scenario = app.session.scenario
    ready = scenario.logged_in and "mcp" not in scenario.startup and not app.session.settings.faults
    asks = _asks_key(app, config) or _asks_trust(app, config) or _asks_bypass(app, config)
    return ready and not asks


def _asks_key(app: Any, config: Json) -> bool:
    """A key of the environment is asked about once."""
    if "apikey" not in app.session.scenario.startup:
        return False
    tail = app.session.env.get("ANTHROPIC_API_KEY", "")[-20:]
    known = config.get("customApiKeyResponses")
    answered = known if isinstance(known, dict) else {}
    return not any(tail and tail in answered.get(kind, ()) for kind in ("approved", "rejected"))


def _asks_trust(app: Any, config: Json) -> bool:
    """Trust is asked for when the scenario says so; with startup "trust" as the real client's config says."""
    session = app.session
    if session.env.get("CLAUDE_CODE_SANDBOXED") or session.env.get("CLAUBBIT"):
        return False
    if session.scenario.trusted is False:
        return True
    if "trust" not in session.scenario.startup:
        return False
    projects = config.get("projects")
    path = place.project_root(os.path.realpath(session.cwd))
    while isinstance(projects, dict):
        if isinstance(projects.get(path), dict) and projects[path].get("hasTrustDialogAccepted") is True:
            return False
        if path == "/":
            break
        path = os.path.dirname(path)
    return True


def _asks_bypass(app: Any, config: Json) -> bool:
    session = app.session
    if session.mode != "bypassPermissions":
        return False
    return not (session.settings.bypass_accepted or config.get("bypassPermissionsModeAccepted") is True)


def _remember(app: Any, title: str, config: Json, value: str) -> None:
    """What was accepted is kept where the real client keeps it."""
    session = app.session
    try:
        if title == "bypass":
            path = os.path.join(place.config_dir(session.env), "settings.json")
            found = place.read_json(path)
            values = found if isinstance(found, dict) else {}
            values["skipDangerousModePermissionPrompt"] = True
            place.write_atomic(path, json.dumps(values, indent=2))
        elif title.startswith("mcp "):
            path = os.path.join(session.project, ".claude", "settings.local.json")
            found = place.read_json(path)
            values = found if isinstance(found, dict) else {}
            kind = "disabledMcpjsonServers" if value == "no" else "enabledMcpjsonServers"
            values[kind] = [*values.get(kind, []), title.removeprefix("mcp ")]
            place.write_atomic(path, json.dumps(values, indent=2))
        elif title == "trust":
            projects = config.setdefault("projects", {})
            root = place.project_root(os.path.realpath(session.cwd))
            projects.setdefault(root, {})["hasTrustDialogAccepted"] = True
            place.write_atomic(place.config_file(session.env), json.dumps(config, indent=2))
    except OSError:
        return
