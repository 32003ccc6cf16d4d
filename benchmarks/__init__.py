"""Measurements of the goals, each beside what it is compared with."""
