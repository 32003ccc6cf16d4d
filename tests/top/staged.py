"""The dashboard of a team that was made by hand, as a program: what a browser is shown in tests and pictures."""

from __future__ import annotations

from tests.top.stage import Stage

if __name__ == "__main__":
    Stage().app().run()
