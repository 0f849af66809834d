"""The files under ``deploy/`` as the programs read them that use them: Helm, Compose and linters."""

import subprocess
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
from ruamel.yaml import YAML
from tests.support.commands import ROOT
from tests.support.deployed_config import problems
from tests.support.doc_blocks import write_files

pytestmark = pytest.mark.long

TOOLS: Final = ROOT / "build" / "tools"
CHART: Final = ROOT / "deploy" / "helm" / "thoughtgate"
VALUES: Final = sorted((CHART / "ci").iterdir())
GUIDE: Final = ROOT / "docs" / "guides" / "kubernetes.md"
OLDEST, NEWEST = "1.27", "1.34"
"""Versions of Kubernetes that the chart must fit; the oldest is the one in Chart.yaml."""

CLUSTER: Final = CHART / "ci" / "cluster-values.yaml"
SINGLE: Final = CHART / "ci" / "single-values.yaml"


def _tool(name: str, *arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    program = TOOLS / name
    if not program.exists():
        pytest.skip(f"{program.name} is not in build/tools: run `make deploy-tools`")
    return subprocess.run(
        [str(program), *arguments],
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def _template(*values: Path, version: str = NEWEST, also: tuple[str, ...] = ()) -> str:
    """Return the chart rendered with these values."""
    files = [argument for file in values for argument in ("--values", str(file))]
    arguments = ["template", "gate", str(CHART), "--kube-version", version, *files, *also]
    done = _tool("helm", *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


@cache
def _rendered(*values: Path, also: tuple[str, ...] = ()) -> dict[tuple[str, str], Any]:
    """Return the objects of the rendered chart by kind and name."""
    documents = [one for one in YAML(typ="safe").load_all(_template(*values, also=also)) if one]
    return {(one["kind"], one["metadata"]["name"]): one for one in documents}


def _refusal(values: Path, *settings: str) -> str:
    """Return why Helm does not render the chart."""
    also = [argument for setting in settings for argument in ("--set", setting)]
    arguments = ["--kube-version", NEWEST, "--values", str(values), *also]
    done = _tool("helm", "template", "gate", str(CHART), *arguments)
    assert done.returncode != 0
    return done.stderr


def _pod(*values: Path) -> Any:
    return _rendered(*values)["StatefulSet", "gate-thoughtgate"]["spec"]["template"]["spec"]


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_helm_finds_no_fault_in_the_chart(values: Path) -> None:
    done = _tool("helm", "lint", "--strict", str(CHART), "--values", str(values))

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("version", [OLDEST, NEWEST])
@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_the_objects_fit_the_schemas_of_kubernetes(
    values: Path, version: str, tmp_path: Path
) -> None:
    if values == CLUSTER and version == OLDEST:
        # The pause before SIGTERM is an action that Kubernetes has since 1.30.
        also: tuple[str, ...] = ("--set", "shutdown.preStopSeconds=0")
    else:
        also = ()
    file = tmp_path / "rendered.yaml"
    file.write_text(_template(values, version=version, also=also), "utf-8")

    done = _tool("venv/bin/kubernetes-validate", "--strict", "-k", version, str(file))

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("version", ["1.29", NEWEST])
def test_the_sidecar_fits_the_schemas_of_kubernetes(version: str) -> None:
    file = ROOT / "deploy" / "kubernetes" / "sidecar.yaml"

    done = _tool("venv/bin/kubernetes-validate", "--strict", "-k", version, str(file))

    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_the_config_in_the_chart_is_valid(values: Path, tmp_path: Path) -> None:
    data = _rendered(values)["ConfigMap", "gate-thoughtgate"]["data"]
    for name, text in data.items():
        (tmp_path / name).write_text(text, "utf-8")

    assert problems(data["gate.yaml"], tmp_path) == []


def test_the_values_of_the_guide_render_a_valid_config(tmp_path: Path) -> None:
    write_files(GUIDE, tmp_path)
    single, cluster = tmp_path / "values.yaml", tmp_path / "cluster-values.yaml"
    operations, console = tmp_path / "operations-values.yaml", tmp_path / "console-values.yaml"

    for values in ((single,), (cluster,), (cluster, operations), (cluster, operations, console)):
        data = _rendered(*values)["ConfigMap", "gate-thoughtgate"]["data"]
        assert problems(data["gate.yaml"], tmp_path) == []


def test_kubernetes_waits_until_the_gate_has_stopped() -> None:
    pod = _pod(CLUSTER)
    listen = YAML(typ="safe").load(
        _rendered(CLUSTER)["ConfigMap", "gate-thoughtgate"]["data"]["gate.yaml"]
    )["listen"]
    pause = pod["containers"][0]["lifecycle"]["preStop"]["sleep"]["seconds"]

    assert (listen["lame_duck"], listen["drain"], pause) == ("10s", "60s", 5)
    assert pod["terminationGracePeriodSeconds"] == 10 + 60 + 5 + 10


@pytest.mark.parametrize("values", VALUES, ids=lambda path: path.stem)
def test_the_pod_is_restricted(values: Path) -> None:
    pod = _pod(values)
    (gate,) = pod["containers"]

    # The profile "restricted" of the Pod Security Standards, and a read-only root.
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert gate["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert pod["automountServiceAccountToken"] is False
    mounts = {mount["mountPath"]: mount.get("readOnly", False) for mount in gate["volumeMounts"]}
    writable = {path for path, is_read_only in mounts.items() if not is_read_only}
    assert writable == {"/tmp", "/var/lib/thoughtgate"}


def test_a_changed_config_starts_new_pods() -> None:
    def annotations(*also: str) -> Any:
        found = _rendered(SINGLE, also=also)["StatefulSet", "gate-thoughtgate"]
        return found["spec"]["template"]["metadata"]["annotations"]

    assert annotations() == annotations()
    assert annotations() != annotations("--set", "config.default=approve")


def test_secrets_are_named_and_not_copied() -> None:
    objects = _rendered(CLUSTER)
    env = {one["name"]: one for one in _pod(CLUSTER)["containers"][0]["env"]}

    assert not [kind for kind, _ in objects if kind == "Secret"]
    assert env["PGPASSWORD"]["valueFrom"]["secretKeyRef"]["name"] == "thoughtgate-database"
    (keys,) = [one for one in _pod(CLUSTER)["volumes"] if one["name"] == "session-keys"]
    assert keys["secret"]["defaultMode"] == 0o440


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ("database.sslMode=verify-full", "/etc/thoughtgate/database-ca/ca.crt"),
        ("database.caSecret.name=", "system"),
        # libpq refuses the CAs of the system together with a mode that does not check names.
        ("database.caSecret.name=,database.sslMode=require", None),
    ],
)
def test_the_certificate_of_the_database_is_checked(settings: str, expected: str | None) -> None:
    found = _rendered(CLUSTER, also=("--set", settings))["StatefulSet", "gate-thoughtgate"]
    (gate,) = found["spec"]["template"]["spec"]["containers"]
    env = {one["name"]: one.get("value") for one in gate["env"]}

    assert env.get("PGSSLROOTCERT") == expected


def test_a_database_url_can_come_from_a_secret() -> None:
    also = ("--set", "database.url=,database.urlKey=uri")
    objects = _rendered(CLUSTER, also=also)
    config = objects["ConfigMap", "gate-thoughtgate"]["data"]["gate.yaml"]
    gate = objects["StatefulSet", "gate-thoughtgate"]["spec"]["template"]["spec"]["containers"][0]

    assert "store: ${DATABASE_URL}" in config
    assert "DATABASE_URL" in {one["name"] for one in gate["env"]}


def test_a_network_policy_without_peers_admits_nobody() -> None:
    lists = ("agents", "monitoring", "console")
    also = tuple(part for one in lists for part in ("--set-json", f"networkPolicy.{one}=[]"))
    policy = _rendered(CLUSTER, also=also)["NetworkPolicy", "gate-thoughtgate"]["spec"]

    assert policy["ingress"] == []
    assert "Ingress" in policy["policyTypes"]


def test_the_console_has_a_port_for_its_proxy_only_if_it_is_wanted() -> None:
    found = _rendered(CLUSTER)
    ports = _pod(CLUSTER)["containers"][0]["ports"]
    assert {"name": "console", "containerPort": 8081} in ports
    service = found["Service", "gate-thoughtgate-console"]["spec"]
    assert service["ports"] == [{"name": "console", "port": 80, "targetPort": "console"}]
    rules = found["NetworkPolicy", "gate-thoughtgate"]["spec"]["ingress"]
    (rule,) = [one for one in rules if one["ports"][0]["port"] == "console"]
    assert rule["from"] == [
        {"podSelector": {"matchLabels": {"app.kubernetes.io/name": "oauth2-proxy"}}}
    ]
    assert ("Service", "gate-thoughtgate-console") not in _rendered(SINGLE)
    assert "console" not in {one["name"] for one in _pod(SINGLE)["containers"][0]["ports"]}


def test_without_its_proxy_the_console_admits_nobody() -> None:
    also = ("--set-json", "networkPolicy.console=[]")
    rules = _rendered(CLUSTER, also=also)["NetworkPolicy", "gate-thoughtgate"]["spec"]["ingress"]
    assert "console" not in {one["ports"][0]["port"] for one in rules}


def test_everything_that_can_be_switched_on_is_off_by_default() -> None:
    switched = {"HorizontalPodAutoscaler", "NetworkPolicy", "ServiceMonitor"}

    assert not switched & {kind for kind, _ in _rendered(SINGLE)}
    assert switched <= {kind for kind, _ in _rendered(CLUSTER)}


@pytest.mark.parametrize(
    ("setting", "reason"),
    [
        ("replicaCount=2", "several replicas need a shared store"),
        ("autoscaling.enabled=true", "several replicas need a shared store"),
        ("config.listen.auth=null", "config.listen.auth is missing"),
        ("database.url=postgresql://gate@db/x", "need the same session keys"),
        ("database.url=postgresql://gate:secret@db/x", "/database/url"),
        ("database.urlKey=uri", "sessionKeys.existingSecret"),
        ("config.listen.port=9", "/config/listen"),
        ("config.store=sqlite", "/config"),
        ("console.enabled=true", "config.console.sign_in is missing"),
        ("replicas=2", "replicas"),
    ],
)
def test_values_that_cannot_work_are_refused(setting: str, reason: str) -> None:
    assert reason in _refusal(SINGLE, setting)


def test_compose_reads_the_compose_file(tmp_path: Path) -> None:
    folder = tmp_path / "deploy"
    folder.mkdir()
    source = ROOT / "deploy" / "compose.yaml"
    (folder / source.name).write_text(source.read_text("utf-8"), "utf-8")
    for name in ("gate.env", "database.env"):
        (folder / name).touch()

    done = _tool("cmd", "compose.yaml", cwd=folder)

    assert done.returncode == 0, done.stderr
    services = YAML(typ="safe").load(done.stdout)["services"]
    assert set(services) == {"gate-1", "gate-2", "balancer", "database"}


def test_hadolint_finds_no_fault_in_the_image() -> None:
    file = ROOT / "deploy" / "Dockerfile"

    done = _tool("venv/bin/hadolint", "--failure-threshold", "info", str(file))

    assert done.returncode == 0, done.stdout
