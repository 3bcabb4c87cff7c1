"""docs/costs.md: what its program prints stands below it, so that its prices are those of the list that is used."""

import re
import subprocess
import sys

_SHOWN = re.compile(r"```python\n(?P<code>.*?)```\n\n```text\n(?P<printed>.*?)```", re.DOTALL)


def renewed(text: str) -> str:
    """The page with the output of each program that output is shown of."""
    return _SHOWN.sub(_ran, text)


def _ran(shown: re.Match[str]) -> str:
    program = [sys.executable, "-W", "error", "-c", shown["code"]]
    printed = subprocess.run(program, check=True, capture_output=True, text=True, timeout=60).stdout
    return f"```python\n{shown['code']}```\n\n```text\n{printed}```"
