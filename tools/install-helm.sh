#!/bin/sh
# helm and the schemas of Kubernetes, for the test of the chart, in a folder of the virtual environment that nothing else
# looks into. Both by the hashes of a lock file. helm comes out of a package that carries it to another cloud's build
# system; a machine that has helm uses its own. Where they cannot be had, the tests of the chart are skipped.
set -eu
cd "$(dirname "$0")/.."
folder=.venv/chart-tests
stamp=$folder/.complete
wanted=$(cksum <requirements-chart-tests.txt)
[ "$(cat $stamp 2>/dev/null)" != "$wanted" ] || exit 0

echo "Installing helm and the schemas of Kubernetes ..."
rm -rf $folder
mkdir $folder
{
    .venv/bin/python -m pip --quiet --disable-pip-version-check install --require-hashes --no-deps --only-binary :all: \
        --no-compile --target $folder/packages --requirement requirements-chart-tests.txt &&
        .venv/bin/python - $folder <<'END' && rm -r $folder/packages/aws_cdk && echo "$wanted" >$stamp
import io, sys, tarfile, zipfile
from pathlib import Path

folder = Path(sys.argv[1])
(archive,) = folder.glob("packages/aws_cdk/*/_jsii/*.tgz")
with tarfile.open(archive) as package:
    layer = zipfile.ZipFile(io.BytesIO(package.extractfile("package/lib/layer.zip").read()))
helm = folder / "helm"
helm.write_bytes(layer.read("helm/helm"))
helm.chmod(0o755)
END
} || {
    echo "************************************************************************" >&2
    echo "Not to be had: helm, or the schemas of Kubernetes." >&2
    echo "THE TESTS OF THE CHART WILL BE SKIPPED." >&2
    echo "************************************************************************" >&2
}
