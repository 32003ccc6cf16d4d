"""Commands an agent writes in its own text are found; what it quotes or shows never is."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nbs_fleet.nbs.commands_in_text import find_commands
from nbs_fleet.nbs.control_commands import Command, Problem

LINE = "\\nbs-register-chat .nbs/chat/debug.chat"
FOUND = (Command("register-chat", ".nbs/chat/debug.chat"),)


@pytest.mark.parametrize(
    "text",
    [
        LINE,
        f"I see another chat.\n{LINE}\nDone.",
        f"  {LINE}  ",
        f"```\ncode\n```\n{LINE}",
        f"~~~\n```\n~~~\n\n{LINE}",
        f"> they said\n\n{LINE}",
        f"some `code` here\n{LINE}",
        f'he said "yes"\n{LINE}',
        f"# A heading\r\n{LINE}\r\n",
        f"```one line```\n\n{LINE}",
        f"<pre>x</pre>\n{LINE}",
        f"an odd ` tick\n{LINE}\n",
    ],
)
def test_a_command_of_one_s_own_is_found(text: str) -> None:
    assert find_commands(text) == FOUND


@pytest.mark.parametrize(
    "text",
    [
        f"```\n{LINE}\n```",
        f"```sh\n{LINE}",
        f"~~~~\n{LINE}\n~~~\n{LINE}\n~~~~",
        f"````\n```\n{LINE}\n```\n````",
        f"- item\n  ```\n  {LINE}\n  ```",
        f"- ```\n{LINE}\n  ```",
        f"```\n    ```\n{LINE}\n```",
        f"    {LINE}",
        f"\t{LINE}",
        f"> {LINE}",
        f"> they said\n{LINE}",
        f"- > {LINE}",
        f"`{LINE}`",
        f"`one\n{LINE}\ntwo`",
        f"``a ` b\n{LINE}\n``",
        f'"{LINE}"',
        f'bo wrote: "please\n{LINE}\nsoon"',
        f"bo wrote: “please\n{LINE}”",
        f"then write {LINE}",
        f"- {LINE}",
        f"* {LINE}",
        f"| {LINE} |",
        f"<pre>\n{LINE}\n</pre>",
        f"<blockquote>\n{LINE}",
        f"<!-- \n{LINE}\n-->",
        f"bo: {LINE}",
        LINE.replace("\\", "/"),
        LINE.replace("\\nbs-", ""),
        "\\nbs- x",
        "\\nbsregister-chat x",
        "",
    ],
)
def test_what_is_quoted_or_shown_is_no_command(text: str) -> None:
    assert find_commands(text) == ()


def test_several_commands_come_in_order_and_unknown_ones_as_problems() -> None:
    text = "\\nbs-register-bus .nbs/events\n\\nbs-fly away\n\nand\n\\nbs-set-poll-interval 60\n\\nbs-register-chat"
    assert find_commands(text) == (
        Command("register-bus", ".nbs/events"),
        Problem("\\nbs-fly away", "unknown verb 'fly'"),
        Command("set-poll-interval", "60"),
        Problem("\\nbs-register-chat", "register-chat needs a path"),
    )


ordinary = st.text(st.characters(exclude_characters="\\"), max_size=200)


@given(ordinary)
def test_ordinary_text_never_registers(text: str) -> None:
    assert find_commands(text) == ()


inner = st.lists(st.sampled_from((LINE, "", "text", "~~~", "> x", "    y", "- z", '"', "`")), max_size=8)


@given(inner, st.sampled_from(("```", "````", "`````")), st.sampled_from(("", "sh", "text x")), ordinary)
def test_nothing_inside_a_block_of_code_registers(lines: list[str], fence: str, info: str, after: str) -> None:
    text = "\n".join(["before", "", fence + info.replace("`", ""), *lines, fence, after])
    assert find_commands(text) == ()


@given(st.lists(st.sampled_from(("text", "", "`a` b", "# h", "1. x", "***", "```\ncode\n```")), max_size=8))
def test_a_command_after_any_closed_text_is_found(before: list[str]) -> None:
    assert find_commands("\n\n".join([*before, LINE])) == FOUND
