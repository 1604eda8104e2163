#!/bin/sh
# Older versions of the SDK, each in a folder of the virtual environment that nothing else looks into, by the hashes of
# requirements-older-sdks.txt. They run on the packages of the newest one. Where they cannot be had, their test is
# skipped; tests/stores/test_older_sdks.py.
set -eu
cd "$(dirname "$0")/.."
folder=.venv/older-sdks
stamp=$folder/.complete
wanted=$(cksum <requirements-older-sdks.txt)
[ "$(cat $stamp 2>/dev/null)" != "$wanted" ] || exit 0

echo "Installing older versions of the SDK ..."
rm -rf $folder
mkdir $folder
# A lock file can name a package once.
for version in $(sed -n 's/^openai-agents==\([0-9.]*\).*/\1/p' requirements-older-sdks.txt); do
    sed -n "/^openai-agents==$version /,/[^\\\\]$/p" requirements-older-sdks.txt >$folder/$version.txt
    .venv/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes --no-deps \
        --only-binary :all: --target "$folder/$version" --requirement $folder/$version.txt || {
        echo "************************************************************************" >&2
        echo "Not to be had: version $version of the SDK." >&2
        echo "WHAT OLDER VERSIONS OF THE SDK WRITE WILL NOT BE TRIED." >&2
        echo "************************************************************************" >&2
        exit 0
    }
done
echo "$wanted" >$stamp
