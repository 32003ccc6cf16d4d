"""The pictures in the documentation are what the dashboard draws now."""

from __future__ import annotations

import pytest

from tests import screenshots


@pytest.mark.parametrize("picture", screenshots.PICTURES, ids=lambda picture: picture.name)
def test_the_picture_is_up_to_date(picture: screenshots.Picture) -> None:
    assert screenshots.stale(picture) == ""
