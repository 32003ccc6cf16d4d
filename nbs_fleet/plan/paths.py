"""Every path below a team's run directory, computed and never touched here."""

from __future__ import annotations

from hashlib import sha256
from posixpath import join

from msgspec import Struct


class AgentPaths(Struct, frozen=True):
    """The files of one agent below `<run>/agents/<handle>/`; `values` (0600) lies in the runtime directory."""

    dir: str
    values: str

    @property
    def launch(self) -> str:
        return join(self.dir, "launch.sh")

    @property
    def prompt(self) -> str:
        return join(self.dir, "prompt.md")

    @property
    def settings(self) -> str:
        return join(self.dir, "settings.json")

    @property
    def state(self) -> str:
        return join(self.dir, "state.json")

    @property
    def story(self) -> str:
        return join(self.dir, "story.jsonl")

    @property
    def spool(self) -> str:
        return join(self.dir, "spool")

    @property
    def queue(self) -> str:
        return join(self.dir, "queue")

    @property
    def mail(self) -> str:
        return join(self.dir, "mail")

    @property
    def claimed(self) -> str:
        return join(self.dir, "claimed")

    @property
    def inbox(self) -> str:
        return join(self.dir, "inbox")

    @property
    def archive(self) -> str:
        return join(self.dir, "archive")

    @property
    def hooks(self) -> str:
        return join(self.dir, "hooks.json")

    @property
    def signal(self) -> str:
        return join(self.dir, "signal.json")

    @property
    def captures(self) -> str:
        return join(self.dir, "captures")

    @property
    def skills(self) -> str:
        return join(self.dir, "skills")

    @property
    def folders(self) -> tuple[str, ...]:
        """All folders that exist while the agent is declared."""
        names = ("queue", "mail", "claimed", "inbox", "archive", "spool", "captures", "skills")
        return (self.dir, *(join(self.dir, name) for name in names))


class RunPaths(Struct, frozen=True):
    """The run directory of one team, its runtime directory (sockets that don't fit, secret values), its sockets."""

    run: str
    runtime: str
    socket: str
    """The supervisor's Unix socket."""
    tmux: str
    """The private tmux server's socket."""

    @property
    def team(self) -> str:
        return join(self.run, "team.json")

    @property
    def plan(self) -> str:
        return join(self.run, "plan.json")

    def shared_skills(self, real_dir: str) -> str:
        """Where the skills lie that all agents of one working directory share."""
        return join(self.run, "skills", sha256(real_dir.encode("utf-8", "surrogateescape")).hexdigest()[:8])

    @property
    def addresses(self) -> str:
        """Where the team's webhooks are; like an agent's values, under a name that no agent can have."""
        return join(self.runtime, "@webhooks.env")

    @property
    def lock(self) -> str:
        return join(self.run, "supervisor.lock")

    @property
    def up_lock(self) -> str:
        return join(self.run, "up.lock")

    @property
    def log(self) -> str:
        return join(self.run, "supervisor.log")

    @property
    def story(self) -> str:
        return join(self.run, "story.jsonl")

    @property
    def attention(self) -> str:
        return join(self.run, "attention.json")

    @property
    def began(self) -> str:
        """Since when the team's standups are counted; a new tmux server counts from anew."""
        return join(self.run, "began.json")

    @property
    def budget(self) -> str:
        return join(self.run, "budget.json")

    @property
    def waiting(self) -> str:
        return join(self.run, "waiting")

    @property
    def bin(self) -> str:
        return join(self.run, "bin")

    @property
    def tmux_conf(self) -> str:
        return join(self.run, "tmux.conf")

    @property
    def supervise(self) -> str:
        return join(self.run, "supervise.sh")

    def agent(self, handle: str) -> AgentPaths:
        """The paths of one agent."""
        return AgentPaths(join(self.run, "agents", handle), join(self.runtime, f"{handle}.env"))
