#!/bin/sh
# Makes or completes a virtual environment: tools/venv.sh FOLDER user|dev [PYTHON]
#   user: anarchon with the extras cli and embedded, as somebody who tries it would install it
#   dev:  that, and everything pinned in requirements/dev.txt
# Says plainly what the machine lacks. The source tree is installed in editable form.
set -eu

folder=$1
kind=$2
wanted=${3:-}
advice="name another one: make PYTHON=/path/to/python3.12 ..."

fail() {
    printf '%s\n' "$@" >&2
    exit 1
}

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

find_python() {
    for candidate in ${wanted:-python3 python3.13 python3.12 python3.11 python3.14}; do
        if new_enough "$candidate"; then
            echo "$candidate"
            return
        fi
    done
}

make_folder() {
    python=$(find_python)
    if [ -z "$python" ]; then
        tried=${wanted:-python3}
        found=$("$tried" --version 2>&1) || found="$tried, which does not run here"
        fail "anarchon needs Python 3.11 or newer, but found: $found" \
            "Install a newer one (Debian, Ubuntu: apt-get install python3 python3-venv), or" "$advice"
    fi
    # Debian and Ubuntu keep the part of venv that brings pip in a package of its own.
    if ! "$python" -c 'import ensurepip, venv' 2>/dev/null; then
        version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
        fail "$python lacks the venv module. On Debian and Ubuntu it is a package:" \
            "    sudo apt-get install python$version-venv" "Or $advice"
    fi
    echo "making $folder with $("$python" --version)"
    "$python" -m venv --clear "$folder"
}

install() {
    log=$folder/pip.log
    if ! "$folder/bin/python" -m pip install --disable-pip-version-check --progress-bar off "$@" \
        >"$log" 2>&1; then
        grep '^ERROR' "$log" >&2 || tail -n 5 "$log" >&2
        fail "pip could not install what is needed; is the package index reachable?" \
            "The whole log: $log"
    fi
}

# A folder whose Python is gone (an upgrade, a move) is made anew.
if ! "$folder/bin/python" -c '' 2>/dev/null; then
    make_folder
fi

case $kind in
user)
    echo "installing anarchon and its extras into $folder"
    install -c requirements/dev.txt -e '.[cli,embedded]'
    ;;
dev)
    echo "installing what requirements/dev.txt names into $folder"
    install -r requirements/dev.txt
    # The build backend is among what was just installed: no second download for isolation.
    install --no-build-isolation --no-deps -e .
    ;;
*)
    fail "unknown kind: $kind"
    ;;
esac
touch "$folder/.$kind"
