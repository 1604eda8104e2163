#!/bin/sh
# The SDK's own tests of sessions, with every session governed: those of its source distribution, in the version that
# is installed here. Needs the package index; what it installs and unpacks goes to a folder that it removes.
# Usage: tools/sdk-session-tests.sh [options and files of pytest]
set -eu
cd "$(dirname "$0")/.."
here=$PWD
python=$here/.venv/bin/python
version=$("$python" -c 'import importlib.metadata as m; print(m.version("openai-agents"))')
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

"$python" -m venv "$folder/venv"
"$folder/venv/bin/pip" install -q pytest-asyncio pytest-mock inline-snapshot fakeredis
"$folder/venv/bin/pip" download -q --no-deps --no-binary :all: --dest "$folder" "openai-agents==$version"
tar xzf "$folder"/openai_agents-*.tar.gz -C "$folder"
"$python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
    >"$(echo "$folder"/venv/lib/python3.*/site-packages)/installed-here.pth"

cd "$folder/openai_agents-$version"
[ $# -gt 0 ] || set -- -q tests/memory tests/extensions/memory
PYTHONPATH=$here/tools:$here "$folder/venv/bin/python" -m pytest -p governing -p no:django -p no:playwright "$@"
