"""Looks at a client until something is so: it tells nobody when it has drawn."""

from __future__ import annotations

from collections.abc import Awaitable, Callable


async def until(holds: Callable[[], Awaitable[bool]], seconds: float) -> bool:
    """Ask at once and then at growing pauses of at most 0.3 s; False if it did not hold within `seconds`."""
    import tenacity  # noqa: PLC0415 -- an idle team never needs it

    waiting = tenacity.AsyncRetrying(
        retry=tenacity.retry_if_result(lambda seen: not seen),
        wait=tenacity.wait_exponential(multiplier=0.02, max=0.3),
        stop=tenacity.stop_after_delay(seconds),
        retry_error_callback=lambda _state: False,
    )
    seen: bool = await waiting(holds)
    return seen
