#!/bin/sh
# Sees to it that tmux is there. Exit 3: it is not, and can't be installed from here.
set -eu
command -v tmux >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing tmux"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends tmux >/dev/null
    command -v tmux >/dev/null 2>&1 && exit 0
fi
echo "tmux is missing. Install it with your system's package manager (apt, dnf, pacman, brew: package 'tmux')." >&2
exit 3
