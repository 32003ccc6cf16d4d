"""The files of a run directory that follow from the plan, as texts: what `up` writes and the supervisor keeps right."""

from __future__ import annotations

import json
import os
import sys

import msgspec
from msgspec import Struct

from nbs_fleet import jsontext
from nbs_fleet.hooks.files import programs
from nbs_fleet.launch import registry, skills
from nbs_fleet.launch.layout import conf
from nbs_fleet.plan.paths import RunPaths
from nbs_fleet.plan.types import AgentPlan, AgentRecord, Plan
from nbs_fleet.plan.wrappers import bin_wrapper, key_script, segment_script, supervise_script
from nbs_fleet.supervisor.facts import gather


class File(Struct, frozen=True):
    """What a file should hold; `durable`: its loss would lose what was asked for."""

    data: bytes
    mode: int = 0o600
    durable: bool = False


def team_files(plan: Plan) -> dict[str, File]:
    """The files of the team, by path: programs, configuration of tmux, and last the plan itself."""
    return {**own_files(plan), plan.paths.plan: File(msgspec.json.format(jsontext.encode(plan)), durable=True)}


def own_files(plan: Plan) -> dict[str, File]:
    """The same without the plan, which is long."""
    paths = plan.paths
    program = os.path.join(paths.bin, "nbs-fleet")
    scripts: dict[str, str | bytes] = {
        program: bin_wrapper(sys.executable),
        **{os.path.join(paths.bin, name): text for name, text in programs(sys.executable).items()},
        paths.supervise: supervise_script(sys.executable, paths.run),
        os.path.join(paths.bin, "key"): key_script(program, plan.file, homes(paths)),
        os.path.join(paths.bin, "segment"): segment_script(paths.waiting),
    }
    return {
        **{path: File(_bytes(text), 0o700) for path, text in scripts.items()},
        paths.tmux_conf: File(_bytes(conf(plan.layout, plan.team, paths.bin))),
    }


def homes(paths: RunPaths) -> dict[str, str]:
    """What a shell with another environment needs in order to find this team: the homes that its paths lie in."""
    # <state home>/nbs-fleet/<root>/<team>, and <runtime home>/nbs-fleet/<digest> unless it is the one below /tmp.
    state = os.path.dirname(os.path.dirname(os.path.dirname(paths.run)))
    parent = os.path.dirname(paths.runtime)
    runtime = {"XDG_RUNTIME_DIR": os.path.dirname(parent)} if os.path.basename(parent) == "nbs-fleet" else {}
    return {"XDG_STATE_HOME": state, **runtime}


def agent_files(plan: Plan, agent: AgentPlan, record: AgentRecord) -> dict[str, File]:
    """Settings, policies and skills of an agent that runs, by path: its client and hooks read them again and again."""
    driver = registry.of(agent.agent)
    facts = gather(plan, agent, session_id=record.session_id or "", resume=True, has_prompt=False)
    settings = json.dumps(driver.settings(facts), indent=1, ensure_ascii=False)
    place = None if driver.capabilities.shared_skills else driver.skills_dir(facts)
    known = {skills.text_path(place, skill): skill.text for skill in agent.skills} if place is not None else {}
    texts = {facts.settings_path: settings} | driver.launch(facts).files | known
    return {path: File(_bytes(text)) for path, text in texts.items()}


def _bytes(text: str | bytes) -> bytes:
    return text.encode("utf-8", "surrogateescape") if isinstance(text, str) else text
