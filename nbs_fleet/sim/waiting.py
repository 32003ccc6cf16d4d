"""What was submitted while the client was busy, in order, with the transcript's lines about it."""

from __future__ import annotations

from nbs_fleet.sim.front import Prompt
from nbs_fleet.sim.session import Session


class Waiting:
    """The queue. Plain prompts may go together or in mid-turn; a command goes alone, after the turn."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.prompts: list[Prompt] = []

    def shown(self) -> list[tuple[str, bool]]:
        """What is listed above the box: text, and whether it is a shell command. Mail is not shown."""
        return [(p.text, p.kind == "shell") for p in self.prompts if p.kind != "mail"]

    def add(self, prompt: Prompt) -> None:
        """Put it at the end."""
        self.prompts.append(prompt._replace(source="queued"))
        self.session.head()
        self.session.transcript.queue("enqueue", prompt.text)

    def take_back(self) -> str:
        """All that was typed comes back as one text."""
        typed = [p for p in self.prompts if p.kind != "mail"]
        self.prompts = [p for p in self.prompts if p.kind == "mail"]
        for prompt in typed:
            self.session.transcript.queue("popAll", prompt.text)
        return "\n".join(p.text for p in typed)

    def hand_over(self) -> list[Prompt]:
        """What may go to the model in mid-turn."""
        plain = [p for p in self.prompts if p.kind == "mail" or (p.kind == "prompt" and not p.text.startswith("/"))]
        self.prompts = [p for p in self.prompts if p not in plain]
        return plain

    def batch(self) -> list[Prompt]:
        """What is answered next: several plain prompts at once, anything else alone."""
        batch: list[Prompt] = []
        while self.prompts:
            alone = self.prompts[0].kind != "prompt" or self.prompts[0].text.startswith("/")
            if batch and alone:
                break
            batch.append(self.prompts.pop(0))
            self.session.transcript.queue("dequeue")
            if alone:
                break
        return batch
