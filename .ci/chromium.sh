#!/bin/sh
# Sees to it that a Chromium is there, for the test of the dashboard in a browser. Exit 3: it can't be installed from here.
set -eu
command -v chromium >/dev/null 2>&1 && exit 0
command -v chromium-browser >/dev/null 2>&1 && exit 0
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    echo "installing chromium"
    apt-get update -qq
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium >/dev/null
    command -v chromium >/dev/null 2>&1 && exit 0
fi
echo "chromium is missing. Install it with your system's package manager (package 'chromium')." >&2
exit 3
