"""The documentation's links lead somewhere, and the team files it shows are valid."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
LINK = re.compile(r"\]\(([^)\s]+)\)")
EXAMPLE = re.compile(r"```yaml\n(version: 1\n.*?)```", re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    heads = [line.lstrip("#").strip() for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    return {re.sub(r"[^\w\- ]", "", head.lower()).replace(" ", "-") for head in heads}


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_every_link_leads_somewhere(page: Path) -> None:
    broken = []
    for link in LINK.findall(page.read_text(encoding="utf-8")):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def examples() -> list[tuple[str, str]]:
    """(page, text) of each whole team file in the documentation."""
    found = []
    for page in PAGES:
        found += [(str(page.relative_to(ROOT)), text) for text in EXAMPLE.findall(page.read_text(encoding="utf-8"))]
    return found


@pytest.mark.parametrize(("page", "text"), examples(), ids=lambda value: value if value.endswith(".md") else "")
def test_every_team_file_that_is_shown_is_valid(page: str, text: str, tmp_path: Path) -> None:
    (tmp_path / ".nbs").mkdir()
    (tmp_path / "team.yaml").write_text(text, encoding="utf-8")
    argv = [sys.executable, "-m", "nbs_fleet", "validate", "team.yaml"]
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
