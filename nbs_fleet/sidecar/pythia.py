"""When Pythia has to look: one checkpoint per bucket of decisions, for any number of sidecars and restarts. Pure."""

from __future__ import annotations

from msgspec import Struct


class Count(Struct, frozen=True):
    """Decisions counted now, and the bucket that was last dealt with (None: never)."""

    decisions: int
    last_bucket: int | None


class Verdict(Struct, frozen=True):
    """The bucket to write down (None: leave it), and whether a checkpoint is published for it."""

    bucket: int | None
    fire: bool


def checkpoint(count: Count, every: int) -> Verdict:
    """Deal with a count.

    A first sight is the base, not a reason to fire; a count that shrank (archived, pruned) is a new base; several
    buckets crossed at once are one checkpoint.
    """
    bucket = count.decisions // every
    if count.last_bucket is None or bucket < count.last_bucket:
        return Verdict(bucket, fire=False)
    if bucket > count.last_bucket:
        return Verdict(bucket, fire=True)
    return Verdict(None, fire=False)
