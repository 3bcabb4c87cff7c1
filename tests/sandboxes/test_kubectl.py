"""What kubectl says about a conversation, and what it says for no reason."""

import os
from pathlib import Path

import pytest

from hummingbird.sandboxes.command_sandbox import LinkEnd
from hummingbird.sandboxes.kubernetes_pod import Kubectl

EARLY = "E1118 01:42:42.882634   29651 websocket.go:297] Unknown stream id 1, discarding message\n"
AWAY = (
    'E1118 01:42:43.000001   29651 memcache.go:265] "Unhandled Error" err="couldn\'t get current server API group '
    'list: Get \\"https://10.96.0.1:443/api\\": dial tcp 10.96.0.1:443: connect: connection refused"\n'
)
LOST = "the connection to its pod was lost, and nothing says why; the kubelet or the API server may have restarted."
BROKEN = "error: unable to upgrade connection: pod does not exist\n"


@pytest.mark.parametrize(
    ("said", "words", "asked"),
    [
        ("", LOST, False),
        (EARLY, LOST, False),
        (AWAY + EARLY, LOST, False),
        (AWAY + BROKEN, BROKEN.strip(), True),
        (EARLY + BROKEN, BROKEN.strip(), True),
        (BROKEN + EARLY + EARLY, BROKEN.strip(), True),
        (f"It said: {EARLY}", f"It said: {EARLY}".strip(), True),
    ],
)
async def test_kubectls_log_is_no_word_for_people(tmp_path: Path, said: str, words: str, *, asked: bool) -> None:
    """Nor is the pod asked what is wrong with it then. One that looks well may be kept: only the way to it is lost."""
    (tmp_path / "said").write_text(said)
    program = tmp_path / "kubectl"
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/said >&2\ncat >/dev/null\n")
    program.chmod(0o755)
    verdicts = list[str]()

    async def verdict() -> str:
        verdicts.append("asked")
        return ""

    link = await Kubectl(str(program), (), {"PATH": os.environ["PATH"]}).open_link("one", verdict)
    assert await link.close() == LinkEnd(error_output=words, is_lost=True)
    assert bool(verdicts) is asked
