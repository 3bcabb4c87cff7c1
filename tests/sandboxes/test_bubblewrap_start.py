"""Starting bubblewrap waits for no pipe: whoever has many gets pipes of 8 KiB, less than the program that goes in."""

import os
from contextlib import ExitStack

import pytest

from hummingbird.sandboxes import bubblewrap


@pytest.mark.timeout(30)  # to tell what hangs from what does not
def test_what_bubblewrap_reads_waits_for_no_reader() -> None:
    content = os.urandom(200_000)
    with ExitStack() as held:
        descriptor = bubblewrap._memory_file(content, held)
        assert os.read(descriptor, len(content) + 1) == content
        assert os.read(descriptor, 1) == b""
