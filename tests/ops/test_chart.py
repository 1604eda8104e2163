"""The Helm chart: linted and rendered by helm, valid by Kubernetes' schemas, compared with compose.yaml and the code.

No cluster has run it; docs/install.md says so.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml
from django.conf import settings

from memadmin import __version__
from memadmin.web.request_ids import PROBE_PATHS
from memadmin.web.serving import STOP_WITHIN
from tests.ops.test_installation_files import KNOWN, check_command, compose, container_file

pytestmark = pytest.mark.release

ROOT = Path(settings.CHECKOUT_DIR)
CHART = ROOT / "docs/kubernetes/memadmin"
TOOLS = Path(sys.prefix) / "chart-tests"
HELM = shutil.which("helm") or str(TOOLS / "helm")

HOST = "host=memadmin.example.org"
VARIANTS = {
    "as it comes": [HOST],
    "everything": [
        *(HOST, "ingress.enabled=true", "ingress.className=nginx", "ingress.tlsSecret=memadmin-tls"),
        *("image.pullSecrets[0].name=registry", "settings.MEMADMIN_DIGEST_HOUR=7", "anchors.storageClassName=nfs"),
    ],
    "volumes that exist": [HOST, "anchors.existingClaim=kept", "copies.existingClaim=kept"],
}
OLDEST, NEWEST = "1.25", "1.37"

Manifest = dict[str, Any]


def without_helm() -> NoReturn:
    pytest.skip("NO HELM, or no schemas of Kubernetes: the chart was not tried. tools/install-helm.sh brings both.")


def helm(*arguments: str, of: tuple[str, ...] = (HOST,)) -> subprocess.CompletedProcess[str]:
    if not os.access(HELM, os.X_OK):
        without_helm()
    given = [part for each in of for part in ("--set", each)]
    return subprocess.run([HELM, *arguments, *given], capture_output=True, text=True, check=False)


@cache
def rendered(*values: str) -> str:
    done = helm("template", "memadmin", str(CHART), of=values)
    assert done.returncode == 0, done.stderr
    return done.stdout


def manifests(*values: str) -> dict[tuple[str, str], Manifest]:
    """By kind and name."""
    documents: list[Manifest] = [each for each in yaml.safe_load_all(rendered(*(values or (HOST,)))) if each]
    found = {(each["kind"], each["metadata"]["name"]): each for each in documents}
    assert len(found) == len(documents)
    return found


def pods(*values: str) -> dict[str, Manifest]:
    """Specifications of pods by component: migrate, setup, web, worker."""
    return {
        name.removeprefix("memadmin-"): manifest["spec"]["template"]["spec"]
        for (kind, name), manifest in manifests(*values).items()
        if kind in ("Deployment", "Job")
    }


def containers(pod: Manifest) -> list[Manifest]:
    return [*pod.get("initContainers", []), *pod["containers"]]


def variables(container: Manifest) -> dict[str, str | None]:
    """With their values; None for one that comes out of a Secret."""
    return {each["name"]: each.get("value") for each in container["env"]}


@pytest.mark.parametrize("variant", VARIANTS)
def test_helm_finds_no_fault_in_it(variant: str) -> None:
    done = helm("lint", "--strict", str(CHART), of=tuple(VARIANTS[variant]))
    assert done.returncode == 0, done.stdout
    assert "[WARNING]" not in done.stdout + done.stderr
    assert "missing required" not in done.stderr


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("variant", VARIANTS)
def test_what_it_renders_is_valid(variant: str, version: str) -> None:
    text, count = rendered(*VARIANTS[variant]), len(manifests(*VARIANTS[variant]))
    packages = TOOLS / "packages"
    if not packages.exists():
        without_helm()
    done = subprocess.run(
        [sys.executable, str(packages / "bin/kubernetes-validate"), "--strict", "-k", version, "-"],
        input=text,
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = done.stdout.splitlines()
    # A kind without a schema would be a warning.
    assert len(lines) == count >= 7
    assert all(" passed for resource " in line and line.endswith(f"version {version}") for line in lines)


def test_it_is_of_this_version() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    assert chart["appVersion"] == __version__
    images = {each["image"] for pod in pods().values() for each in containers(pod)}
    assert images == {f"memadmin:{__version__}"}


def test_its_processes_are_those_of_the_compose_file() -> None:
    services, found = compose()["services"], pods()
    assert set(found) == {*services, "migrate"} - {"database"}
    for name in ("setup", "web", "worker"):
        [container] = found[name]["containers"]
        ours = variables(container)
        theirs = dict(services[name]["environment"])
        assert set(theirs) <= set(ours), f"{name} has other variables in the compose file"
        for variable, value in theirs.items():
            # What compose takes out of .env is in a Secret here.
            assert ours[variable] == (None if "${" in value else value), variable
        assert {variable for variable, value in ours.items() if value is None} == {
            variable for variable, value in theirs.items() if "${" in value
        }
        folders = {volume.split(":")[1] for volume in services[name]["volumes"]}
        assert folders <= {mount["mountPath"] for mount in container["volumeMounts"]}
    for name in ("web", "worker"):
        longest = int(services[name]["stop_grace_period"].removesuffix("s"))
        assert found[name]["terminationGracePeriodSeconds"] >= longest
    assert found["web"]["containers"][0]["args"][0] == json.loads(dict(container_file())["CMD"])[0]
    assert found["worker"]["containers"][0]["args"] == services["worker"]["command"]


def test_its_commands_and_settings_exist() -> None:
    for name, pod in pods(*VARIANTS["everything"]).items():
        for container in containers(pod):
            if name == "setup":
                assert container["command"] == ["sleep", "infinity"]
            else:
                assert "command" not in container  # the image's entry point
                check_command(container["args"])
            assert set(variables(container)) <= KNOWN
    migrate = pods()["migrate"]
    assert [each["args"] for each in containers(migrate)] == [["migrate"], ["db_roles", "--apply"]]


def test_migrations_come_before_each_installation_and_upgrade() -> None:
    job = manifests()["Job", "memadmin-migrate"]
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "pre-install,pre-upgrade"
    # Nothing but Secrets exists then.
    assert {next(key for key in volume if key != "name") for volume in pods()["migrate"]["volumes"]} == {"emptyDir"}


def test_no_pod_can_do_more_than_it_has_to() -> None:
    user = int(dict(container_file())["USER"].split(":")[0])
    for pod in pods().values():
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == pod["securityContext"]["fsGroup"] == user
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert pod["automountServiceAccountToken"] is False
        # A Service named memadmin-web would give the variable MEMADMIN_WEB_PORT, which is no setting.
        assert pod["enableServiceLinks"] is False
        volumes = {volume["name"] for volume in pod["volumes"]}
        for container in containers(pod):
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
            assert container["resources"]["limits"]["memory"]
            assert container["resources"]["requests"].keys() == {"cpu", "memory"}
            assert {mount["name"] for mount in container["volumeMounts"]} == volumes
            assert {"/tmp", "/var/lib/memadmin"} <= {mount["mountPath"] for mount in container["volumeMounts"]}


def test_web_servers_read_the_ledger_and_only_workers_have_the_signing_key_and_write_the_anchor() -> None:
    found = pods()
    [web], [worker] = found["web"]["containers"], found["worker"]["containers"]
    of_anchors = {mount["name"]: mount.get("readOnly", False) for mount in web["volumeMounts"]}
    assert of_anchors["anchors"] is True
    assert [name for name, pod in found.items() if "MEMADMIN_SIGNING_KEY" in variables(containers(pod)[0])] == [
        "worker"
    ]
    assert "MEMADMIN_ANCHOR_PATH" not in variables(web)
    for name in ("MEMADMIN_ANCHOR_PATH", "MEMADMIN_SUPPRESSION_LEDGER"):
        folder = str(Path(variables(worker)[name] or "").parent)
        assert folder in {mount["mountPath"] for mount in worker["volumeMounts"]}
    assert {kind for kind, _ in manifests() if kind == "PersistentVolumeClaim"}
    for (kind, _), manifest in manifests().items():
        if kind == "PersistentVolumeClaim":
            assert manifest["metadata"]["annotations"] == {"helm.sh/resource-policy": "keep"}


def test_probes_ask_the_health_pages_and_a_stop_leaves_time_for_requests() -> None:
    pod = pods()["web"]
    [web] = pod["containers"]
    probes = {name: web[name]["httpGet"]["path"] for name in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert probes == {"startupProbe": "/healthz", "livenessProbe": "/healthz", "readinessProbe": "/readyz"}
    assert set(probes.values()) == set(PROBE_PATHS)
    port = str(web["ports"][0]["containerPort"])
    assert web["args"][web["args"].index("--port") + 1] == port == dict(container_file())["EXPOSE"]
    (program, seconds) = web["lifecycle"]["preStop"]["exec"]["command"]
    assert program == "sleep"
    assert pod["terminationGracePeriodSeconds"] > int(seconds) + STOP_WITHIN.total_seconds()


def test_selectors_find_their_pods() -> None:
    found = manifests(*VARIANTS["everything"])
    labels = {
        name: manifest["spec"]["template"]["metadata"]["labels"]
        for (kind, name), manifest in found.items()
        if kind in ("Deployment", "Job")
    }
    for (kind, name), manifest in found.items():
        if kind in ("Deployment", "PodDisruptionBudget", "Service"):
            given = manifest["spec"]["selector"]
            selector = given if kind == "Service" else given["matchLabels"]
            assert [each for each, own in labels.items() if selector.items() <= own.items()] == [name]
    assert {name for kind, name in found if kind == "PodDisruptionBudget"} == {"memadmin-web", "memadmin-worker"}
    [rule] = found["Ingress", "memadmin-web"]["spec"]["rules"]
    [path] = rule["http"]["paths"]
    service = found["Service", path["backend"]["service"]["name"]]
    assert path["backend"]["service"]["port"]["name"] in {port["name"] for port in service["spec"]["ports"]}
    assert rule["host"] == variables(pods()["web"]["containers"][0])["MEMADMIN_ALLOWED_HOSTS"]


def test_a_secret_among_the_settings_and_a_missing_host_are_refused() -> None:
    for kind in ("Secret", "ConfigMap"):
        assert not [name for each, name in manifests(*VARIANTS["everything"]) if each == kind]
    secrets = ("DATABASE_URL", "MEMADMIN_SECRET_KEY", "MEMADMIN_OLD_SECRET_KEYS", "MEMADMIN_SIGNING_KEY")
    others = ("MEMADMIN_SESSION_KEY_MAIN", "MEMADMIN_OIDC_CLIENT_SECRET", "MEMADMIN_ANCHOR_TOKEN", "MEMADMIN_MAIL_URL")
    for name in (*secrets, *others):
        done = helm("template", "memadmin", str(CHART), of=(HOST, f"settings.{name}=text"))
        assert done.returncode != 0
        assert f"{name} may contain a secret" in done.stderr
    done = helm("template", "memadmin", str(CHART), of=())
    assert "Set host" in done.stderr
