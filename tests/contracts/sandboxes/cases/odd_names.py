"""Any name is a name: nothing of it is taken for an option, a pattern or a command."""

import asyncio
import json
import os

from tests.contracts.sandboxes.questions import at, content, python, said
from tests.contracts.sandboxes.stage import Stage

NAMES = [
    b" two words, 'single' \"double\" `touch made` ",
    b"new\nline tab\tand\\backslash",
    b"-rf",
    b"~",
    b"$(touch made) ${HOME}; touch made; *?[a]{b,c} #",
    b"n" * 255,
    "grün-猫-🐦 ...".encode(),
    b"not utf-8 \xff\xfe\x80, nor printable \x01\x7f\x1b[31m",
]
_MAKE = """
import json, os, sys
os.mkdir("made-inside")
for name in json.load(sys.stdin):
    with open(os.path.join(b"made-inside", name.encode("latin-1")), "wb") as file:
        file.write(b"<" + name.encode("latin-1") + b">")
"""
_LIST = """
import json, os
found = {}
for name in os.listdir(b"odd"):
    found[name.decode("latin-1")] = open(os.path.join(b"odd", name), "rb").read().decode("latin-1")
print(json.dumps(found))
"""


async def odd_names_are_written_as_they_are(stage: Stage) -> None:
    await asyncio.gather(*(stage.sandbox.write_file(os.fsdecode(b"/tmp/data/odd/" + name), name) for name in NAMES))
    found = json.loads(await said(stage.sandbox, python(_LIST)))
    assert {name.encode("latin-1"): held.encode("latin-1") for name, held in found.items()} == {n: n for n in NAMES}
    assert (await stage.sandbox.exec("ls made odd/made made-inside/made")).stdout == b""


async def odd_names_are_read_as_they_are(stage: Stage) -> None:
    await said(stage.sandbox, python(_MAKE), json.dumps([name.decode("latin-1") for name in NAMES]).encode())
    hardest = [NAMES[1], NAMES[2], NAMES[5], NAMES[7]]
    paths = [os.fsdecode(b"/tmp/data/made-inside/" + name) for name in hardest]
    assert await asyncio.gather(*(content(stage.sandbox, path) for path in paths)) == [b"<%b>" % n for n in hardest]


async def an_odd_name_may_be_that_of_a_directory(stage: Stage) -> None:
    path = os.fsdecode(b"/tmp/data/-p \xff/$(id)/\n/file")
    await stage.sandbox.write_file(path, b"below odd directories")
    assert await content(stage.sandbox, path) == b"below odd directories"


async def long_output_goes_to_a_file_with_an_odd_name(stage: Stage) -> None:
    path = at("out put/$(id) 'quoted'\nnamed 猫")
    done = await stage.sandbox.exec("head -c 600000 /dev/zero", stdout_file=path)
    assert done.stdout_file == path
    assert await content(stage.sandbox, path) == bytes(600_000)
