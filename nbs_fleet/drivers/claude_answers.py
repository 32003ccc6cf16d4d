"""Which line of a dialog carries out a team file's policy, and the keys that pick it; lines are read, never counted."""

from __future__ import annotations

from nbs_fleet.drivers import answers
from nbs_fleet.drivers.base import Dialog
from nbs_fleet.model import BlockedKind
from nbs_fleet.spec.team import Dialogs

_WIDER = r"always|don't ask again|allow all|all future|for this session|during this session"

_YES: answers.Labels = {
    BlockedKind.TRUST: (r"^Yes, (I trust this folder|proceed)",),
    BlockedKind.BYPASS: (r"^Yes, I accept",),
    BlockedKind.MCP: (r"^Use this MCP server",),
    BlockedKind.APIKEY: (r"^Yes",),
    BlockedKind.SETUP: (r"^No, maybe later",),
    BlockedKind.SETTINGS: (r"^Continue",),
    BlockedKind.RESUME: (r"^Resume full session",),
    BlockedKind.PLAN: (r"^Yes, and bypass permissions", r"^Yes, .*bypass", r"^Yes, manually approve", r"^Yes$"),
    BlockedKind.PERMISSION: (r"^Yes$", rf"^Yes\b(?!.*({_WIDER}))"),
}
"""Labels that carry out `accept` and `approve`, the wished ones first; never a line that allows more than was asked."""

_NO: answers.Labels = {
    BlockedKind.TRUST: (r"^No, exit",),
    BlockedKind.BYPASS: (r"^No, exit",),
    BlockedKind.MCP: (r"^Continue without",),
    BlockedKind.APIKEY: (r"^No\b",),
    BlockedKind.PERMISSION: (r"^No(?!t |w )",),
}


def choose(dialog: Dialog, policy: Dialogs) -> int | None:
    """The index of the line that the policy asks for; None when a person must choose."""
    return answers.choose(dialog, policy, _YES, _NO)


def answer(dialog: Dialog, policy: Dialogs) -> tuple[str, ...] | None:
    """Keys for a client that takes a digit at once, as Claude Code 2.1.197 does in all its dialogs (measured)."""
    wish = getattr(policy, dialog.kind.value, "ask")
    index = choose(dialog, policy)
    if index is not None:
        return answers.pick(dialog, index)
    if dialog.kind is BlockedKind.SETUP and wish == "accept":
        return ("Enter",)  # the theme under the cursor; the page of security notes
    if dialog.kind is BlockedKind.PLAN and wish == "deny":
        return ("Escape",)  # no line refuses without a text; Escape does, and ends the turn
    if dialog.kind is BlockedKind.MCP and dialog.options and not any(option.key for option in dialog.options):
        return {"accept": ("Enter",), "deny": ("Escape",)}.get(wish)  # ticked boxes: take them all, or none
    return None
