"""A command on the user's machine does not find our credentials in /proc."""

import os
import shutil
import subprocess
import sys
import textwrap

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
    program = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    environment = {"PATH": "/usr/bin:/bin", "OPEN_TOKEN": "SESAME", "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [*became, *program], env=environment, capture_output=True, text=True, timeout=30, check=False, cwd="/"
    )
    if "Permission denied" in done.stderr:
        pytest.skip("nobody else may run this interpreter here")
    assert done.stdout.split() == ["1", "0"], done.stderr
