"""The driver for any other client: a command line and a screen that the team file describes, messages by keys."""

from __future__ import annotations

from nbs_fleet.drivers.answers import NEVER
from nbs_fleet.drivers.base import PROMPT, Capabilities, Dialog, Driver, Facts, Option, Reading, Screen
from nbs_fleet.drivers.generic_screen import Patterns, read_screen
from nbs_fleet.drivers.plain import Plain
from nbs_fleet.drivers.recipes import Submit
from nbs_fleet.model import AgentState, BlockedKind
from nbs_fleet.spec.team import Agent, Client, Dialogs

_YES, _NO = "Yes", "No"


class Generic(Plain):
    """A client of which nothing is known but what `client` says; without that it reads no screen.

    It keeps no session that could be resumed, and has no hooks: a message counts as delivered once its text stood in
    the input and is gone from it after Enter.
    """

    name: str = "generic"
    program: str = "generic"
    capabilities: Capabilities = Capabilities(paste=False, prompt=False)
    flicker: str | None = "#{history_size} #{cursor_x},#{cursor_y} #{window_activity}"

    def __init__(self, client: Client | None = None) -> None:
        self.client = client
        if client is None:
            return
        self.capabilities = Capabilities(paste=False, prompt=client.prompt_args is not None)
        self.submit = Submit(gap=client.submit_gap, emptied=True)
        self.auto_approve = client.auto_approve

    def fitted(self, agent: Agent) -> Driver:
        return Generic(agent.client)

    def model_argv(self, model: str) -> tuple[str, ...]:
        return (*self.client.model_args, model) if self.client else ("--model", model)

    def prompt_argv(self, facts: Facts) -> tuple[str, ...]:
        """Its arguments and the prompt, last of all."""
        before = self.client.prompt_args if self.client else ()
        return (*(before or ()), PROMPT) if facts.has_prompt else ()

    def read_screen(self, screen: Screen) -> Reading:
        if self.client is None:
            return Reading(AgentState.UNKNOWN, detail="nothing says what its screen means")
        return read_screen(screen, self.patterns(self.client))

    def patterns(self, client: Client) -> Patterns:
        """What the team file says, as the reader takes it."""
        offered = tuple(Option(label) for label, keys in ((_YES, client.yes_keys), (_NO, client.no_keys)) if keys)
        return Patterns(
            ready=client.ready,
            busy=client.busy or "",
            blocked={BlockedKind(kind): pattern for kind, pattern in client.blocked.items()},
            otherwise=AgentState(client.otherwise),
            placeholder=client.placeholder or "",
            rows=client.rows,
            options=offered,
        )

    def answer(self, dialog: Dialog, policy: Dialogs) -> tuple[str, ...] | None:
        """The keys that the team file gives for the policy's word."""
        wish = getattr(policy, dialog.kind.value, "ask")
        if self.client is None or wish == "ask" or dialog.kind in NEVER:
            return None
        return (self.client.no_keys if wish == "deny" else self.client.yes_keys) or None

    def pick(self, dialog: Dialog, index: int) -> tuple[str, ...] | None:
        """The same keys, for a person's choice."""
        if self.client is None:
            return None
        return (self.client.yes_keys if dialog.options[index].label == _YES else self.client.no_keys) or None
