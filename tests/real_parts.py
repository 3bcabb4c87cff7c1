"""A missing real part is a skip with a reason on a laptop and a failure where CI=true."""

import os
import shutil
import sys
from pathlib import Path
from typing import NoReturn

import pytest


def missing(reason: str) -> NoReturn:
    if os.environ.get("CI") == "true":
        pytest.fail(reason)
    pytest.skip(reason)


def program(name: str) -> str:
    """The path of a program that tests run for real."""
    return shutil.which(name) or missing(f"{name} is not on this machine: install it.")


def npm_program(name: str) -> str:
    """The path of a program of an npm package, which scripts/real-parts puts into the environment."""
    found = Path(sys.prefix) / "npm" / "node_modules" / ".bin" / name
    if not found.exists():
        missing(f"{name} is not in the environment: run scripts/real-parts where npm is installed.")
    program("node")
    return str(found)
