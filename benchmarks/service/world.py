"""GitLab and the model's vendor for a burst, in a process of their own: `python -m … MANY DELAY_S`.

Prints where they are as a line of JSON, then answers each line of its standard input with one, and ends with it.
"""

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from benchmarks.service.crowd import CASE, Crowd, EndlessScript
from hummingbird.lab.case import find_case
from hummingbird.lab.scene import Scene
from tests.standins.vendors.server import VendorLab


def main(many: int, delay_s: float) -> None:
    with Scene(find_case(CASE)) as scene, VendorLab(EndlessScript(delay_s)) as vendor:
        crowd = Crowd(scene, many)
        _say({"gitlab": scene.url("gitlab"), "model": vendor.anthropic_url})
        asked: dict[str, Callable[..., list[Any]]] = {
            "failures": crowd.failures,
            "replies": lambda each, threads: crowd.replies(int(each), int(threads)),
            "seen": lambda: crowd.seen,
        }
        for line in sys.stdin:
            word, *more = line.split()
            _say([asdict(each) for each in asked[word](*more)])


def _say(what: Any) -> None:
    print(json.dumps(what), flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]), float(sys.argv[2]))
