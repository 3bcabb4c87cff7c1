"""`hummingbird sandbox`: what a person types and sees."""

import os
import re
import signal
from pathlib import Path

import pytest

from tests.cli.typing_in import Typed, typed
from tests.sandbox_image import sandbox_image
from tests.sandboxes.containers import QUICK_MMDEBSTRAP, exists, owner, podman

pytestmark = pytest.mark.timeout(300)  # whoever comes first may have to make the image


def run(*arguments: str, **environment: str) -> Typed:
    """In this process: starting one takes longer than most of what is tried here."""
    return typed("sandbox", *arguments, environment={**os.environ, **environment})


@pytest.mark.parametrize(
    ("command", "teaches"),
    [
        ("", "podman needs an image: `hummingbird sandbox build`"),
        ("build", "If no registry can be reached, build uses the packages"),
        ("check", "Exit code 1: do not use this sandbox"),
        ("gc", "and whose process is dead"),
    ],
)
def test_help_says_what_a_command_is_for(command: str, teaches: str) -> None:
    shown = run(*filter(None, [command]), "--help")
    assert shown.code == 0
    assert teaches in " ".join(shown.out.split())


def test_check_tries_each_promise_and_says_how_long_it_took() -> None:
    done = run("check", "podman", "--image", sandbox_image())
    assert done.code == 0, done.err
    *lines, verdict = done.out.splitlines()
    promises = [match[1].strip() for line in lines if (match := re.fullmatch(r"ok +(.*?) +\d+\.\d\d s", line))]
    assert promises == [
        "starts",
        "runs a command",
        "keeps a file byte for byte",
        "has no network",
        "runs as user 65532 without rights",
        "is removed",
    ]
    assert verdict == "The podman sandbox works."


@pytest.mark.thorough
def test_check_without_the_image_is_one_sentence_and_exit_code_1() -> None:
    sandbox_image()
    done = run("check", "podman", "--image", "localhost/no-such-image:1")
    assert done.code == 1
    assert done.out.startswith("fails  starts")
    assert done.err.startswith("hummingbird: The podman sandbox does not work here: There is no image")
    assert "`hummingbird sandbox build`" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("backend", ["k8s", "k8spool"])
def test_check_without_a_cluster_is_one_sentence(backend: str, tmp_path: Path) -> None:
    """No kubeconfig, so nothing is asked."""
    done = run("check", backend, KUBECONFIG=str(tmp_path / "none"), HOME=str(tmp_path), KUBERNETES_SERVICE_HOST="")
    assert done.code in (1, 2), done.err
    assert done.err.startswith("hummingbird: ")
    assert "Traceback" not in done.err


def test_an_unknown_backend_is_bad_usage() -> None:
    done = run("check", "docker")
    assert done.code == 2
    assert "'bubblewrap', 'podman', 'k8s', 'k8spool'" in done.err


@pytest.mark.thorough
def test_build_makes_the_image_that_was_named_and_says_how_to_try_it(tmp_path: Path) -> None:
    sandbox_image()
    (tmp_path / "mmdebstrap").write_text(QUICK_MMDEBSTRAP)
    (tmp_path / "mmdebstrap").chmod(0o755)
    name = f"localhost/hummingbird-made-test:{os.getpid()}"
    try:
        done = run("build", "--from-packages", "--image", name, PATH=f"{tmp_path}:{os.environ['PATH']}")
        assert done.code == 0, done.err
        assert re.fullmatch(rf"Built {name} in \d+ s\. Test it: hummingbird sandbox check podman\n", done.out)
        assert "I: quick" in done.err
        assert podman("image", "exists", name).returncode == 0
    finally:
        podman("rmi", "--force", "--ignore", name)


def test_build_without_podman_says_what_to_install(tmp_path: Path) -> None:
    done = run("build", PATH=str(tmp_path))
    assert done.code == 2
    assert done.err.startswith("hummingbird: Podman is not installed. Install it")
    assert "Traceback" not in done.err


@pytest.mark.thorough
def test_gc_removes_what_a_killed_process_left_and_says_so() -> None:
    with owner() as (process, container):
        process.send_signal(signal.SIGKILL)
        process.wait()
        done = run("gc")
        assert done.code == 0, done.err
        assert re.fullmatch(r"Removed \d+ leftover sandboxes: .*\.\n|Nothing was left over\.\n", done.out)
        assert not exists(container)
