"""What the dashboard asks a person: which answer, which message, whether it is meant."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from nbs_fleet.attention.queue import Item
from nbs_fleet.cli.output import Span
from nbs_fleet.top import view
from nbs_fleet.top.text import text_of, text_of_lines
from nbs_fleet.top.view import Line

CANCEL = Binding("escape", "dismiss(None)", "Cancel")
SENT = "enter sends, escape cancels"
MOST = 10
"""Options that are shown at once."""
AROUND = 10
"""Rows of an answer's dialog that are neither question nor options: borders, padding, what is to be written, help."""
BESIDE = 8
"""Columns of a dialog beside its text: border, padding, a little air."""
WIDEST = 100


class Answering(ModalScreen[tuple[str, str] | None]):
    """Shows what an item asks and its options; ends with (option's key, text), or None."""

    BINDINGS: ClassVar[list[BindingType]] = [CANCEL]

    def __init__(self, item: Item) -> None:
        super().__init__()
        self._item = item

    def compose(self) -> ComposeResult:
        """Question, options, text."""
        width = min(self.app.size.width * 9 // 10, WIDEST) - BESIDE
        options = [Option(text_of(line)) for line in view.options(self._item, width)]
        height = self.app.size.height * 9 // 10 - AROUND - min(len(options), MOST)
        with Vertical(classes="dialog"):
            yield Static(text_of_lines(view.question(self._item, width, max(height, 3))), markup=False)
            yield OptionList(*options, id="options")
            yield Input(placeholder="with these words (optional)", id="text")
            yield Static("enter answers, tab goes to the words, escape cancels", classes="help", markup=False)

    def on_mount(self) -> None:
        """The first option is offered."""
        self.query_one(OptionList).focus()

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        """Enter, or a click on an option."""
        self._end(event.option_index)

    def on_input_submitted(self) -> None:
        """Enter in the text: with the option that is highlighted."""
        highlighted = self.query_one(OptionList).highlighted
        if highlighted is not None:
            self._end(highlighted)

    def _end(self, index: int) -> None:
        self.dismiss((self._item.need.options[index][0], self.query_one(Input).value))


class Writing(ModalScreen[str | None]):
    """Asks for a message to an agent; ends with its text, or None."""

    BINDINGS: ClassVar[list[BindingType]] = [CANCEL]

    def __init__(self, handle: str) -> None:
        super().__init__()
        self._handle = handle

    def compose(self) -> ComposeResult:
        """One line to write in."""
        with Vertical(classes="dialog"):
            yield Static(text_of(["To ", Span(self._handle, "bold")]), markup=False)
            yield Input(placeholder="what to say", id="text")
            yield Static(SENT, classes="help", markup=False)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Enter; an empty text is nothing to send."""
        self.dismiss(event.value if event.value.strip() else None)


class Sure(ModalScreen[bool]):
    """Asks whether something is to be done; ends with the answer."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y,enter", "dismiss(True)", "Yes"),
        Binding("n,escape", "dismiss(False)", "No"),
    ]

    def __init__(self, asked: str) -> None:
        super().__init__()
        self._asked = asked

    def compose(self) -> ComposeResult:
        """The question and its keys."""
        with Vertical(classes="dialog"):
            yield Static(self._asked, markup=False)
            yield Static("y yes, n no", classes="help", markup=False)


class Reading(ModalScreen[None]):
    """Shows some lines until any of its keys is pressed."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,enter,q,question_mark", "dismiss(None)", "Close")]

    def __init__(self, lines: list[Line]) -> None:
        super().__init__()
        self._lines = lines

    def compose(self) -> ComposeResult:
        """The lines."""
        with Vertical(classes="dialog"):
            yield Static(text_of_lines(self._lines), markup=False)
            yield Static("escape closes this", classes="help", markup=False)
