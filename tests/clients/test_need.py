"""A test whose client is not there is skipped by a person and fails in CI."""

from __future__ import annotations

import pytest

from tests.support import clients


@pytest.mark.parametrize(("ci", "ends"), [("true", pytest.fail.Exception), ("", pytest.skip.Exception)])
def test_a_missing_client_is_skipped_by_a_person_and_fails_in_ci(
    monkeypatch: pytest.MonkeyPatch, ci: str, ends: type[BaseException]
) -> None:
    monkeypatch.setenv("CI", ci)
    monkeypatch.setattr(clients, "missing", lambda name: f"{name} is not installed")
    with pytest.raises(ends, match="claude is not installed"):
        clients.need("claude")


def test_one_that_is_there_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clients, "missing", lambda name: None)
    clients.need("claude")
