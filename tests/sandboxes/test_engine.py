"""What podman is started with: little of our environment, and flags where its defaults will not do."""

from pathlib import Path

import pytest

from hummingbird.sandboxes.podman_engine import PodmanEngine


@pytest.fixture
def programs(tmp_path: Path) -> Path:
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("podman", "crun", "runc"):
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    return folder


def test_podman_gets_what_it_needs_and_no_token() -> None:
    needed = {"HOME": "/home/me", "XDG_RUNTIME_DIR": "/run/user/1", "CONTAINERS_CONF": "/etc/mine.conf"}
    ours = {
        "ORCHESTRATOR_GITLAB_TOKEN": "t",
        "ANTHROPIC_API_KEY": "k",
        "AWS_SECRET_ACCESS_KEY": "s",
        "HTTPS_PROXY": "p",
    }
    podman = PodmanEngine({"PATH": "/usr/bin", **needed, **ours})
    path = podman.environment.pop("PATH")
    assert podman.environment == needed
    assert path.startswith("/usr/bin:")


def test_the_hosts_subscription_keys_are_kept_out_of_every_container(programs: Path) -> None:
    """Distributions mount them by a file of their own."""
    command = PodmanEngine({"PATH": str(programs)}).build_argv("run")
    assert command[0] == str(programs / "podman")
    assert "--default-mounts-file=/dev/null" in command


@pytest.mark.parametrize(
    ("hierarchy", "without", "chosen"),
    [
        (["unified/"], "", True),
        (["unified/"], "crun", False),
        (["unified/"], "runc", False),
        (["cgroup.controllers"], "", False),
        ([], "", False),
    ],
    ids=["hybrid", "hybrid without crun", "hybrid without runc", "version 2", "version 1"],
)
def test_runc_is_chosen_where_crun_would_refuse_to_work(
    tmp_path: Path, programs: Path, hierarchy: list[str], without: str, chosen: bool
) -> None:
    cgroups = tmp_path / "cgroups"
    cgroups.mkdir()
    for name in hierarchy:
        (cgroups / name).mkdir() if name.endswith("/") else (cgroups / name).touch()
    if without:
        (programs / without).unlink()
    podman = PodmanEngine({"PATH": str(programs)}, cgroups=cgroups)
    podman.environment["PATH"] = str(programs)  # not this machine's
    assert ("--runtime=runc" in podman.build_argv("run")) is chosen


@pytest.mark.parametrize(
    ("handed_on", "may"), [("cpu memory pids", True), ("cpuset memory pids", False), (None, False)]
)
def test_an_ordinary_user_limits_cpus_only_where_that_is_handed_on(
    tmp_path: Path, handed_on: str | None, may: bool
) -> None:
    folder = tmp_path / "user.slice/user-1000.slice/user@1000.service"
    if handed_on is not None:
        folder.mkdir(parents=True)
        (folder / "cgroup.controllers").write_text(handed_on + "\n")
    assert PodmanEngine({}, cgroups=tmp_path, user=1000).can_limit_cpus() is may
    assert PodmanEngine({}, cgroups=tmp_path, user=0).can_limit_cpus()
