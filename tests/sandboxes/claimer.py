"""A process that claims pods of a pool, as another agent would: prints what it got, or reclaims for a session.

python -m tests.sandboxes.claimer KUBECONFIG claim HOW_MANY
python -m tests.sandboxes.claimer KUBECONFIG reclaim SESSION
"""

import asyncio
import sys

from hummingbird.app.console import SystemClock
from hummingbird.sandboxes.kubernetes_api import ClusterOptions, PodApi, find_cluster
from hummingbird.sandboxes.kubernetes_pool import PodPool


async def main(kubeconfig: str, verb: str, word: str) -> None:
    pool = PodPool(PodApi(find_cluster(ClusterOptions(kubeconfig), {})), SystemClock(), lambda _: None)
    try:
        sys.stdout.write("ready\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.readline)  # all begin together
        if verb == "reclaim":
            found = await pool.reclaim(word)
            sys.stdout.write(f"{found.name if found else '-'}\n")
            return
        for pod in await asyncio.gather(*(pool.claim() for _ in range(int(word)))):
            sys.stdout.write(f"{pod.name}\n")
    finally:
        await pool.close()


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
