"""The image, compose.yaml and the manifests agree with the code: variables, values, ports, commands, users, pins."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml  # type: ignore[import-untyped]

from carrick import __version__, wiring
from carrick.cli import app
from carrick.settings import PORTS, Service, Settings, read_settings
from carrick_scoreboard.sealing import key_text, new_key
from carrick_scoreboard.settings import read_scoreboard_settings

ROOT = Path(__file__).resolve().parents[2]
NO_FILE = Path("no .env file")
HTTP_SERVICES = ("forward", "ingest", "scoreboard")
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
MANIFESTS = ROOT / "deploy" / "kubernetes"
OWN_IMAGE = f"carrick:{__version__}"
FROM_OUTSIDE = {"OSM_CLIENT_ID": "id", "OSM_CLIENT_SECRET": "secret", "CARRICK_SECRET_KEYS": key_text(*new_key())}
"""What these files leave to whoever runs them."""


def objects() -> list[dict[str, Any]]:
    """Everything in the manifests."""
    files = sorted(MANIFESTS.glob("*.yaml"))
    return [made for file in files for made in yaml.safe_load_all(file.read_text(encoding="utf-8"))]


def of_kind(kind: str) -> list[dict[str, Any]]:
    return [made for made in objects() if made["kind"] == kind]


WORKLOADS = of_kind("Deployment") + of_kind("Job")
CONFIG: dict[str, str] = of_kind("ConfigMap")[0]["data"]
SECRET: dict[str, str] = of_kind("Secret")[0]["stringData"]


class Run(NamedTuple):
    """A container of Carrick: its command line, its variables, the ports it is reached by."""

    name: str
    args: list[str]
    environment: dict[str, str]
    ports: list[int]

    @property
    def service(self) -> Service:
        return next((known for known in PORTS if known == self.args[0]), "forward")

    def settings(self) -> Settings:
        return read_settings(self.environment, NO_FILE, service=self.service)


def compose_runs() -> Iterator[Run]:
    for name, service in COMPOSE["services"].items():
        if service["image"] == OWN_IMAGE:
            environment = {key: filled_in(value) for key, value in service["environment"].items()}
            ports = [int(port.rpartition(":")[2]) for port in service.get("ports", [])]
            yield Run(f"compose {name}", service["command"], {**environment, **given(environment)}, ports)


def filled_in(text: str) -> str:
    """What compose makes of `${NAME:-default}` when nothing is set."""
    return re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", text)


def given(environment: dict[str, str]) -> dict[str, str]:
    return {key: value for key, value in FROM_OUTSIDE.items() if environment.get(key) == ""}


def manifest_runs() -> Iterator[Run]:
    for workload in WORKLOADS:
        (container,) = containers(workload)
        environment = {key: value for source in container.get("envFrom", []) for key, value in config(source).items()}
        environment |= {variable["name"]: value_of(variable) for variable in container["env"]}
        ports = [port["containerPort"] for port in container.get("ports", [])]
        name = workload["metadata"]["name"]
        yield Run(f"manifest {name}", container["args"], {**environment, **given(environment)}, ports)


def containers(workload: dict[str, Any]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = workload["spec"]["template"]["spec"]["containers"]
    return found


def config(source: dict[str, Any]) -> dict[str, str]:
    assert source == {"configMapRef": {"name": "carrick"}}
    return CONFIG


def value_of(variable: dict[str, Any]) -> str:
    """A value that stands there, one of the secret under its own name, or the pod's name."""
    if "value" in variable:
        assert isinstance(variable["value"], str)
        return variable["value"]
    source = variable["valueFrom"]
    if "fieldRef" in source:
        return "carrick-1"
    assert source["secretKeyRef"] == {"name": "carrick", "key": variable["name"]}
    return SECRET[variable["name"]]


def page_runs() -> Iterator[Run]:
    """What the page about the Raspberry Pi lets people write into a file."""
    text = (ROOT / "docs/how-to/raspberry-pi.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```sh\n(DATABASE_URL=.*?)```", text, re.DOTALL)
    (command,) = re.findall(r"^ExecStart=\S+/carrick (\w+)$", text, re.MULTILINE)
    yield Run("page raspberry-pi", [command], dict(line.split("=", 1) for line in block.splitlines()), [8080, 9090])


RUNS = [*compose_runs(), *manifest_runs(), *page_runs()]
each_run = pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)


def test_every_service_of_carrick_is_in_both() -> None:
    for place in ("compose", "manifest"):
        commands = {run.args[0] for run in RUNS if run.name.startswith(place)}
        assert commands == {"migrate", "forward", "ingest", "drain", "scoreboard"}


@each_run
def test_every_variable_exists(run: Run) -> None:
    rows = (ROOT / "docs/reference/configuration.md").read_text(encoding="utf-8").splitlines()
    assert run.environment.keys() <= {row.split("`")[1] for row in rows if row.startswith("| `")}


@each_run
def test_every_value_is_accepted(run: Run) -> None:
    settings = run.settings()
    if run.args[0] == "scoreboard":
        assert read_scoreboard_settings(run.environment, NO_FILE).keys is not None
    if run.args[0] == "forward":
        assert settings.cloud.url.endswith("/api/v1/edge/batch")


@each_run
def test_every_port_is_the_one_that_is_listened_on(run: Run) -> None:
    settings = run.settings()
    if run.args[0] in HTTP_SERVICES:
        assert run.ports == [settings.port, settings.metrics_port]
        # the image's health check knows no other default than this
        assert run.environment.get("PORT", "8080") == str(settings.port)
    else:
        assert run.ports in ([], [settings.metrics_port])


@each_run
def test_every_command_exists(run: Run) -> None:
    command, _, _ = app.parse_args(run.args, exit_on_error=False, print_error=False)
    assert command.__name__ == run.args[0]


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_every_image_of_compose_is_pinned_and_runs_without_root(name: str) -> None:
    service = COMPOSE["services"][name]
    assert re.fullmatch(r"[\w./-]+:v?\d+(\.\d+)+", service["image"])
    if service["image"] == OWN_IMAGE:
        assert service["build"] == "."
        assert service["cap_drop"] == ["ALL"]
        assert service["read_only"] is True
        assert "user" not in service
    else:
        assert service["user"] not in ("root", "0", 0)


@pytest.mark.parametrize("name", COMPOSE["services"])
def test_what_compose_waits_for_can_happen(name: str) -> None:
    services = COMPOSE["services"]
    for needed, how in services[name].get("depends_on", {}).items():
        if how["condition"] == "service_healthy":  # the image's own check, or one that stands there
            checked = services[needed].get("healthcheck", {"test": services[needed]["image"] == OWN_IMAGE})
            assert checked["test"]
        else:
            assert services[needed]["command"] == ["migrate"]


def test_compose_opens_ports_to_its_own_machine_only() -> None:
    ports = [port for service in COMPOSE["services"].values() for port in service.get("ports", [])]
    assert ports
    assert all(port.startswith("127.0.0.1:") for port in ports)
    assert len(ports) == len(set(ports))


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload["metadata"]["name"])
def test_every_pod_is_without_root_and_without_rights(workload: dict[str, Any]) -> None:
    pod = workload["spec"]["template"]["spec"]
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["runAsUser"] == int(image_user())
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert pod["automountServiceAccountToken"] is False
    (container,) = pod["containers"]
    assert container["image"] == OWN_IMAGE
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"requests", "limits"} <= container["resources"].keys()


@pytest.mark.parametrize("workload", of_kind("Deployment"), ids=lambda workload: workload["metadata"]["name"])
def test_every_deployment_has_two_replicas_that_are_probed_and_never_both_taken(workload: dict[str, Any]) -> None:
    assert workload["spec"]["replicas"] == 2
    labels = workload["spec"]["template"]["metadata"]["labels"]
    assert workload["spec"]["selector"]["matchLabels"] == labels
    budgets = [made["spec"] for made in of_kind("PodDisruptionBudget")]
    assert {"minAvailable": 1, "selector": {"matchLabels": labels}} in budgets
    (container,) = containers(workload)
    named = {port["name"]: port["containerPort"] for port in container.get("ports", [])}
    if "metrics" in named:
        annotations = workload["spec"]["template"]["metadata"]["annotations"]
        assert annotations["prometheus.io/port"] == str(named["metrics"])
    if "http" in named:
        assert container["livenessProbe"]["httpGet"] == {"path": "/api/health", "port": "http"}
        assert container["readinessProbe"]["httpGet"] == {"path": "/api/ready", "port": "http"}
        (service,) = [made["spec"] for made in of_kind("Service") if made["spec"]["selector"] == labels]
        assert [port["targetPort"] for port in service["ports"]] == ["http"]
    else:  # it has no probes of its own: a command tells whether it can work
        command = container["readinessProbe"]["exec"]["command"]
        app.parse_args(command[1:], exit_on_error=False, print_error=False)


@pytest.mark.parametrize("run", [run for run in RUNS if "manifest" in run.name], ids=lambda run: run.name)
def test_a_pod_is_given_the_time_that_a_clean_end_takes(run: Run) -> None:
    for workload in of_kind("Deployment"):
        given_seconds = workload["spec"]["template"]["spec"]["terminationGracePeriodSeconds"]
        assert given_seconds > run.settings().sync_grace_seconds + 10


def test_the_kustomization_names_every_file_but_the_example_of_the_secret() -> None:
    (kustomization,) = of_kind("Kustomization")
    files = {file.name for file in MANIFESTS.glob("*.yaml")} - {"kustomization.yaml", "secret.example.yaml"}
    assert set(kustomization["resources"]) == files
    assert {made["kind"] for made in objects()} == {
        "ConfigMap", "Deployment", "Job", "Kustomization", "PodDisruptionBudget", "Secret", "Service",
    }  # fmt: skip


def instructions(name: str) -> list[str]:
    return [line.partition(" ")[2].strip() for line in DOCKERFILE if line.startswith(f"{name} ")]


def image_user() -> str:
    return instructions("USER")[-1].partition(":")[0]


def test_the_image_is_pinned_has_no_build_tools_and_no_root() -> None:
    first, last = instructions("FROM")
    assert re.fullmatch(r"python:\d+\.\d+\.\d+-slim-\w+ AS build", first)
    assert last == first.removesuffix(" AS build")
    assert image_user() not in ("", "0", "root")
    final = DOCKERFILE[DOCKERFILE.index(f"FROM {last}") :]
    assert not [line for line in final if re.search(r"apt-get|pip |make|gcc", line) and not line.startswith("#")]
    assert json.loads(instructions("ENTRYPOINT")[0]) == ["carrick"]
    assert instructions("EXPOSE") == [" ".join(map(str, PORTS["forward"]))]


def test_the_image_gets_what_the_checkout_is_tested_with() -> None:
    whole, run = (lock(name) for name in ("requirements.lock", "requirements-run.lock"))
    assert {name: whole[name] for name in run} == run
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = [*project["dependencies"], *chain(*project["optional-dependencies"].values())]
    assert {re.split(r"[\[>=<;]", requirement)[0] for requirement in needed} <= run.keys(), "run: make lock"
    assert not {"pytest", "hatchling", "mypy"} & run.keys()


def lock(name: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Packages with their version and hashes."""
    text = (ROOT / name).read_text(encoding="utf-8")
    found = re.findall(r"^([\w.-]+)==([\w.]+)[^\\\n]*((?:\\\n\s+--hash=\S+ ?)+)", text, re.MULTILINE)
    return {package: (version, frozenset(re.findall(r"sha256:\w+", hashes))) for package, version, hashes in found}


def test_the_health_check_of_the_image_tells_a_service_that_lives_from_one_that_does_not(tmp_path: Path) -> None:
    command = json.loads(instructions("HEALTHCHECK")[0].partition("CMD ")[2])
    assert command[0] == "python"
    ports: list[int] = []

    def check() -> int:
        environment = {**os.environ, "PORT": str(ports[0])}
        done = subprocess.run([sys.executable, *command[1:]], env=environment, capture_output=True, check=False)
        return done.returncode

    codes = asyncio.run(while_a_forwarder_runs(tmp_path, ports, check))
    assert (codes, check()) == (0, 1)


async def while_a_forwarder_runs(folder: Path, ports: list[int], check: Callable[[], int]) -> int:
    environment = {
        "DATABASE_URL": f"sqlite:///{folder / 'carrick.db'}",
        "CLOUD_INGESTION_URL": "http://127.0.0.1:9/",
        "PORT": "0",
        "METRICS_PORT": "0",
    }
    stopping, started = asyncio.Event(), asyncio.Event()

    def note(port: int, _metrics_port: int) -> None:
        ports.append(port)
        started.set()

    running = asyncio.create_task(wiring.forwarder(read_settings(environment, NO_FILE)).run(stopping, note))
    await started.wait()
    code = await asyncio.to_thread(check)
    stopping.set()
    await running
    return code
