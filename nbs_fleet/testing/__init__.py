"""Scripted tests of a team: what a test file says, and whether it can be meant."""
