"""What kubectl says about a conversation, and what it says for no reason."""

import os
from pathlib import Path

import pytest

from hummingbird.sandboxes.backend import LinkEnd
from hummingbird.sandboxes.kubernetes_pod import Kubectl

EARLY = "E1118 01:42:42.882634   29651 websocket.go:297] Unknown stream id 1, discarding message\n"
BROKEN = "error: unable to upgrade connection: pod does not exist\n"


@pytest.mark.parametrize(
    ("said", "words", "asked"),
    [
        ("", "", False),
        (EARLY, "", False),
        (EARLY + BROKEN, BROKEN.strip(), True),
        (BROKEN + EARLY + EARLY, BROKEN.strip(), True),
        (f"It said: {EARLY}", f"It said: {EARLY}".strip(), True),
    ],
)
async def test_an_empty_message_that_came_too_early_for_it_is_no_word_of_it(
    tmp_path: Path, said: str, words: str, *, asked: bool
) -> None:
    """Nor is the pod asked what is wrong with it then."""
    (tmp_path / "said").write_text(said)
    program = tmp_path / "kubectl"
    program.write_text(f"#!/bin/sh\ncat {tmp_path}/said >&2\ncat >/dev/null\n")
    program.chmod(0o755)
    verdicts = list[str]()

    async def verdict() -> str:
        verdicts.append("asked")
        return ""

    link = await Kubectl(str(program), (), {"PATH": os.environ["PATH"]}).open_link("one", verdict)
    assert await link.close() == LinkEnd(killed=False, error_output=words)
    assert bool(verdicts) is asked
