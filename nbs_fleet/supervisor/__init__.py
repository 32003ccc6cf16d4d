"""The one process per team: owns the panes, hosts the sidecars, restarts agents, answers commands."""
