#!/bin/sh
# The SDK's own tests, from the source distribution of the version that is installed, and the plugins of pytest that they
# need, in a folder of the virtual environment that nothing else looks into. Both by the hashes of the lock files.
# Where they cannot be had, their test is skipped; tests/client/test_sdk_sessions.py.
set -eu
cd "$(dirname "$0")/.."
version=$(.venv/bin/python -c 'import importlib.metadata; print(importlib.metadata.version("openai-agents"))')
folder=.venv/sdk-tests
stamp=$folder/.complete
wanted="$version $(cksum <requirements-sdk-tests.txt)"
[ "$(cat $stamp 2>/dev/null)" != "$wanted" ] || exit 0

echo "Installing the tests of the SDK $version ..."
rm -rf $folder
mkdir $folder
lock=$folder/openai-agents.txt
sed -n '/^openai-agents[=[]/,/[^\\]$/p' requirements.txt >$lock
pip=".venv/bin/python -m pip --quiet --disable-pip-version-check"
# Built with what is installed: its metadata are looked at, and nothing of it is run.
{
    $pip download --require-hashes --no-deps --no-binary :all: --no-build-isolation --dest $folder --requirement $lock &&
        mkdir $folder/source &&
        tar xzf $folder/openai_agents-"$version".tar.gz --strip-components 1 -C $folder/source &&
        $pip install --require-hashes --no-deps --only-binary :all: --target $folder/plugins \
            --requirement requirements-sdk-tests.txt &&
        echo "$wanted" >$stamp
} || {
    echo "************************************************************************" >&2
    echo "Not to be had: the SDK's source distribution, or plugins of its tests." >&2
    echo "ITS TESTS OF SESSIONS WILL BE SKIPPED." >&2
    echo "************************************************************************" >&2
}
