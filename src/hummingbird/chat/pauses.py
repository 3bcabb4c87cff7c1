"""Keeps what goes on behind the prompt from holding up the keys, in a process that is there for one person.

Thousands of entries are hundreds of thousands of objects, none of them garbage while their session is open. A look
through all of them takes 100 to 200 ms, in which no key appears and no interrupt is heard. And while a thread stores
such a session, whoever waits for a key has to ask for its turn with every read, every write and every wait.
"""

import gc
import sys

_YOUNG = 20_000  # new objects before the collector looks, for 3 ms; a turn in a long session makes 70,000
_TURN_S = 0.0005  # that a thread may go on while another one waits: Python's own 5 ms add up to 70 for one key


def settled() -> None:
    """What is there by now stays out of the collector's sight; what is no longer referred to is freed all the same."""
    again = gc.get_freeze_count() > 0
    gc.unfreeze()
    gc.collect(2 if again else 1)  # the session before; the first time, what reading one has left, which is young
    gc.freeze()
    gc.set_threshold(_YOUNG, 10, 20)
    sys.setswitchinterval(_TURN_S)
