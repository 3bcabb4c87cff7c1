"""The agent's image is built and run for real, as its pods run it: read-only, as nobody, with no rights."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from hummingbird import __version__
from hummingbird.core.limits import SANDBOX_UID
from tests.config.files import CONTINUITY
from tests.deploy.agent_image import LIMITS, agent_image, podman
from tests.deploy.extras_files import FOLDER, extras, written
from tests.deploy.kustomize import BASE, found, rendered

pytestmark = [pytest.mark.thorough, pytest.mark.timeout(1_800)]  # the first time it is made of nothing
AS_IN_A_POD = (
    "--network=none",
    "--read-only",
    "--cap-drop=ALL",
    "--security-opt=no-new-privileges",
    "--pull=never",
    *LIMITS,
)
VARIABLES = {
    "ORCHESTRATOR_GITLAB_TOKEN": "writes",
    "GITLAB_TOKEN_RO": "reads",
    "HUMMINGBIRD_WEBHOOK_SECRET": "a long random text",
}
ASK = """\
import sys, urllib.request
with urllib.request.urlopen("http://127.0.0.1:8080" + sys.argv[1], timeout=5) as answer:
    print(answer.read().decode())
"""
WRITABLE = """\
mkdir -p $HUMMINGBIRD_HOME
for one in / /opt/hummingbird /etc/hummingbird /usr/local/bin $HOME $HUMMINGBIRD_HOME /tmp; do
  touch $one/x 2>/dev/null && echo $one
done
true
"""
LEFT = """\
ls -A /build /root/.cache 2>/dev/null
find /wheels -type f 2>/dev/null
ls /opt/hummingbird/bin | grep -E 'pip|hatch'
cd /opt/hummingbird/lib/python3*/site-packages && ls -d pip hatchling editables 2>/dev/null
true
"""


@pytest.fixture(scope="module")
def image() -> str:
    return agent_image()


def ran(image: str, *arguments: str, options: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
    return podman("run", "--rm", *AS_IN_A_POD, *options, image, *arguments)


def shell(image: str, script: str) -> str:
    done = ran(image, "-c", script, options=("--entrypoint=sh",))
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_it_is_the_agent_of_this_release(image: str) -> None:
    said = ran(image, "--version")
    assert (said.returncode, said.stdout) == (0, f"hummingbird, version {__version__}\n")
    assert "serve" in ran(image, "--help").stdout


def test_what_it_does_by_itself_is_serve_and_it_says_so(image: str) -> None:
    [inspected] = json.loads(podman("image", "inspect", image).stdout)
    settings: dict[str, Any] = inspected["Config"]
    assert settings["User"] == f"{SANDBOX_UID}:{SANDBOX_UID}"
    assert settings["Entrypoint"] == ["hummingbird"]
    assert settings["Cmd"] == ["serve", "--host", "0.0.0.0", "--log-format", "json"]
    assert settings["StopSignal"] in ("SIGTERM", "15")
    assert set(settings["ExposedPorts"]) == {"8080/tcp"}
    assert set(settings["Volumes"]) == {"/var/lib/hummingbird"}
    assert settings["Labels"]["org.opencontainers.image.version"] == __version__
    assert not [one for one in settings["Env"] if one.startswith("PIP_")], "how it was built stays behind"


def test_it_runs_as_a_user_without_rights(image: str) -> None:
    lines = shell(image, "id -u; id -g; grep CapEff /proc/self/status").split()
    assert lines == [str(SANDBOX_UID), str(SANDBOX_UID), "CapEff:", "0" * 16]


def test_there_is_no_compiler_and_nothing_else_of_the_build_in_it(image: str) -> None:
    programs = "cc gcc g++ c++ clang tcc as ld make cmake cargo rustc go"
    assert shell(image, f"for one in {programs}; do command -v $one; done; true") == ""
    assert shell(image, LEFT) == ""


def test_nothing_in_it_can_be_written_but_state_and_scratch(image: str) -> None:
    assert shell(image, WRITABLE).split() == ["/var/lib/hummingbird", "/var/lib/hummingbird/state", "/tmp"]


def test_nobody_else_may_change_what_runs_in_it(image: str) -> None:
    assert shell(image, f"find /opt/hummingbird /usr/local/bin -user {SANDBOX_UID} -o -perm -002 ! -type l") == ""


def test_kubectl_is_where_the_sandboxes_look_for_it(image: str) -> None:
    assert ran(image, options=("--entrypoint=kubectl",)).stdout == "stand-in\n"


def test_optional_parts_are_in_it_if_they_were_asked_for(image: str) -> None:
    script = "import opentelemetry.exporter.otlp.proto.http, opentelemetry.sdk, sentry_sdk"
    assert shell(image, f"/opt/hummingbird/bin/python -W ignore -c '{script}' && echo there") == "there\n"


@pytest.mark.parametrize("extra", extras())
def test_the_locks_of_optional_parts_are_those_that_are_tested(extra: str) -> None:
    """To renew them, `python -m tests.deploy.extras_files`."""
    assert (FOLDER / f"{extra}.lock").read_text(encoding="utf-8") == written(extra)
    assert "--hash=sha256:" in written(extra)


@pytest.fixture(scope="module")
def configuration(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ConfigMap as a pod sees it."""
    folder = tmp_path_factory.mktemp("configuration")
    folder.chmod(0o755)
    for name, text in found(rendered(BASE), "ConfigMap", "hummingbird")["data"].items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def given(configuration: Path, *variables: str) -> tuple[str, ...]:
    return (f"--volume={configuration}:/etc/hummingbird:ro", *(f"--env={one}={VARIABLES[one]}" for one in variables))


def test_the_configuration_of_the_manifests_is_sound_to_it(image: str, configuration: Path) -> None:
    good = ran(image, "config", "check", options=given(configuration, *VARIABLES))
    assert good.returncode == 0, good.stderr
    assert "k8spool" in configuration.joinpath("hummingbird.yaml").read_text()
    assert "ORCHESTRATOR_GITLAB_TOKEN" in good.stdout
    bad = ran(image, "config", "check", options=given(configuration))
    assert bad.returncode == 1
    assert "GITLAB_TOKEN_RO" in bad.stdout + bad.stderr


def test_a_configuration_at_the_documented_place_finds_the_shipped_prompts(image: str, tmp_path: Path) -> None:
    """`prompt: workflows/code-review.md` beside a configuration in /app, by the older name of the program."""
    (file := tmp_path / "config.yml").write_text(CONTINUITY.read_text())
    tmp_path.chmod(0o755)
    variables = ("GITLAB_TOKEN_RO", "GITLAB_TOKEN_CONTAINERS_RO", "KUBECONFIG", "GOOGLE_API_KEY")
    given = (f"--volume={file}:/app/config.yml:ro", *(f"--env={one}=x" for one in variables))
    options = (*given, "--env=CONFIG_PATH=/app/config.yml", "--entrypoint=python3")
    checked = ran(image, "-m", "hummingbird_agent", "config", "check", options=options)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert "config.yml is sound" in checked.stdout


def test_it_does_not_serve_the_world_without_a_secret(image: str) -> None:
    said = ran(image)
    assert said.returncode != 0
    assert "Webhooks on 0.0.0.0 could come from anybody" in said.stderr


@contextmanager
def serving(image: str) -> Iterator[str]:
    options = [f"--env={name}={value}" for name, value in VARIABLES.items()]
    began = podman("run", "--detach", *AS_IN_A_POD, *options, image)
    assert began.returncode == 0, began.stderr
    container = began.stdout.strip()
    try:
        yield container
    finally:
        podman("rm", "--force", "--volumes", "--time=0", container)


def asked(container: str, path: str) -> str:
    return podman("exec", container, "/opt/hummingbird/bin/python", "-c", ASK, path).stdout.strip()


def test_it_serves_tells_how_it_is_and_ends_when_it_is_told_to(image: str) -> None:
    """With the paths that the manifests' probes ask for."""
    [agent] = found(rendered(BASE), "Deployment", "hummingbird")["spec"]["template"]["spec"]["containers"]
    alive, ready = (agent[probe]["httpGet"]["path"] for probe in ("livenessProbe", "readinessProbe"))
    with serving(image) as container:
        until = time.monotonic() + 60
        while not asked(container, alive):
            assert time.monotonic() < until, podman("logs", container).stderr
            time.sleep(0.2)
        assert json.loads(asked(container, alive)) == {"status": "alive"}
        said = json.loads(asked(container, ready))
        assert said["status"] == "ready"
        assert "has no model that can be asked" in said["warning"], "the container was given no key"
        podman("stop", "--time=30", container)
        ended = podman("inspect", "--format={{.State.ExitCode}}", container).stdout.strip()
        assert (
            ended,
            "The service has stopped; all work is finished or parked." in podman("logs", container).stderr,
        ) == (
            "0",
            True,
        )
