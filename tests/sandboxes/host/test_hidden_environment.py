"""A command on the user's machine does not find our credentials in /proc."""

import os
import shutil
import subprocess
import sys

import pytest

NOBODY = "65534"
PROGRAM = """
import subprocess, sys
from hummingbird.sandboxes.host.terminal import hide_process_environment
look = ["sh", "-c", "tr '\\\\0' '\\\\n' < /proc/$PPID/environ | grep -c SESAME"]
before = subprocess.run(look, capture_output=True, text=True, check=False).stdout.strip()
assert hide_process_environment()
after = subprocess.run(look, capture_output=True, text=True, check=False).stdout.strip()
print(before, after)
"""


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="becoming somebody else needs root")
def test_a_command_of_the_same_user_cannot_read_our_environment() -> None:
    """And could before: or the test shows nothing."""
    became = ["setpriv", "--reuid", NOBODY, "--regid", NOBODY, "--clear-groups"]
    environment = {"PATH": "/usr/bin:/bin", "OPEN_TOKEN": "SESAME", "PYTHONPATH": os.pathsep.join(sys.path)}

    def run(program: str) -> subprocess.CompletedProcess[str]:
        command = [*became, sys.executable, "-c", program]
        return subprocess.run(
            command, env=environment, capture_output=True, text=True, timeout=60, check=False, cwd="/"
        )

    if run("import hummingbird").returncode:  # as in a clone below /root
        pytest.skip("nobody else may read this installation")
    done = run(PROGRAM)
    assert done.stdout.split() == ["1", "0"], done.stderr
