"""A process that owns a podman sandbox, for tests that kill it: says the container's name and waits.

python podman_owner.py IMAGE
"""

import asyncio
import os
import sys

from hummingbird.sandboxes.podman import PodmanBackend


async def main() -> None:
    place = PodmanBackend(sys.argv[1], environment=os.environ)
    await place.start()
    sys.stdout.write(f"{place.container}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await place.remove()


if __name__ == "__main__":
    asyncio.run(main())
