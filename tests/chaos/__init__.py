"""Chaos on real processes: teams of simulated clients under faults of every kind, from a seed, and what must hold after."""
