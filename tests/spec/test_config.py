"""The effective file: each value with the place that set it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import yaml

from nbs_fleet.spec.config import effective, render
from nbs_fleet.spec.loaded import Loaded

Load = Callable[..., Loaded]
TEXT = """\
version: 1
team: t
include: [base.yaml]
chats: [live]
roles:
  r: {model: opus, on_idle: nudge}
agents:
  - {handle: ana, role: r, sidecar: {poll: 1h}, env: {LOG: debug}}
  - {handle: bo, count: 2, dir: src}
"""


def entries(load: Load, root: Path) -> tuple[Loaded, dict[str, tuple[str, str]]]:
    (root / "base.yaml").write_text("stop: signal\nstandup: {every: 90s}\nbus: [ev]\nmodel: sonnet\n")
    (root / "src").mkdir()
    loaded = load(TEXT, {"NBS_NOTIFY_COOLDOWN": "7"})
    return loaded, {e.key: (e.value, e.origin) for e in effective(loaded)}


def test_each_value_names_the_place_that_set_it(root: Path, load: Load) -> None:
    _, found = entries(load, root)
    assert found["team"] == ("t", "team.yaml:2")
    assert found["standup.every"] == ("1m30s", "base.yaml:2")
    assert found["standup.chat"] == ("live", "default")
    assert found["chats.live"] == ("{path: .nbs/chat/live.chat, members: [ana, bo-1, bo-2]}", "team.yaml:4")
    assert found["agents.ana.model"] == ("opus", "role r, team.yaml:6")
    assert found["agents.ana.on_idle.do"] == ("nudge", "role r, team.yaml:6")
    assert found["agents.ana.on_idle.attempts"] == ("1", "default")
    assert found["agents.bo-2.model"] == ("sonnet", "base.yaml:4")
    assert found["agents.bo-2.bus"] == ("[ev]", "base.yaml:3")
    assert found["agents.bo-2.dir"] == ("src", "team.yaml:9")
    assert found["agents.ana.dir"] == (".", "default")
    assert found["agents.ana.stop"] == ("signal", "base.yaml:1")
    assert found["agents.ana.sidecar.poll"] == ("1h", "team.yaml:8")
    assert found["agents.ana.sidecar.notify_cooldown"] == ('"${NBS_NOTIFY_COOLDOWN}"', "environment")
    assert found["agents.ana.sidecar.bus_check"] == ("3s", "default")
    assert found["agents.ana.driver"] == ("claude", "default")
    assert "agents.ana.command" not in found


def test_the_rendered_text_is_yaml_with_the_origins_as_comments(root: Path, load: Load) -> None:
    loaded, found = entries(load, root)
    text = render(loaded)
    data = yaml.safe_load(text)
    assert data["agents"]["bo-1"]["sidecar"]["poll"] == "5m"
    assert data["standup"] == {"every": "1m30s", "chat": "live"}
    lines = [line for line in text.splitlines() if "  # " in line]
    assert len(lines) == len(found)
    assert lines[0].split() == ["team:", "t", "#", "team.yaml:2"]


def test_a_duty_that_is_switched_off_is_shown_as_false(root: Path, load: Load) -> None:
    text = "version: 1\nteam: t\nstandup: false\npythia: no\nagents: [{handle: ana}]\n"
    found = {e.key: (e.value, e.origin) for e in effective(load(text))}
    assert found["standup"] == ("false", "team.yaml:3")
    assert found["pythia"] == ("false", "team.yaml:4")


def test_keys_with_unusual_characters_are_quoted(root: Path, load: Load) -> None:
    text = "version: 1\nteam: t\nvars: {'a b': x, c.d: ['1', yes please]}\nagents: [{handle: ana}]\n"
    data = yaml.safe_load(render(load(text)))
    assert data["vars"] == {"a b": "x", "c.d": ["1", "yes please"]}
