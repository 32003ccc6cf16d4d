"""A scripted client that stands in for Claude Code 2.1.197: scenarios in, its screens, hooks and files out."""

from __future__ import annotations


def main(argv: list[str]) -> int:
    """Run the simulator with these arguments (without a program name); returns the exit code of the client."""
    from nbs_fleet.sim import startup  # noqa: PLC0415 - importing the package costs nothing

    return startup.main(argv)
