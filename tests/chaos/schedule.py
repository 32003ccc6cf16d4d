"""When what is done in a soak: pure, from a seed, and so that each kind of fault and of file comes at least once."""

from __future__ import annotations

import random

from msgspec import Struct

from tests.chaos.kinds import ONLY_DELETED, PASSING, REQUIRED, Kind, Way

HARD = (Kind.KILL_SERVER, Kind.UP_DOWN)
"""After these a whole team starts anew; once a minute is enough."""
SECONDS = {
    Kind.KILL_SERVER: 4.0,
    Kind.UP_DOWN: 6.0,
    Kind.UP_UP: 3.0,
    Kind.DISK_FULL: 4.0,
    Kind.STOP_SUPERVISOR: 3.0,
    Kind.STOP_CLIENT: 2.0,
}
"""What a fault takes, about; others take ONE."""
ONE = 0.8


class Strike(Struct, frozen=True):
    """One fault. `number` chooses among agents or files; `file` and `way` are for damage; `span` seconds it lasts."""

    kind: Kind
    number: int
    span: float = 0.0
    file: str = ""
    way: Way = Way.FLIP


def schedule(seed: int, seconds: float) -> tuple[Strike, ...]:
    """The faults of a soak in order, as many as fit into `seconds` and at least one of each kind."""
    chance = random.Random(seed)
    strikes = [_one(kind, chance) for kind in Kind if kind is not Kind.DAMAGE]
    strikes += [_damage(file, chance) for file in (*REQUIRED, *sorted(PASSING))]
    left = seconds - sum(SECONDS.get(strike.kind, ONE) for strike in strikes)
    common = [kind for kind in Kind if kind not in HARD]
    while left > 0:
        kind = chance.choice(common)
        strikes.append(_damage(chance.choice(REQUIRED), chance) if kind is Kind.DAMAGE else _one(kind, chance))
        left -= SECONDS.get(kind, ONE)
    chance.shuffle(strikes)
    return tuple(strikes)


def _one(kind: Kind, chance: random.Random) -> Strike:
    return Strike(kind, chance.getrandbits(32), span=chance.uniform(0.5, SECONDS.get(kind, ONE)))


def _damage(file: str, chance: random.Random) -> Strike:
    way = Way.DELETE if file in ONLY_DELETED else chance.choice(list(Way))
    return Strike(Kind.DAMAGE, chance.getrandbits(32), file=file, way=way)
