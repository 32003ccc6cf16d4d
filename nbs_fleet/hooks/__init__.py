"""What a client's hooks run: a shell front and a small program, both copied into each run directory."""
