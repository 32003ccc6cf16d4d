"""The dashboard in a real browser: it opens by the ticket, shows the team, takes keys, and looks like its picture."""

from __future__ import annotations

import pytest

from tests import screenshots
from tests.top import browser

pytestmark = pytest.mark.browser
NEAR = 6.0
"""Mean difference (of 255) up to which two pictures are the same: letters drawn a little otherwise are 1 or 2."""


async def test_it_opens_shows_the_team_takes_keys_and_looks_like_its_picture(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    kept = (screenshots.IMAGES / screenshots.PHOTOGRAPH).read_bytes()
    async with browser.staged() as gate, browser.window(gate) as window:
        errors: list[str] = []
        window.page.on("pageerror", lambda error: errors.append(str(error)))
        await window.until(*screenshots.SEEN)
        taken = await window.picture()
        assert await window.difference(kept, taken) < NEAR, "python tests/screenshots.py --browser"
        assert gate.ticket not in window.page.url
        (cookie,) = await window.page.context.cookies()
        assert (cookie["value"], cookie["path"]) == (gate.session, gate.base)
        assert cookie["httpOnly"]
        assert cookie["sameSite"] == "Strict"
        window.forget()
        await window.page.keyboard.press("?")
        await window.until("the team goes on")
        helped = await window.picture()
        assert await window.difference(taken, helped) > NEAR
        assert errors == []
        # Another browser on this machine, without the ticket, gets nothing.
        stranger = window.page.context.browser
        assert stranger is not None
        answer = await (await stranger.new_context()).request.get(f"{gate.origin}{gate.base}")
        assert (answer.status, await answer.body()) == (403, b"")
