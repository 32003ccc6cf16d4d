"""Launcher for teams of coding agents: a team.yaml becomes a running, supervised team in tmux.

The folders are the stages, in the order in which a team file passes through them:
`spec` (file -> Team), `drivers` (what each client looks like), `plan` (Team + what runs -> Plan),
`launch` (Plan -> tmux and processes), `sidecar` (observe, decide, act), `supervisor` (hosts and restarts),
`attention` (who needs a person), `cli` (the commands).

Reading order for a newcomer: `teams/demo.yaml`, `spec/schema.py`, `plan/build.py`, `launch/apply.py`,
`sidecar/decide.py`, `loop.py`, `drivers/claude.py`.
"""

__version__ = "0.1.0"
