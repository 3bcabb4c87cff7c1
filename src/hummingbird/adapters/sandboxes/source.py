"""The program in `inside`, as text and as the arguments that start it.

A process inside is told to run a short loader; the program itself comes over one of the process's descriptors. So it
need not be in the image, a command cannot change it for the next one, no list of processes is full of it, and no
address of an API server carries it.
"""

import ast
import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path

_INSIDE = Path(__file__).parent / "inside"
_ROOM = "hummingbird.adapters.sandboxes.inside"
_ORDER = ("frames", "processes", "watch", "command", "files", "doors")  # each may import those before it

_HEADER = 8  # digits that say how long the program is
_LOADER = """\
import os
def r(n,b=b""):
 while len(b)<n:b+=os.read({fd},n-len(b))or os._exit(0)
 return b
exec(r(int(r({header}))))"""
_LOADING = """\
import json, sys, types
sys.modules[{room!r}] = types.ModuleType({room!r})
for name, text in json.loads({modules!r}):
    module = sys.modules[name] = types.ModuleType(name)
    setattr(sys.modules[{room!r}], name.rpartition(".")[2], module)
    exec(compile(text, name, "exec"), module.__dict__)
module.main({arguments!r})
"""


@cache
def _modules() -> str:
    """The program's modules in an order in which they can be loaded."""
    return json.dumps([(f"{_ROOM}.{name}", (_INSIDE / f"{name}.py").read_text("utf-8")) for name in _ORDER])


@cache
def program(*arguments: str) -> bytes:
    """What the loader wants to hear first."""
    text = _LOADING.format(room=_ROOM, modules=_modules(), arguments=list(arguments)).encode()
    return str(len(text)).zfill(_HEADER).encode() + text


def loader(fd: int = 0, python: str = "python3") -> Sequence[str]:
    """Arguments of a process that reads the program from a descriptor and becomes it."""
    return [python, "-I", "-S", "-c", _LOADER.format(fd=fd, header=_HEADER)]


def keeper(python: str = "python3") -> Sequence[str]:
    """Arguments of process 1 of a container."""
    text = ast.unparse(ast.parse((_INSIDE / "keeper.py").read_text("utf-8")))
    return [python, "-I", "-S", "-c", text]
