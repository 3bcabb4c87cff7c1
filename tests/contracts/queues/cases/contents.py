"""Bodies, groups and ids that are large or odd: larger ones travel by reference."""

import pytest

from hummingbird.core.errors import InvalidRequest
from hummingbird.core.limits import QUEUE_BODY_BYTES
from tests.contracts.queues.stage import Stage, nothing, one

_ODD = (
    "ünï¢ødé 🐦 \U0010ffff \u202e עברית",
    "tabs\tlines\r\nand\rreturns\n",
    "  spaces at both ends  ",
    '<xml attr="&amp;">]]></xml> {"json": null} \'; DROP TABLE messages; --',
    "\ufeffa mark of order",
    "\x7f\x85\u2028\ufffd",
)


async def odd_bodies_arrive_as_they_were_sent(stage: Stage) -> None:
    queue = await stage.queue()
    for number, body in enumerate(_ODD):
        await queue.send(body, group="a", dedup_id=str(number))
    assert tuple(message.body for message in await queue.receive(10, 0)) == _ODD


async def a_body_of_the_largest_size_arrives_and_a_larger_one_is_refused(stage: Stage) -> None:
    queue = await stage.queue()
    largest = "ü" * (QUEUE_BODY_BYTES // 2)
    await queue.send(largest, group="a", dedup_id="1")
    with pytest.raises(InvalidRequest, match=r"weighs 262145 bytes .* store it and send its name\.$"):
        await queue.send(largest + "x", group="a", dedup_id="2")
    held = await one(queue)
    assert held.body == largest
    await queue.delete(held)
    await nothing(queue)


async def what_no_queue_can_carry_is_refused_by_a_sentence(stage: Stage) -> None:
    queue = await stage.queue()
    for char, name in (("\0", "U+0000"), ("\x1b", "U+001B"), ("\ud800", "U+D800"), ("\uffff", "U+FFFF")):
        with pytest.raises(InvalidRequest) as caught:
            await queue.send(f"ab{char}c", group="a", dedup_id="1")
        assert f"{name} at position 2; encode the body." in str(caught.value)
    with pytest.raises(InvalidRequest, match="no empty message"):
        await queue.send("", group="a", dedup_id="1")
    await nothing(queue)


async def names_that_no_queue_takes_are_refused_by_a_sentence(stage: Stage) -> None:
    queue = await stage.queue()
    for name in ("", "x" * 129, "with space", "ü", "line\n", "\0"):
        for group, dedup_id in ((name, "1"), ("a", name)):
            with pytest.raises(InvalidRequest, match=r"is 1 to 128 ASCII characters .* hash of it\.$"):
                await queue.send("1", group=group, dedup_id=dedup_id)
    await nothing(queue)


async def names_of_the_full_length_and_all_punctuation_are_taken(stage: Stage) -> None:
    queue = await stage.queue()
    group = "".join(map(chr, range(ord("!"), ord("~") + 1))).ljust(128, "x")
    await queue.send("1", group=group, dedup_id=group)
    assert (await one(queue)).group == group


async def a_receive_that_makes_no_sense_is_refused(stage: Stage) -> None:
    queue = await stage.queue()
    for most, wait_s in ((0, 0.0), (11, 0.0), (1, -1.0), (1, 21.0), (1, float("nan"))):
        with pytest.raises(InvalidRequest, match="ask again"):
            await queue.receive(most, wait_s)
