"""Stage 3, launch: a plan becomes tmux panes and processes; everything that touches the machine is here."""
