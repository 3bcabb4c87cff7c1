"""The attempts in a bubblewrap sandbox that an ordinary user has started. A program of its own: whoever gave root's
identity up has given it up for good. Reads what the attempts are told, says what came of each."""

import asyncio
import json
import sys

from hummingbird.sandboxes.bubblewrap import BubblewrapBackend
from tests.security.attempts.table import LIGHT
from tests.security.backends import in_a_sandbox

ORDINARY_UID = 54321


def main() -> None:
    attempts = [attempt for attempt in LIGHT if attempt.is_for("bubblewrap")]
    found = asyncio.run(in_a_sandbox(BubblewrapBackend(), attempts, json.load(sys.stdin)))
    sys.stdout.write(json.dumps({name: [outcome.verdict.value, outcome.words] for name, outcome in found.items()}))


if __name__ == "__main__":
    main()
