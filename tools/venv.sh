#!/bin/sh
# tools/venv.sh LOCKFILE: .venv holds what the lock file names. Quick when it already does; mends one that is half made.
set -eu
cd "$(dirname "$0")/.."
lock=$1
stamp=.venv/.$lock
[ -x .venv/bin/python ] && cmp -s "$lock" "$stamp" && exit 0

if ! .venv/bin/python -m pip --version >/dev/null 2>&1; then
    for python in "${PYTHON3:-python3}" python3.13 python3.12 python3.11; do
        "$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break
        python=
    done
    if [ -z "$python" ]; then
        echo "memadmin needs Python 3.11 or newer with its venv module (Debian: apt install python3-venv)." >&2
        exit 1
    fi
    "$python" -m venv --clear .venv
fi
echo "Installing what $lock names into .venv ..."
# One line for each package, since this takes minutes; by the shell, because some programs read a pipe in large blocks.
# A pipe ends with the status of its last program, so pip's is kept.
failed=.venv/.failed
# Without what is for other systems.
total=$(.venv/bin/python -c '
import re, sys
from pip._vendor.packaging.requirements import Requirement
named = map(Requirement, re.findall(r"^\w[^\\\n]*==[^\\\n]*", open(sys.argv[1]).read(), re.M))
print(sum(not each.marker or each.marker.evaluate() for each in named))' "$lock")
begun=$(date +%s)
rm -f "$failed"
{
    .venv/bin/python -m pip install --progress-bar off --disable-pip-version-check --require-hashes \
        --requirement "$lock" || touch "$failed"
} | {
    count=0
    while read -r verb name _; do
        case $verb in
        Collecting | Processing)
            count=$((count + 1))
            echo "  $count of $total: ${name##*/}"
            ;;
        Installing) echo "  unpacking $count packages ..." ;;
        esac
    done
}
[ ! -e "$failed" ] || exit 1
cp "$lock" "$stamp"
echo "Installed in $(($(date +%s) - begun)) seconds."
