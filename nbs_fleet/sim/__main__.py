"""`python -m nbs_fleet.sim ARGS...`."""

from __future__ import annotations

import sys

from nbs_fleet.sim import main

sys.exit(main(sys.argv[1:]))
