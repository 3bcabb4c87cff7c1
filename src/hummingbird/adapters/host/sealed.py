"""What this process was given stays its own (I1, I2): commands that run as the same user are handed an environment
without credentials, and must not find them in ours either, in /proc."""

import ctypes
import sys

_SET_DUMPABLE = 4  # prctl(2): what is not dumpable has its files below /proc owned by root


def seal() -> bool:
    """For this process, once and for good; programs that it starts are as usual. Whether the kernel took it: on others
    than Linux there is nothing to seal, and root reads everything anywhere."""
    if not sys.platform.startswith("linux"):
        return False
    return bool(ctypes.CDLL(None).prctl(_SET_DUMPABLE, 0, 0, 0, 0) == 0)
