#!/bin/sh
# Makes .venv hold this checkout and its developer tools. Quick and offline when that is done already.
# Exit 3: something is missing on this machine, and the message says what.
set -eu
cd "$(dirname "$0")/.."

usable() { "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; }

find_python() {
    for candidate in ${PYTHON3:-} python3 python3.14 python3.13 python3.12 python3.11; do
        if usable "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    echo "nbs-fleet needs Python 3.11 or newer; 'python3' here is: $(python3 --version 2>&1 || true)" >&2
    echo "Install one, or name it: make PYTHON3=/path/to/python3.12 ..." >&2
    exit 3
}

# The stamp names what the environment was built from: another pyproject, or a moved checkout, builds it again.
wanted="$(cksum <pyproject.toml) $(pwd)"
stamp=.venv/stamp
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ] && usable .venv/bin/python; then
    exit 0
fi

python="$(find_python)"
# Two of these at once would build into each other's environment.
if command -v flock >/dev/null 2>&1 && [ -z "${NBS_FLEET_SETUP:-}" ]; then
    NBS_FLEET_SETUP=1 exec flock . sh .ci/setup.sh
fi
rm -f "$stamp"
if ! usable .venv/bin/python || ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    echo "creating .venv with $("$python" --version)"
    rm -rf .venv
    if ! "$python" -m venv .venv >.venv-failed.txt 2>&1; then
        cat .venv-failed.txt >&2
        rm -rf .venv .venv-failed.txt
        if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
            echo "installing python3-venv"
            apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
            "$python" -m venv .venv
        else
            echo "Python's venv module does not work here (Debian and Ubuntu: apt-get install python3-venv)" >&2
            exit 3
        fi
    fi
    rm -f .venv-failed.txt
fi
echo "installing nbs-fleet and its developer tools into .venv"
.venv/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
echo "$wanted" >"$stamp"
