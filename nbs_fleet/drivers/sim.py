"""The driver for our simulator: Claude Code's driver with another program and a private configuration folder."""

from __future__ import annotations

from posixpath import join
from typing import Any

from msgspec.structs import replace

from nbs_fleet.drivers.base import Facts, Launch
from nbs_fleet.drivers.claude import Claude
from nbs_fleet.drivers.claude_places import config_dir


class Sim(Claude):
    """`nbs-fleet sim`, which takes the flags of Claude Code and keeps the same files."""

    name: str = "sim"
    program: str = "nbs-fleet"
    min_version: tuple[int, ...] | None = None
    start_seconds: float = 5.0

    def parse_version(self, output: str) -> str | None:
        """`0.1.0` of `nbs-fleet 0.1.0`."""
        words = output.split()
        return words[1] if len(words) >= 2 and words[0] == "nbs-fleet" else None

    def command(self, facts: Facts) -> tuple[str, ...]:
        return facts.agent.command or (self.program, "sim")

    def launch(self, facts: Facts) -> Launch:
        """As Claude Code, with CLAUDE_CONFIG_DIR in the agent's own folder unless the team file names one."""
        base = super().launch(facts)
        if "CLAUDE_CONFIG_DIR" in facts.agent.env:
            return base
        env = {**base.env, "CLAUDE_CONFIG_DIR": self.config_dir(facts)}
        return Launch(argv=base.argv, env=env, unset=base.unset, files=base.files, dropped=base.dropped)

    def config_dir(self, facts: Facts) -> str:
        """A person's own CLAUDE_CONFIG_DIR in the inherited environment is not for a simulator."""
        return config_dir(facts) if "CLAUDE_CONFIG_DIR" in facts.agent.env else join(facts.agent_dir, "client")

    def settings(self, facts: Facts) -> dict[str, Any]:
        """It has the hooks of a current Claude Code; its own version says nothing of them."""
        return super().settings(replace(facts, version=None))
