"""The deployment files agree with the code: settings, names, versions, ports, times."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
import tomllib
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import typer
import yaml
from packaging.requirements import Requirement
from temporalio import activity, workflow
from temporalio.api.enums.v1 import IndexedValueType
from temporalio.api.operatorservice.v1 import ListSearchAttributesRequest
from temporalio.api.workflowservice.v1 import DescribeNamespaceRequest
from temporalio.client import Client
from temporalio.worker import Worker

from engram import __version__
from engram.cli.app import whole
from engram.contracts import names
from engram.contracts.names import SEARCH_ATTRIBUTES
from engram.embedded.program import CONFIGURED
from engram.operations.turns import _CLOSING_PATIENCE
from engram.server.middleware import OPEN_PATHS
from engram.server.run import _GRACE_SECONDS
from engram.settings import Settings
from engram.storage.server import OLDEST_SERVER
from engram.workflows.session import _LOCAL_LIMIT
from engram.workflows.support import LOCAL_STORE
from engram.workflows.worker import _GRACE

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
YAML_FILES = sorted([*DEPLOY.glob("*.yaml"), *DEPLOY.glob("kubernetes/*.yaml")])
IMAGE_WITH_TAG = re.compile(r"[a-z0-9./-]+:(?P<tag>v?\d[A-Za-z0-9._-]*)")
QUEUES_OF_A_WORKER = 3  # With a Nexus endpoint.


def read(name: str) -> str:
    """A file of deploy/."""
    return (DEPLOY / name).read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    """The compose file."""
    parsed: dict[str, Any] = yaml.safe_load(read("compose.yaml"))
    return parsed


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The compose file's services."""
    found: dict[str, dict[str, Any]] = compose["services"]
    return found


@pytest.fixture(scope="module")
def deployment() -> dict[str, Any]:
    """The Kubernetes Deployment of the worker."""
    parsed: dict[str, Any] = yaml.safe_load(read("kubernetes/worker.yaml"))
    return parsed


@pytest.fixture(scope="module")
def api() -> dict[str, Any]:
    """The Kubernetes Deployment and Service of the HTTP API, by kind."""
    return {part["kind"]: part for part in yaml.safe_load_all(read("kubernetes/api.yaml"))}


@pytest.fixture(scope="module")
def extras() -> dict[str, list[str]]:
    """The extras of pyproject.toml."""
    parsed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    found: dict[str, list[str]] = parsed["project"]["optional-dependencies"]
    return found


def assigned_variables() -> set[str]:
    """Every ENGRAM_ variable that a file of deploy/ names."""
    texts = [path.read_text(encoding="utf-8") for path in DEPLOY.rglob("*") if path.is_file()]
    return set(re.findall(r"\bENGRAM_[A-Z0-9_]*[A-Z0-9]\b", "\n".join(texts)))


def test_every_variable_is_a_setting() -> None:
    """Each ENGRAM_ variable of the deployment files is a setting; a typo would go unnoticed."""
    settings = {f"ENGRAM_{name.upper()}" for name in Settings.model_fields}
    assert len(assigned_variables()) > 10
    assert assigned_variables() - settings == {"ENGRAM_TEST_QDRANT", "ENGRAM_TEST_TEMPORAL"}


def test_values_of_the_config_map_are_accepted(monkeypatch: pytest.MonkeyPatch) -> None:
    """A worker with the ConfigMap as its environment starts with these settings."""
    data: dict[str, str] = yaml.safe_load(read("kubernetes/configmap.yaml"))["data"]
    for variable, value in data.items():
        assert isinstance(value, str), f"{variable}: Kubernetes takes strings only"
        monkeypatch.setenv(variable, value)
    settings = Settings.load()
    assert settings.temporal_address == data["ENGRAM_TEMPORAL_ADDRESS"]
    assert settings.temporal_tls is False
    assert settings.log_format == "json"


@pytest.mark.parametrize("path", YAML_FILES, ids=lambda path: path.name)
def test_images_are_pinned(path: Path) -> None:
    """Every image has a version as its tag."""
    images = re.findall(r"^\s*(?:- )?image:\s*(\S+)", path.read_text(encoding="utf-8"), re.M)
    assert [image for image in images if not IMAGE_WITH_TAG.fullmatch(image)] == []


def test_base_images_are_pinned() -> None:
    """The Dockerfile's bases have versions as tags, and the same Python and system."""
    bases = re.findall(r"^FROM (\S+)", read("Dockerfile"), re.M)
    assert len(bases) == 2
    assert all(IMAGE_WITH_TAG.fullmatch(base) for base in bases)
    build, run = bases
    assert "python3.11-trixie-slim" in build
    assert run == "python:3.11-slim-trixie"


def test_worker_image_has_the_version_of_the_package(
    services: dict[str, dict[str, Any]], deployment: dict[str, Any]
) -> None:
    """Compose and Kubernetes run the image of this version."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert services["worker"]["image"] == container["image"] == f"engram-worker:{__version__}"


def test_dockerfile_installs_what_exists(extras: dict[str, list[str]]) -> None:
    """Extras and left-out packages of the Dockerfile are those of pyproject.toml."""
    text = read("Dockerfile")
    assert set(re.findall(r"--extra ([\w-]+)", text)) <= extras.keys()
    embedded = {Requirement(line).name for line in extras["embedded"]}
    left_out = set(re.findall(r"--no-install-package ([\w-]+)", text))
    assert left_out <= embedded
    # The offline embedder, which ENGRAM_EMBEDDER defaults to, is not among them.
    assert "wordllama" in embedded - left_out
    assert Settings.model_fields["embedder"].default == "wordllama"


@pytest.mark.checkout
def test_dockerfile_copies_every_package(extras: dict[str, list[str]]) -> None:
    """What the wheel is built from is copied into the image, and not ignored before."""
    parsed = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    packages = parsed["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    needed = {*packages, parsed["project"]["readme"], *parsed["project"]["license-files"]}
    copied = set(" ".join(re.findall(r"^COPY (?!--)(.+) \S+$", read("Dockerfile"), re.M)).split())
    sent = set(re.findall(r"^!(\S+)$", read("Dockerfile.dockerignore"), re.M))
    assert needed <= copied
    assert copied <= sent
    assert all((ROOT / name).exists() for name in sent)


def test_worker_is_not_root(deployment: dict[str, Any]) -> None:
    """The image names a user by number, and Kubernetes insists on it."""
    assert re.search(r"^USER [1-9]\d*:[1-9]\d*$", read("Dockerfile"), re.M)
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["securityContext"]["runAsNonRoot"] is True


def test_search_attributes_are_those_of_the_code() -> None:
    """The setup script, and the command for Temporal Cloud, register exactly what workflows set."""
    of_the_code = {names.USER_ATTRIBUTE, names.SESSION_ATTRIBUTE, names.STAGE_ATTRIBUTE}
    assert set(SEARCH_ATTRIBUTES) == of_the_code
    listed = re.search(r'^attributes="(.*)"$', read("temporal/namespace.sh"), re.M)
    assert listed is not None
    assert set(listed.group(1).split()) == of_the_code
    on_cloud = set(re.findall(r"--search-attribute (\w+)=Keyword", read("README.md")))
    assert on_cloud == of_the_code


def test_worker_finds_the_others(services: dict[str, dict[str, Any]]) -> None:
    """The worker's addresses are services, at the ports that these have."""
    environment = services["worker"]["environment"]
    host, port = environment["ENGRAM_TEMPORAL_ADDRESS"].split(":")
    assert f"127.0.0.1:{port}:{port}" in services[host]["ports"]
    assert port in services[host]["healthcheck"]["test"]
    url = re.fullmatch(r"http://(\w+):(\d+)", environment["ENGRAM_QDRANT_URL"])
    assert url is not None
    assert f"127.0.0.1:{url[2]}:{url[2]}" in services[url[1]]["ports"]
    for name in ("temporal-namespace", "temporal-ui"):
        assert services[name]["environment"]["TEMPORAL_ADDRESS"] == f"{host}:{port}"


def test_an_erasure_waits_no_longer_here_than_in_the_embedded_mode() -> None:
    """What the server notes late by itself, and deleting histories waits for, it notes each second.

    So is what decides whose turn it is as the embedded mode has it.
    """
    embedded = dict(value.split("=", 1) for value in CONFIGURED[1::2])
    shared = [
        "matching.enableFairness",
        "history.transferProcessorUpdateAckInterval",
        "history.visibilityProcessorUpdateAckInterval",
    ]
    deployed = yaml.safe_load(read("temporal/dynamicconfig.yaml"))
    assert set(deployed) == {"limit.maxIDLength", *shared}
    for key in shared:
        assert deployed[key] == [{"value": yaml.safe_load(embedded[key])}]


def test_defaults_of_a_client_reach_compose(services: dict[str, dict[str, Any]]) -> None:
    """A client on the host that sets nothing but the key finds Temporal, namespace and Qdrant."""
    fields = Settings.model_fields
    published = {
        port.removeprefix("127.0.0.1:") for s in services.values() for port in s.get("ports", ())
    }
    assert {"7233:7233", "6333:6333"} <= published
    assert fields["temporal_address"].default == "localhost:7233"
    assert fields["qdrant_url"].default == "http://localhost:6333"
    made = services["temporal-namespace"]["environment"]["TEMPORAL_NAMESPACE"]
    used = services["worker"]["environment"]["ENGRAM_TEMPORAL_NAMESPACE"]
    assert made == used == fields["temporal_namespace"].default


def test_nothing_is_published_to_the_network(services: dict[str, dict[str, Any]]) -> None:
    """Every published port is bound to the loopback interface."""
    ports = [port for service in services.values() for port in service.get("ports", ())]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_services_and_volumes_that_are_named_exist(compose: dict[str, Any]) -> None:
    """Dependencies, volumes and mounted files of the compose file are there."""
    services = compose["services"]
    for service in services.values():
        assert set(service.get("depends_on", {})) <= services.keys()
        for volume in service.get("volumes", ()):
            source = volume.split(":")[0]
            if source.startswith("."):
                assert (DEPLOY / source).exists()
            else:
                assert source in compose["volumes"]


def test_dependencies_can_become_true(services: dict[str, dict[str, Any]]) -> None:
    """Who is waited for to be healthy has a health check; who is waited for to end may end."""
    for service in services.values():
        for name, wait in service.get("depends_on", {}).items():
            awaited = services[name]
            if wait["condition"] == "service_healthy":
                assert "healthcheck" in awaited
            if wait["condition"] == "service_completed_successfully":
                assert awaited["restart"].startswith("on-failure")


def test_stores_agree_on_the_key(services: dict[str, dict[str, Any]]) -> None:
    """Qdrant asks for the key that the worker sends."""
    asked = services["qdrant"]["environment"]["QDRANT__SERVICE__API_KEY"]
    assert asked == services["worker"]["environment"]["ENGRAM_QDRANT_API_KEY"]


def test_qdrant_is_new_enough(services: dict[str, dict[str, Any]]) -> None:
    """The pinned Qdrant is one that the store accepts."""
    tag = services["qdrant"]["image"].rpartition(":")[2]
    assert tuple(int(part) for part in tag.removeprefix("v").split(".")[:2]) >= OLDEST_SERVER


def test_temporal_parts_have_one_version(services: dict[str, dict[str, Any]]) -> None:
    """Server and tools, which carry the database schema, are of the same version."""
    versions = {
        service["image"].rpartition(":")[2]
        for service in services.values()
        if service["image"].startswith(("temporalio/server:", "temporalio/admin-tools:"))
    }
    assert len(versions) == 1


def test_workers_get_the_time_they_take(
    services: dict[str, dict[str, Any]], deployment: dict[str, Any]
) -> None:
    """A worker is killed only after all of its queues had their grace, with some to spare."""
    needed = QUEUES_OF_A_WORKER * _GRACE + timedelta(seconds=10)
    seconds = re.fullmatch(r"(\d+)s", services["worker"]["stop_grace_period"])
    assert seconds is not None
    assert timedelta(seconds=int(seconds[1])) >= needed
    pod = deployment["spec"]["template"]["spec"]
    assert timedelta(seconds=pod["terminationGracePeriodSeconds"]) >= needed


def test_what_stores_turns_ends_within_the_grace() -> None:
    """A worker that is asked to stop finishes the attempt at storing that the README tells of."""
    told = re.search(r"one attempt of (\d+) s", read("README.md"))
    assert told is not None
    assert timedelta(seconds=int(told[1])) == _LOCAL_LIMIT
    assert LOCAL_STORE.maximum_attempts == 1
    assert _LOCAL_LIMIT < _GRACE
    assert f"up to {_GRACE.seconds} s on each" in read("README.md")


def test_probes_run_what_the_image_holds(
    services: dict[str, dict[str, Any]], deployment: dict[str, Any]
) -> None:
    """Compose and Kubernetes call the health check where the Dockerfile puts it."""
    copied = re.search(r"^COPY deploy/healthcheck\.py (\S+)$", read("Dockerfile"), re.M)
    assert copied is not None
    assert services["worker"]["healthcheck"]["test"] == ["CMD", "python", copied[1]]
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    assert container["readinessProbe"]["exec"]["command"] == ["python", copied[1]]


def test_the_api_is_reached_where_it_listens(
    services: dict[str, dict[str, Any]], api: dict[str, Any]
) -> None:
    """The default port is published, probed and led to; probes ask what needs no key."""
    port = Settings.model_fields["http_port"].default
    assert services["api"]["ports"] == [f"127.0.0.1:{port}:{port}"]
    asked = re.findall(r"http://127\.0\.0\.1:(\d+)(/\S+?)'", str(services["api"]["healthcheck"]))
    assert [(int(found), path in OPEN_PATHS) for found, path in asked] == [(port, True)]
    pod = api["Deployment"]["spec"]["template"]
    (container,) = pod["spec"]["containers"]
    assert container["ports"] == [{"name": "http", "containerPort": port}]
    probes = [container[f"{kind}Probe"]["httpGet"] for kind in ("liveness", "readiness", "startup")]
    assert [probe["port"] for probe in probes] == ["http"] * 3
    assert {urlsplit(probe["path"]).path for probe in probes} <= OPEN_PATHS
    # While Temporal is away for all pods, none may leave the Service: they recall without it.
    assert probes[1]["path"] == "/v1/ready?only=store"
    service = api["Service"]["spec"]
    assert service["ports"][0]["targetPort"] == "http"
    assert service["selector"] == pod["metadata"]["labels"]


def test_the_api_has_its_keys_from_outside(
    services: dict[str, dict[str, Any]], api: dict[str, Any]
) -> None:
    """The file of keys lies in a volume that the image's user can use, and others cannot write."""
    environment = services["api"]["environment"]
    assert environment["ENGRAM_HTTP_HOST"] == "0.0.0.0"  # noqa: S104 - inside a container
    folder = str(Path(environment["ENGRAM_KEYS_FILE"]).parent)
    assert services["api"]["volumes"] == [f"keys:{folder}"]
    assert re.search(rf"install --directory --owner engram .* {folder}$", read("Dockerfile"), re.M)
    pod = api["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    settings = {one["name"]: one["value"] for one in container["env"]}
    (mount,) = [one for one in container["volumeMounts"] if one["name"] == "keys"]
    (volume,) = [one for one in pod["volumes"] if one["name"] == "keys"]
    assert Path(settings["ENGRAM_KEYS_FILE"]).parent == Path(mount["mountPath"])
    assert mount["name"] == volume["name"]
    assert volume["secret"]["defaultMode"] == 0o440
    assert f"generic {volume['secret']['secretName']} --from-file" in read("README.md")
    (group,) = set(re.findall(r"--gid (\d+)", read("Dockerfile")))
    assert pod["securityContext"]["fsGroup"] == int(group)


def test_the_image_runs_commands_that_exist(
    services: dict[str, dict[str, Any]], api: dict[str, Any]
) -> None:
    """The image's command, and those that are given to it, are commands of the program."""
    (container,) = api["Deployment"]["spec"]["template"]["spec"]["containers"]
    (default,) = re.findall(r'^CMD \["(\w+)"\]$', read("Dockerfile"), re.M)
    assert 'ENTRYPOINT ["engram"]' in read("Dockerfile")
    asked = {default, *services["api"]["command"], *container["args"]}
    assert asked == {"worker", "serve"}
    assert asked <= typer.main.get_command(whole()).commands.keys()  # type: ignore[attr-defined] # a group


def test_the_api_is_as_safe_as_a_worker(
    services: dict[str, dict[str, Any]], deployment: dict[str, Any], api: dict[str, Any]
) -> None:
    """The same image, settings and restrictions, and time for what runs when it ends."""
    (worker,) = deployment["spec"]["template"]["spec"]["containers"]
    pod = api["Deployment"]["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    for same in ("image", "securityContext"):
        assert container[same] == worker[same]
    assert [one for one in worker["envFrom"] if one in container["envFrom"]] == container["envFrom"]
    assert services["api"]["image"] == services["worker"]["image"] == container["image"]
    asked = services["worker"]["environment"].items() & services["api"]["environment"].items()
    assert len(asked) >= 6
    needed = _GRACE_SECONDS + _CLOSING_PATIENCE + 10
    assert pod["terminationGracePeriodSeconds"] >= needed
    assert int(services["api"]["stop_grace_period"].removesuffix("s")) >= needed


def test_kubernetes_names_meet(deployment: dict[str, Any]) -> None:
    """The Deployment refers to the ConfigMap and the Secret by their names, and to its own pods."""
    (container,) = deployment["spec"]["template"]["spec"]["containers"]
    refers = {(kind, told["name"]) for one in container["envFrom"] for kind, told in one.items()}
    config = yaml.safe_load(read("kubernetes/configmap.yaml"))
    secrets = [*yaml.safe_load_all(read("kubernetes/secret.example.yaml"))]
    assert refers == {
        ("configMapRef", config["metadata"]["name"]),
        *(("secretRef", secret["metadata"]["name"]) for secret in secrets),
    }
    spec = deployment["spec"]
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]


def test_a_drained_node_leaves_pods_that_work(
    deployment: dict[str, Any], api: dict[str, Any]
) -> None:
    """Each Deployment has a budget for its own pods, that neither stops a drain nor takes all."""
    budgets = {
        one["metadata"]["name"]: one["spec"]
        for one in yaml.safe_load_all(read("kubernetes/disruption.yaml"))
    }
    for one in (deployment, api["Deployment"]):
        budget = budgets.pop(one["metadata"]["name"])
        assert budget["selector"] == one["spec"]["selector"]
        assert 0 < budget["maxUnavailable"] < one["spec"]["replicas"]
    assert not budgets


def test_pods_have_no_more_rights_than_they_use(
    deployment: dict[str, Any], api: dict[str, Any]
) -> None:
    """Nothing can be written but a folder of their own, and no token of Kubernetes is there."""
    for one in (deployment, api["Deployment"]):
        pod = one["spec"]["template"]["spec"]
        (container,) = pod["containers"]
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        writable = {one["name"] for one in pod["volumes"] if "emptyDir" in one}
        mounted = {one["mountPath"] for one in container["volumeMounts"] if one["name"] in writable}
        home = next(one["value"] for one in container["env"] if one["name"] == "HOME")
        assert mounted == {home} == {"/tmp"}  # noqa: S108 - in a container


def test_containers_of_compose_have_no_more_rights_than_they_use(
    services: dict[str, dict[str, Any]],
) -> None:
    """The same in compose: nothing to write but a folder in memory, no capabilities."""
    for name in ("worker", "api"):
        service = services[name]
        assert service["read_only"] is True
        assert service["tmpfs"] == [service["environment"]["HOME"]]
        assert service["cap_drop"] == ["ALL"]
        assert service["security_opt"] == ["no-new-privileges:true"]


def test_only_workers_have_the_keys_of_models(
    services: dict[str, dict[str, Any]], api: dict[str, Any]
) -> None:
    """What answers strangers holds no key of a model's provider."""
    (container,) = api["Deployment"]["spec"]["template"]["spec"]["containers"]
    given = {told["name"] for one in container["envFrom"] for told in one.values()}
    for secret in yaml.safe_load_all(read("kubernetes/secret.example.yaml")):
        theirs = [name for name in secret["stringData"] if not name.startswith("ENGRAM_")]
        assert not (theirs and secret["metadata"]["name"] in given)
    of_models = {
        name: value
        for name, value in services["worker"]["environment"].items()
        if name.endswith("_API_KEY") and not name.startswith("ENGRAM_")
    }
    assert of_models == {name: f"${{{name}:-}}" for name in of_models}
    assert not of_models.items() & services["api"]["environment"].items()


def test_the_api_of_compose_can_ask_an_embedder(services: dict[str, dict[str, Any]]) -> None:
    """Questions are embedded by the API: it gets a key for each provider of the image's extras."""
    given = services["api"]["environment"]
    assert given["ENGRAM_EMBEDDER"] == services["worker"]["environment"]["ENGRAM_EMBEDDER"]
    # Anthropic has no embedder.
    for provider in ("OPENAI", "GOOGLE"):
        assert given[f"{provider}_API_KEY"] == f"${{EMBEDDER_{provider}_API_KEY:-}}"


def test_the_second_file_for_compose_fits(services: dict[str, dict[str, Any]]) -> None:
    """The README's own services exist, and both may write to the folders that they are told of."""
    (written,) = re.findall(
        r"^```yaml\n# deploy/more.yaml\n(.*?)^```$", read("README.md"), re.M | re.S
    )
    more = yaml.safe_load(written)["services"]
    assert more.keys() == {"worker", "api"} <= services.keys()
    for service in more.values():
        (volume,) = service["volumes"]
        source, target, *mode = volume.split(":")
        assert not mode
        for name in ("ENGRAM_ENCRYPTION_KEYS", "ENGRAM_AUDIT_FOLDER"):
            assert Path(target) in Path(service["environment"][name]).parents
        (owner,) = re.findall(
            rf"install -d -o (\d+) .* deploy/{Path(source).name}$", read("README.md"), re.M
        )
        assert owner in re.findall(r"--uid (\d+)", read("Dockerfile"))


def test_the_network_lets_through_what_is_used(
    deployment: dict[str, Any], api: dict[str, Any]
) -> None:
    """Each Deployment reaches what the ConfigMap names, and nobody reaches a worker."""
    policies = {
        one["metadata"]["name"]: one["spec"]
        for one in yaml.safe_load_all(read("kubernetes/networkpolicy.yaml"))
    }
    data = yaml.safe_load(read("kubernetes/configmap.yaml"))["data"]
    needed = {
        re.search(r"\.(\w+)\.svc\S*:(\d+)", data[name]).groups()  # type: ignore[union-attr]  # an address inside the cluster
        for name in ("ENGRAM_TEMPORAL_ADDRESS", "ENGRAM_QDRANT_URL")
    }
    for one in (deployment, api["Deployment"]):
        policy = policies[one["metadata"]["name"]]
        assert policy["podSelector"] == one["spec"]["selector"]
        reached = {
            (
                where["namespaceSelector"]["matchLabels"]["kubernetes.io/metadata.name"],
                str(port["port"]),
            )
            for rule in policy["egress"]
            for where in rule["to"]
            if "namespaceSelector" in where
            for port in rule["ports"]
        }
        assert needed <= reached
        # Providers of models and of embeddings, and both clouds, are outside of the cluster.
        outside = [rule for rule in policy["egress"] if any("ipBlock" in to for to in rule["to"])]
        assert {port["port"] for rule in outside for port in rule["ports"]} == {443, 6333, 7233}
    assert policies["engram-worker"]["ingress"] == []
    (rule,) = policies["engram-api"]["ingress"]
    assert [port["port"] for port in rule["ports"]] == [Settings.model_fields["http_port"].default]


def test_uv_has_one_version() -> None:
    """CI installs the very uv that the image is built with."""
    (built,) = re.findall(r"astral-sh/uv:([\d.]+)-", read("Dockerfile"))
    for name in ("ci", "nightly"):
        text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
        (constraints,) = re.findall(r"PIP_CONSTRAINT: (\S+)", text)
        assert (ROOT / constraints).read_text(encoding="utf-8") == f"uv=={built}\n"


def test_example_environment_names_every_secret(services: dict[str, dict[str, Any]]) -> None:
    """What compose refuses to start without stands in .env.example."""
    required = set(re.findall(r"\$\{(\w+):\?", read("compose.yaml")))
    assert required
    assert required == set(re.findall(r"^(\w+)=$", read(".env.example"), re.M))


def test_example_environment_names_all_that_compose_reads() -> None:
    """What can be set in deploy/.env stands in .env.example, and nothing that would be ignored."""
    read_there = set(re.findall(r"\$\{(\w+):", read("compose.yaml")))
    assert read_there == set(re.findall(r"^#?(\w+)=", read(".env.example"), re.M))


def run(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """A program of deploy/, with the tools of this environment and no settings but these."""
    tools = Path(sys.executable).parent
    kept = {
        key: value
        for key, value in os.environ.items()
        if not key.startswith(("ENGRAM_", "TEMPORAL_"))
    }
    path = f"{tools}{os.pathsep}{kept.get('PATH', '')}"
    return subprocess.run(
        command,
        env={**kept, "PATH": path, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


async def test_namespace_script_prepares_a_namespace(
    temporal_address: str, temporal_client: Client
) -> None:
    """The script makes the namespace with its retention and attributes, and may run again."""
    namespace = f"made-by-script-{temporal_client.namespace}"
    for _ in range(2):
        ran = await asyncio.to_thread(
            run,
            ["sh", str(DEPLOY / "temporal" / "namespace.sh")],
            TEMPORAL_ADDRESS=temporal_address,
            TEMPORAL_NAMESPACE=namespace,
            RETENTION="90d",
        )
        assert ran.returncode == 0, ran.stderr
    described = await temporal_client.workflow_service.describe_namespace(
        DescribeNamespaceRequest(namespace=namespace)
    )
    kept = described.config.workflow_execution_retention_ttl.ToTimedelta()
    assert kept == timedelta(days=90) == Settings.model_fields["temporal_retention"].default
    listed = await temporal_client.operator_service.list_search_attributes(
        ListSearchAttributesRequest(namespace=namespace)
    )
    keyword = IndexedValueType.INDEXED_VALUE_TYPE_KEYWORD
    assert {name: listed.custom_attributes[name] for name in SEARCH_ATTRIBUTES} == dict.fromkeys(
        SEARCH_ATTRIBUTES, keyword
    )


@workflow.defn(name="test.deploy.nothing", sandboxed=False)
class Nothing:
    """Does nothing: a worker needs a workflow to poll for any."""

    @workflow.run
    async def run(self) -> None:
        """Do nothing."""


@activity.defn(name="test.deploy.nothing")
async def nothing() -> None:
    """Do nothing: a worker needs an activity to poll for any."""


async def test_health_check_tells_whether_a_worker_polls(
    temporal_address: str, temporal_client: Client
) -> None:
    """Exit status 1 without Temporal or without a worker on both queues, else 0."""

    async def check(address: str = temporal_address) -> subprocess.CompletedProcess[str]:
        return await asyncio.to_thread(
            run,
            [sys.executable, str(DEPLOY / "healthcheck.py")],
            ENGRAM_TEMPORAL_ADDRESS=address,
            ENGRAM_TEMPORAL_NAMESPACE=temporal_client.namespace,
            ENGRAM_STORE_QUEUE="health-store",
            ENGRAM_MODEL_QUEUE="health-model",
        )

    unreachable = await check("127.0.0.1:1")
    assert unreachable.returncode == 1
    assert "No Temporal server answers" in unreachable.stderr

    store = Worker(
        temporal_client, task_queue="health-store", workflows=[Nothing], activities=[nothing]
    )
    model = Worker(temporal_client, task_queue="health-model", activities=[nothing])
    async with store:
        half = await check()
        assert half.returncode == 1
        assert "health-model" in half.stderr
        async with model:
            # A worker's first poll arrives when it arrives.
            async with asyncio.timeout(30):
                while (await check()).returncode != 0:
                    pass
