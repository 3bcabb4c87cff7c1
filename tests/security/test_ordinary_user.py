"""The same attempts where a sandbox is started by an ordinary user, who has no rights to give up first."""

import json
import os
import subprocess
import sys
import sysconfig

import pytest

from tests.real_parts import missing
from tests.security.attempt import Verdict
from tests.security.host import PROJECT, TOKEN_NAME, Host
from tests.security.ordinary import ORDINARY_UID


def as_ordinary_user(*argv: str, given: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        argv,
        input=given,
        capture_output=True,
        text=True,
        check=False,
        timeout=100,
        cwd=PROJECT,
        env={
            **{name: value for name, value in os.environ.items() if name in {"PATH", TOKEN_NAME}},
            "PYTHONPATH": ":".join([str(PROJECT / "src"), str(PROJECT), sysconfig.get_path("purelib")]),
            "PYTHONDONTWRITEBYTECODE": "1",
        },
        user=ORDINARY_UID,
        group=ORDINARY_UID,
        extra_groups=[],
    )


def usable_python() -> str:
    """This interpreter may lie in somebody's home; the system's does as well where it is the same version."""
    found = [python for python in (sys.executable, "/usr/bin/python3") if _is_usable(python)]
    return found[0] if found else missing("the project and its Python lie where an ordinary user cannot read them")


def _is_usable(python: str) -> bool:
    try:
        told = as_ordinary_user(python, "-c", "import sys, msgspec, pytest; print(sys.version_info[:2])")
    except OSError:
        return False
    return told.stdout.strip() == str(sys.version_info[:2])


@pytest.mark.thorough
def test_every_attempt_fails_in_an_ordinary_users_sandbox(host: Host, subtests: pytest.Subtests) -> None:
    if os.geteuid() != 0:
        pytest.skip("whoever runs the tests is an ordinary user, so that all of them are this one")
    done = as_ordinary_user(usable_python(), "-m", "tests.security.ordinary", given=json.dumps(host.world))
    assert done.returncode == 0, done.stderr
    for name, (verdict, words) in json.loads(done.stdout).items():
        with subtests.test(name):
            assert verdict == (Verdict.REFUSED if name else Verdict.GOT).value, words
