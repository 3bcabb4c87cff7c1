"""What is special to podman as the place of a sandbox: its hardening seen from inside, and its refusals."""

import asyncio
import json
import os
from collections.abc import AsyncIterator, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from hummingbird.core.errors import SandboxBroken, SandboxUnavailable
from hummingbird.core.limits import SANDBOX_PROCESSES, SANDBOX_SPACE_BYTES, SANDBOX_UID
from hummingbird.sandboxes.command_sandbox import CommandSandbox
from hummingbird.sandboxes.podman import ContainerSpec, PodmanBackend, run_arguments
from tests.sandbox_image import sandbox_image
from tests.sandboxes.containers import exists, podman, tiny_image

pytestmark = pytest.mark.timeout(300)  # whoever comes first may have to make the image

MIB = 1024 * 1024
SECRET = "glpat-of-nobody-in-particular"
SEEN = """
import json, os, resource, socket
def read(path):
    try:
        return open(path).read()
    except OSError:
        return ""
def fails(path):
    try:
        open(path, "w").close()
    except OSError as error:
        return error.strerror
status = dict(line.rstrip("\\n").split(":\\t") for line in open("/proc/self/status") if ":\\t" in line)
space = os.statvfs("/tmp")
print(json.dumps({
    "ids": [os.getuid(), os.getgid(), os.getgroups()],
    "status": {name: status[name] for name in status if name.startswith("Cap") or name in ("NoNewPrivs", "Seccomp")},
    "interfaces": [line.split(":")[0].strip() for line in open("/proc/net/dev") if ":" in line],
    "mounts": [line.split()[3:6] for line in open("/proc/self/mountinfo")],
    "space": space.f_frsize * space.f_blocks,
    "modes": [oct(os.stat("/tmp").st_mode), oct(os.stat("/tmp/data").st_mode)],
    "unwritable": [fails(path) for path in ("/x", "/etc/x", "/usr/bin/x", "/var/tmp/x", "/run/x", "/dev/x", "/sys/x")],
    "hostname": socket.gethostname(),
    "resolver": read("/etc/resolv.conf"),
    "groups": sorted(set(line.split(":")[2].strip() for line in open("/proc/self/cgroup"))),
    "pids": read("/sys/fs/cgroup/pids.max") or read("/sys/fs/cgroup/pids/pids.max"),
    "core": resource.getrlimit(resource.RLIMIT_CORE),
}))
"""


@pytest.fixture(scope="module")
def place() -> Iterator[PodmanBackend]:
    """One for all tests that only look."""
    place = PodmanBackend(sandbox_image(), environment={**os.environ, "ORCHESTRATOR_GITLAB_TOKEN": SECRET})
    asyncio.run(place.start())
    yield place
    asyncio.run(place.remove())


@pytest.fixture
async def small() -> AsyncIterator[CommandSandbox]:
    """64 MiB of memory and twice as much space."""
    place = PodmanBackend(sandbox_image(), environment=os.environ, memory_bytes=64 * MIB, space_bytes=128 * MIB)
    sandbox = CommandSandbox(place)
    await sandbox.start()
    yield sandbox
    await sandbox.cleanup()


async def test_from_inside_there_are_no_rights_no_network_no_mounts_and_no_variables(place: PodmanBackend) -> None:
    done = await CommandSandbox(place).exec("python3 -", SEEN.encode())
    assert done.exit_code == 0, done.stderr
    seen = json.loads(done.stdout)
    *ids, groups = seen["ids"]
    assert ids == [SANDBOX_UID, SANDBOX_UID]
    assert set(groups) <= {SANDBOX_UID}
    no_rights = dict.fromkeys(("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"), "0000000000000000")
    assert seen["status"] == {**no_rights, "NoNewPrivs": "1", "Seccomp": "2"}
    assert seen["interfaces"] == ["lo"]
    assert seen["unwritable"] == ["Read-only file system"] * 5 + ["Permission denied", "Read-only file system"]
    assert (seen["space"], seen["modes"]) == (SANDBOX_SPACE_BYTES, ["0o41777", "0o40755"])
    variables = podman("exec", place.container, "env").stdout.decode().splitlines()
    assert {name.split("=")[0] for name in variables} == {"PATH", "HOSTNAME", "HOME"}
    assert (seen["hostname"], seen["resolver"], seen["groups"]) == ("sandbox", "", ["/"])
    assert (int(seen["pids"]), seen["core"]) == (SANDBOX_PROCESSES, [0, 0])
    options = {at: ways for _, at, ways in seen["mounts"]}
    assert "ro" in options["/"].split(",")
    assert {"nosuid", "nodev"} <= set(options["/tmp"].split(","))
    own = {"/etc/hostname", "/etc/resolv.conf", "/run/.containerenv", "/"}
    of_the_host = [at for root, at, _ in seen["mounts"] if root != "/" and not at.startswith(("/proc", "/sys"))]
    assert set(of_the_host) <= own


async def test_podman_itself_is_started_without_our_tokens(place: PodmanBackend) -> None:
    """Seen in the list of processes while a command runs."""
    feed: asyncio.Event = asyncio.Event()

    async def held() -> AsyncIterator[bytes]:
        yield b"x"
        await feed.wait()

    stream = CommandSandbox(place).stream_exec("cat", held())
    assert await anext(stream) == b"x"
    environments = _environments_of_clients(place.container)
    assert environments
    assert not [found for found in environments if SECRET.encode() in found]
    feed.set()
    await stream.aclose()


def _environments_of_clients(container: str) -> list[bytes]:
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            words = (process / "cmdline").read_bytes().split(b"\0")
            if b"exec" in words and container.encode() in words:
                found.append((process / "environ").read_bytes())
    return found


async def test_more_files_than_memory_fit_and_too_many_are_no_space_left_instead_of_a_dead_sandbox(
    small: CommandSandbox,
) -> None:
    assert (await small.exec(f"head -c {100 * MIB} /dev/zero > fits")).exit_code == 0
    full = await small.exec(f"head -c {100 * MIB} /dev/zero > does-not")
    assert full.exit_code == 1
    assert b"No space left" in full.stderr
    held = await small.exec("python3 -c 'print(len(bytearray(40 << 20)))'")  # with /tmp full, its memory is still there
    assert held.stdout == b"41943040\n", held


@pytest.mark.thorough
async def test_a_command_over_the_containers_memory_is_killed_and_the_sandbox_goes_on(small: CommandSandbox) -> None:
    done = await small.exec("python3 -c 'bytearray(b\"x\") * (600 << 20)'")
    assert done.exit_code == 137, done
    assert "oom" not in os.listdir(), "podman's monitor wrote it down where we are"  # noqa: PTH208 - only a look
    assert (await small.exec("echo still here")).stdout == b"still here\n"


@pytest.mark.thorough
async def test_commands_together_cannot_have_more_processes_than_the_container(place: PodmanBackend) -> None:
    done = await CommandSandbox(place).exec("for i in $(seq 400); do sleep 100 & done; echo all", timeout_s=30)
    assert b"all" not in done.stdout
    assert b"Cannot fork" in done.stderr or b"Resource temporarily unavailable" in done.stderr
    assert (await CommandSandbox(place).exec("echo still here")).stdout == b"still here\n"


@pytest.mark.thorough
async def test_a_container_that_was_killed_is_a_broken_sandbox_and_not_a_commands_output() -> None:
    place = PodmanBackend(sandbox_image(), environment=os.environ)
    sandbox = CommandSandbox(place)
    await sandbox.start()
    assert podman("kill", place.container).returncode == 0
    with pytest.raises(SandboxBroken, match="Start a new sandbox"):
        await sandbox.exec("echo out")
    await sandbox.cleanup()
    assert not exists(place.container)


@pytest.mark.thorough
async def test_without_podman_the_sentence_says_how_to_get_it(tmp_path: Path) -> None:
    place = PodmanBackend("any", environment={"PATH": str(tmp_path)})
    with pytest.raises(SandboxUnavailable, match="apt install podman"):
        await place.start()
    await place.remove()


@pytest.mark.thorough
async def test_without_the_image_the_sentence_says_how_to_build_it_and_nothing_is_pulled() -> None:
    sandbox_image()
    place = PodmanBackend("localhost/no-such-image:1", environment=os.environ)
    with pytest.raises(SandboxUnavailable, match=r"no image localhost/no-such-image:1 .* `hummingbird sandbox build`"):
        await place.start()
    assert not exists(place.container)


def fake_podman(folder: Path, pull: str) -> dict[str, str]:
    """A podman that has no image until it has pulled one."""
    program = folder / "podman"
    program.write_text(
        "#!/bin/sh\n"
        f'echo "$@" >> {folder}/asked\n'
        'case "$*" in\n'
        f'*" pull "*) {pull};;\n'
        f'*" image exists "*) test -e {folder}/pulled;;\n'
        f'*" run "*) test -e {folder}/pulled && echo no greeting && exit 0; echo "no such image" >&2; exit 125;;\n'
        "esac\n"
    )
    program.chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


async def test_an_image_of_a_registry_is_pulled_where_it_is_absent(tmp_path: Path) -> None:
    """The documented image is a registry's, and podman's own `run` would pull it."""
    image = "quay.io/hummingbird-ci/gitlab-ci:latest"
    given = fake_podman(tmp_path, f"touch {tmp_path}/pulled")
    with pytest.raises(SandboxUnavailable, match="starts something else"):  # after the pull, the second run
        await PodmanBackend(image, environment=given).start()
    assert f"pull --quiet {image}" in (tmp_path / "asked").read_text()


async def test_a_pull_that_fails_says_what_to_try(tmp_path: Path) -> None:
    given = fake_podman(tmp_path, 'echo "Error: denied" >&2; exit 125')
    with pytest.raises(SandboxUnavailable, match=r"pulling it failed: .*denied.*Try `podman pull quay.io/x:1`"):
        await PodmanBackend("quay.io/x:1", environment=given).start()


def _greeting(python: str, missing: str) -> str:
    words = f'{{"python": [{python}], "missing": [{missing}], "memory": "1", "processes": "1", "mounts": []}}'
    return f"#!/bin/sh\necho '{words}'\nexec sleep 60"


FLAWS = {
    "has no python3": {},
    r"python3 of the image .* is 3\.6": {"bin/python3": _greeting("3, 6", "")},
    "has no tar": {"bin/python3": _greeting("3, 9", '"tar"')},
    "starts something else": {"bin/python3": "#!/bin/sh\necho hello; exec sleep 60"},
    "could not start a container": {"bin/python3": "#!/bin/sh\necho broken >&2; exit 1"},
}


@pytest.mark.thorough
@pytest.mark.parametrize("flaw", FLAWS)
async def test_an_image_that_will_not_do_is_refused_with_what_it_lacks_and_leaves_nothing(flaw: str) -> None:
    place = PodmanBackend(tiny_image(FLAWS[flaw]), environment=os.environ)
    with pytest.raises(SandboxUnavailable, match=flaw) as caught:
        await place.start()
    assert str(caught.value).endswith(".")
    assert not exists(place.container)


@pytest.mark.thorough
async def test_a_directory_of_the_host_in_every_container_is_refused(tmp_path: Path) -> None:
    """As volumes in an operator's containers.conf would put it there."""
    configuration = tmp_path / "containers.conf"
    configuration.write_text(f'[containers]\nvolumes = ["{tmp_path}:/run/secrets"]\n')
    place = PodmanBackend(sandbox_image(), environment={**os.environ, "CONTAINERS_CONF": str(configuration)})
    with pytest.raises(SandboxUnavailable, match="mounts /run/secrets into every container"):
        await place.start()
    assert not exists(place.container)


@pytest.mark.thorough
@pytest.mark.parametrize("flag", ["--memory", "--pids-limit"])
async def test_a_machine_that_does_not_enforce_the_limits_is_refused(flag: str) -> None:
    def unlimited(container: ContainerSpec, name: str) -> list[str]:
        first, *rest = [word for word in run_arguments(container, name) if not word.startswith(flag)]
        return [first, *(["--pids-limit=-1"] if flag == "--pids-limit" else []), *rest]

    place = PodmanBackend(sandbox_image(), environment=os.environ, arguments=unlimited)
    with pytest.raises(SandboxUnavailable, match="does not limit memory and processes"):
        await place.start()
    assert not exists(place.container)


@pytest.mark.thorough
async def test_what_podman_says_when_it_refuses_is_told() -> None:
    def odd(container: ContainerSpec, name: str) -> list[str]:
        return ["run", "--no-such-flag", *run_arguments(container, name)[1:]]

    place = PodmanBackend(sandbox_image(), environment=os.environ, arguments=odd)
    with pytest.raises(SandboxUnavailable, match="unknown flag: --no-such-flag"):
        await place.start()
