"""What a hook handed over is proved by the lines that the client writes of it (Claude Code 2.1.197, captured)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from nbs_fleet.drivers.proofs import in_transcript


def attachment(**fields: Any) -> dict[str, Any]:
    return {"type": "attachment", "attachment": fields}


@pytest.mark.parametrize(
    ("line", "found"),
    [
        (
            {
                "type": "user",
                "isMeta": True,
                "message": {"role": "user", "content": "Stop hook feedback:\n[nbs:d-1] hi"},
            },
            ("d-1",),
        ),
        (
            attachment(type="hook_additional_context", content=["[nbs:d-1] a\n\n[nbs:d-2] b"], hookName="x"),
            ("d-1", "d-2"),
        ),
        (attachment(type="hook_additional_context", content=None), ()),
        (attachment(type="hook_blocking_error", blockingError={"blockingError": "[nbs:d-1] hi"}), ()),
    ],
)
def test_a_hand_over_by_hook_leaves_its_proof(line: dict[str, Any], found: tuple[str, ...]) -> None:
    assert in_transcript(json.dumps(line)) == found
