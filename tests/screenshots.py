"""Draws the pictures of the dashboard in docs/images, or with --check says which of them are out of date."""

from __future__ import annotations

import argparse
import asyncio
import difflib
import html
import re
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import pytest  # noqa: E402 - the path is set above
from textual.pilot import Pilot  # noqa: E402

from nbs_fleet.cli import output  # noqa: E402
from tests.top import browser  # noqa: E402
from tests.top.stage import Stage  # noqa: E402

IMAGES = ROOT / "docs" / "images"
CELL = 12.2
"""Width of a column in a picture."""
TEXT = re.compile(r'<text[^>]* x="([\d.]+)" y="([\d.]+)"[^>]*>(.*?)</text>')
FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)


WITHIN = 180.0
"""Seconds in which a dashboard has drawn everything, on a loaded machine too."""


@dataclass(frozen=True)
class Picture:
    """One picture: its file's name, the size of the terminal, keys pressed before, and words that must be in it."""

    name: str
    size: tuple[int, int]
    keys: tuple[str, ...]
    shows: tuple[str, ...]


PICTURES = (
    Picture("top-80x24", (80, 24), ("down",), ("blocked", "resets")),
    Picture("top-80x24-screen", (80, 24), ("down", "2"), ("proceed",)),
    Picture("top-80x24-answer", (80, 24), ("down", "enter"), ("escape", "bo-1")),
    Picture("top-200x60", (200, 60), ("down",), ("Screen&#160;of&#160;bo-1", "Story&#160;of&#160;bo-1", "proceed")),
)


PHOTOGRAPH = "top-web.png"
SEEN = ("blocked: permission", "resets 11am", "UserPromptSubmit", "scheduler", "proceed")
"""Words on every panel of the dashboard in the browser."""


def draw(picture: Picture) -> str:
    """The picture as SVG text: the same on every machine with the same version of the library."""
    with plain_surroundings():
        return asyncio.run(_drawn(picture))


async def _drawn(picture: Picture) -> str:
    app = Stage().app()
    async with app.run_test(size=picture.size) as pilot:
        end = time.monotonic() + WITHIN
        await _settled(pilot, (), end)
        for key in picture.keys:
            await pilot.press(key)
        return await _settled(pilot, picture.shows, end)


async def _settled(pilot: Pilot[None], shows: tuple[str, ...], end: float) -> str:
    """The picture once all the words are in it and it does not change any more."""
    before = ""
    while True:
        await pilot.pause(0.05)
        svg = FONTS.sub("", pilot.app.export_screenshot(title="nbs-fleet top")).rstrip() + "\n"
        missing = [word for word in (*shows, "supervisor") if word not in svg]
        if svg == before and not missing:
            return svg
        if time.monotonic() > end:
            raise TimeoutError(f"not in the picture, or not still, after {WITHIN:.0f} s: {missing}")
        before = svg


@contextmanager
def plain_surroundings() -> Iterator[None]:
    """Times of day are those of UTC, and there is colour, wherever this runs."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        patch.delenv("NO_COLOR", raising=False)
        time.tzset()
        try:
            yield
        finally:
            patch.undo()
            time.tzset()


def words(svg: str) -> str:
    """The text of a picture, row by row, for people who compare two."""
    rows: dict[float, dict[float, str]] = {}
    for x, y, text in TEXT.findall(svg):
        rows.setdefault(float(y), {})[float(x)] = html.unescape(text).replace("\xa0", " ")
    lines = []
    for y in sorted(rows):
        line = ""
        for x, text in sorted(rows[y].items()):
            line = output.pad(line, round(x / CELL)) + text
        lines.append(line)
    return "\n".join(lines)


def stale(picture: Picture) -> str:
    """What is wrong with the picture that is kept; empty if it is the one that is drawn now."""
    path = IMAGES / f"{picture.name}.svg"
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    drawn = draw(picture)
    if kept == drawn:
        return ""
    lines = difflib.unified_diff(words(kept).splitlines(), words(drawn).splitlines(), "kept", "drawn now", lineterm="")
    return f"{path.relative_to(ROOT)} is not what is drawn now; python tests/screenshots.py\n" + "\n".join(lines)


async def photograph() -> bytes:
    """The dashboard in the system's Chromium, as PNG."""
    async with browser.staged() as gate, browser.window(gate) as window:
        await window.until(*SEEN)
        return await window.picture()


def main() -> int:
    """Draw all, or compare all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="draw nothing; exit 1 if a picture is out of date")
    parser.add_argument("--browser", action="store_true", help="take the picture in the browser, too (needs chromium)")
    options = parser.parse_args()
    check: bool = options.check
    IMAGES.mkdir(exist_ok=True)
    if options.browser:
        (IMAGES / PHOTOGRAPH).write_bytes(asyncio.run(photograph()))
    wrong = [text for picture in PICTURES if (text := stale(picture))] if check else []
    for picture in () if check else PICTURES:
        (IMAGES / f"{picture.name}.svg").write_text(draw(picture), encoding="utf-8")
    print("\n".join(wrong) or f"{len(PICTURES)} pictures {'are up to date' if check else 'drawn'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
