"""Commands in pods, by the real kubectl where there is one and by our double: the same cases for both."""

import os
import select
import shutil
import signal
import subprocess
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from hummingbird.sandboxes.kubernetes_pod import strip_log_lines
from tests.standins.kubernetes import kubectl as double
from tests.standins.kubernetes.server import KubernetesLab
from tests.standins.test_kubernetes.stage import Place, eventually, pod

MANY = 20_000_000


@dataclass
class Client:
    """A kubectl, the kubeconfig that it uses, and the pod `one`."""

    program: str
    place: Place
    environment: dict[str, str]

    def line(self, *command: str, stdin: bool, pod_name: str = "one") -> list[str]:
        flags = ["-i"] if stdin else []
        return [self.program, "-n", self.place.name, "exec", *flags, pod_name, "-c", "main", "--", *command]

    def run(
        self, *command: str, given: bytes | None = None, pod_name: str = "one"
    ) -> "subprocess.CompletedProcess[bytes]":
        line = self.line(*command, stdin=given is not None, pod_name=pod_name)
        return self.call(line, given)

    def call(self, line: list[str], given: bytes | None = None) -> "subprocess.CompletedProcess[bytes]":
        done = subprocess.run(line, input=given, env=self.environment, capture_output=True, timeout=60, check=False)
        done.stderr = strip_log_lines(done.stderr.decode()).encode()
        return done

    @contextmanager
    def begun(self, *command: str) -> "Iterator[subprocess.Popen[bytes]]":
        pipe = subprocess.PIPE
        line = self.line(*command, stdin=True)
        with subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe, env=self.environment, bufsize=0) as process:
            yield process
            process.kill()

    @property
    def folder(self) -> Path:
        """The pod's /data, seen from outside."""
        return self.place.lab.volume(self.place.name, "one", "data")


def client_for(kind: str, place: Place, folder: Path) -> Client:
    config = place.lab.kubeconfig(folder / "config", place.token)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "KUBECONFIG": str(config)}
    if kind == "double":
        return Client(str(double.install(folder / "bin")), place, environment)
    found = shutil.which("kubectl")
    if found is None:
        pytest.skip("there is no kubectl on this machine; its double is tested alone")
    return Client(found, place, environment)


@pytest.fixture(scope="module")
def pod_place(lab: KubernetesLab, image: str) -> Iterator[Place]:
    place = Place(lab, f"ns-{uuid.uuid4().hex[:8]}", image)
    manifest = pod("one", image)
    manifest["spec"]["volumes"].append({"name": "data", "emptyDir": {}})
    manifest["spec"]["containers"][0]["volumeMounts"].append({"name": "data", "mountPath": "/data"})
    place.started(manifest)
    yield place
    place.http.close()


@pytest.fixture(scope="module", params=["kubectl", "double"])
def client(request: pytest.FixtureRequest, pod_place: Place, tmp_path_factory: pytest.TempPathFactory) -> Client:
    return client_for(request.param, pod_place, tmp_path_factory.mktemp("kubectl"))


def until_started(process: "subprocess.Popen[bytes]") -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == b"started\n"


@pytest.mark.parametrize(("script", "code"), [("exit 42", 42), ("exit 127", 127), ("kill -9 $$", 137)])
def test_the_exit_code_is_the_commands(client: Client, script: str, code: int) -> None:
    done = client.run("sh", "-c", script)
    assert (done.returncode, done.stderr.decode()) == (code, f"command terminated with exit code {code}\n")


def test_stdout_and_stderr_come_apart_and_stdin_ends(client: Client) -> None:
    done = client.run("sh", "-c", "cat; echo oops >&2", given=b"hello")
    assert (done.returncode, done.stdout, done.stderr) == (0, b"hello", b"oops\n")
    assert client.run("cat").stdout == b""


def test_what_looks_like_podmans_own_words_is_the_commands_if_it_says_them(client: Client) -> None:
    done = client.run("sh", "-c", "echo Error: runc: not really >&2; exit 3")
    assert (done.returncode, done.stderr) == (3, b"Error: runc: not really\ncommand terminated with exit code 3\n")


def test_twenty_megabytes_come_back_byte_for_byte(client: Client) -> None:
    much = os.urandom(MANY)
    assert client.run("cat", given=much).stdout == much


def test_a_command_that_does_not_exist_is_1_and_a_text_on_stderr(client: Client) -> None:
    """Not the output of a command."""
    done = client.run("no-such-program")
    assert (done.returncode, done.stdout) == (1, b"")
    assert done.stderr.decode().startswith("error: Internal error occurred: error executing command in container: ")
    assert "no-such-program" in done.stderr.decode()
    assert "not found in $PATH" in done.stderr.decode()


def test_a_pod_that_is_gone_is_not_found(client: Client) -> None:
    done = client.run("true", pod_name="gone")
    assert (done.returncode, done.stderr) == (1, b'Error from server (NotFound): pods "gone" not found\n')


def test_a_pod_that_has_ended_takes_no_commands(client: Client) -> None:
    if not [each for each in client.place.lab.pods(client.place.name) if each["metadata"]["name"] == "over"]:
        client.place.made(pod("over", client.place.image, command=["true"]))
        client.place.lab.wait_until(lambda: client.place.phase("over") == "Succeeded")
    done = client.run("true", pod_name="over")
    said = b"error: cannot exec into a container in a completed pod; current phase is Succeeded\n"
    assert (done.returncode, done.stderr) == (1, said)


def test_a_container_that_is_not_in_the_pod_is_named(client: Client) -> None:
    done = client.call([client.program, "-n", client.place.name, "exec", "one", "-c", "other", "--", "true"])
    assert done.returncode == 1
    assert b"container other is not valid for pod one" in done.stderr


def test_another_namespace_is_forbidden(client: Client) -> None:
    done = client.call([client.program, "exec", "one", "-n", "kube-system", "--", "true"])
    assert done.returncode == 1
    assert done.stderr.startswith(b'Error from server (Forbidden): pods "one" is forbidden: User "system:service')


def test_a_context_that_does_not_exist_is_1(client: Client) -> None:
    done = client.call([client.program, "--context", "elsewhere", "-n", client.place.name, "exec", "one", "--", "true"])
    assert done.returncode == 1
    assert b"elsewhere" in done.stderr


def test_without_a_command_there_is_nothing_to_do(client: Client) -> None:
    done = client.call([client.program, "-n", client.place.name, "exec", "one"])
    assert (done.returncode, b"you must specify at least one command" in done.stderr) == (1, True)


def test_a_killed_client_leaves_its_command_running_with_its_stdin_at_an_end(client: Client) -> None:
    """Killing the client leaves the command running."""
    mark = uuid.uuid4().hex
    seen = {name: client.folder / f"{mark}.{name}" for name in ("eof", "go", "after")}
    wait = f"while [ ! -e /data/{mark}.go ]; do sleep 0.1; done"
    script = f"echo started; cat; touch /data/{mark}.eof; {wait}; touch /data/{mark}.after"
    with client.begun("sh", "-c", script) as process:
        until_started(process)
        process.send_signal(signal.SIGKILL)
    eventually(seen["eof"].exists)
    seen["go"].touch()
    eventually(seen["after"].exists)


def test_a_client_that_does_not_read_makes_the_command_wait(client: Client) -> None:
    mark = uuid.uuid4().hex
    blocks, size = 60, 1 << 20
    script = f"for i in $(seq {blocks}); do head -c {size} /dev/zero; echo >> /data/{mark}; done"
    with client.begun("sh", "-c", script) as process:
        written = client.folder / mark
        eventually(lambda: written.exists() and stands_still(written))
        assert written.stat().st_size < blocks
        assert process.stdout is not None
        total = 0
        while content := process.stdout.read(1 << 20):
            total += len(content)
        assert total == blocks * size
        assert process.wait() == 0


def stands_still(file: Path) -> bool:
    before = file.stat().st_size
    time.sleep(1.0)
    return file.stat().st_size == before


def test_a_command_that_does_not_read_makes_the_client_wait(client: Client) -> None:
    much = 64 * 1024 * 1024
    with client.begun("sh", "-c", "echo started; sleep 86400") as process:
        until_started(process)
        assert process.stdin is not None
        os.set_blocking(process.stdin.fileno(), False)
        sent = 0
        while sent < much and select.select([], [process.stdin], [], 1.0)[1]:
            sent += process.stdin.write(bytes(32768)) or 0
        assert 0 < sent < much


def test_a_container_that_dies_ends_its_commands_with_137(client: Client) -> None:
    name = f"dies-{uuid.uuid4().hex[:6]}"
    client.place.started(pod(name, client.place.image))
    line = client.line("sh", "-c", "echo started; sleep 86400", stdin=False, pod_name=name)
    with subprocess.Popen(line, stdout=subprocess.PIPE, env=client.environment) as process:
        until_started(process)
        client.place.lab.kill(client.place.name, name)
        assert process.wait() == 137
    client.place.lab.wait_until(lambda: client.place.phase(name) == "Failed")


def test_a_pod_without_a_running_container_has_none_to_enter(client: Client) -> None:
    name = f"never-{uuid.uuid4().hex[:6]}"
    client.place.made(pod(name, "localhost/hummingbird-lab-none:1"))
    client.place.lab.wait_until(lambda: client.place.lab.pod(client.place.name, name)["spec"].get("nodeName"))
    said = b'error: Internal error occurred: unable to upgrade connection: container not found ("main")\n'
    done = client.run("true", pod_name=name)
    if done.stderr == b"error: closed all streams\n":  # kubectl noticed the end before the reason: once in a while
        done = client.run("true", pod_name=name)
    assert (done.returncode, done.stderr) == (1, said)


def test_a_role_without_exec_is_refused(client: Client, tmp_path: Path) -> None:
    token = client.place.lab.token(client.place.name, {"pods": ["get"]}, name="reader")
    config = client.place.lab.kubeconfig(tmp_path / "config", token)
    program, *rest = client.line("true", stdin=False)
    done = client.call([program, "--kubeconfig", str(config), *rest])
    assert done.returncode == 1
    assert b'resource "pods/exec" in API group ""' in done.stderr


def test_four_commands_at_once_each_get_their_own_answer(client: Client) -> None:
    lines = [client.line("sh", "-c", f"cat; exit {number}", stdin=True) for number in range(4)]
    pipe = subprocess.PIPE
    processes = [subprocess.Popen(line, stdin=pipe, stdout=pipe, stderr=pipe, env=client.environment) for line in lines]
    answers = [process.communicate(str(number).encode())[0] for number, process in enumerate(processes)]
    assert answers == [str(number).encode() for number in range(4)]
    assert [process.returncode for process in processes] == list(range(4))


@pytest.mark.parametrize("kind", ["kubectl", "double"])
def test_unread_stdin_hangs_where_asked_for_and_draining_cures_it(kind: str, image: str, tmp_path: Path) -> None:
    """Unread stdin never hangs; this is what it must not hang on."""
    with KubernetesLab() as lab:
        place = Place(lab, "habits", image)
        client = client_for(kind, place, tmp_path)
        place.started(pod("one", image))
        lab.hang_on_unread_stdin()
        drained = client.run("sh", "-c", "false; rc=$?; cat > /dev/null; exit $rc", given=b"x" * 200_000)
        assert drained.returncode == 1
        with client.begun("sh", "-c", "echo started; exit 0") as process:
            until_started(process)
            assert process.stdin is not None
            process.stdin.write(b"x")
            process.stdin.close()
            # another command begins and ends meanwhile
            assert client.run("true", given=b"").returncode == 0
            assert process.poll() is None
        place.http.close()


@pytest.mark.parametrize("kind", ["kubectl", "double"])
def test_a_server_that_is_gone_is_1_and_said(kind: str, image: str, tmp_path: Path) -> None:
    with KubernetesLab() as lab:
        place = Place(lab, "brief", image)
        place.http.close()
        client = client_for(kind, place, tmp_path)
        where = lab.url.removeprefix("http://")
    done = client.run("true")
    said = f"The connection to the server {where} was refused - did you specify the right host or port?"
    assert (done.returncode, done.stderr.decode().splitlines()[-1]) == (1, said)
