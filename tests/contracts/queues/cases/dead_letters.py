"""What was received three times and never deleted."""

import pytest

from hummingbird.core.errors import UsageError
from hummingbird.core.limits import QUEUE_RECEIVES
from hummingbird.core.protocols.queues import DeadLetter, Queue
from tests.contracts.queues.stage import Stage, nothing, one, sent


async def the_third_receive_is_the_last_and_the_group_goes_on(stage: Stage) -> None:
    queue = await stage.queue()
    (message_id, _) = await sent(queue, "a", "bad", "good")
    assert not await queue.list_dead_letters()
    counts = [await _fail(queue) for _ in range(QUEUE_RECEIVES)]
    assert counts == [1, 2, 3]
    assert (await one(queue)).body == "good"
    assert list(await queue.list_dead_letters()) == [DeadLetter(message_id, "a", "bad")]


async def the_last_receive_may_still_succeed(stage: Stage) -> None:
    queue = await stage.queue()
    await sent(queue, "a", "1")
    await _fail(queue)
    await _fail(queue)
    last = await one(queue)
    assert last.receives == QUEUE_RECEIVES
    await queue.extend_lease(last, 30)
    await queue.delete(last)
    await nothing(queue)
    assert not await queue.list_dead_letters()


async def a_holder_who_dies_each_time_makes_a_dead_letter_too(stage: Stage) -> None:
    """Crashes count."""
    queue = await stage.queue(visibility_s=1)
    await sent(queue, "a", "1")
    assert [(await one(queue)).receives for _ in range(QUEUE_RECEIVES)] == [1, 2, 3]
    assert not await queue.receive(1, 2.5)
    assert [letter.body for letter in await queue.list_dead_letters()] == ["1"]


async def a_look_at_dead_letters_changes_nothing(stage: Stage) -> None:
    queue = await stage.queue()
    for number in range(12):
        await _bury(queue, f"g{number}", f"bad-{number}")
    looks = [await queue.list_dead_letters() for _ in range(4)]
    assert [sorted(letter.body for letter in look) for look in looks] == [sorted(f"bad-{n}" for n in range(12))] * 4


async def all_letters_of_a_group_come_to_light_in_their_order_as_they_are_dropped(stage: Stage) -> None:
    """One look may not show all of them: SQS gives 10 at once, and then the group is locked."""
    queue = await stage.queue()
    for number in range(12):
        await _bury(queue, "a", f"bad-{number}")
    dropped: list[str] = []
    while letters := await queue.list_dead_letters():
        for letter in letters:
            await queue.delete_dead_letter(letter.id)
            dropped.append(letter.body)
    assert dropped == [f"bad-{number}" for number in range(12)]


async def a_dead_letter_that_is_retried_starts_anew_at_the_end_of_its_group(stage: Stage) -> None:
    queue = await stage.queue()
    await _bury(queue, "a", "bad")
    await _bury(queue, "b", "worse")
    await sent(queue, "a", "good")
    letter = next(letter for letter in await queue.list_dead_letters() if letter.body == "bad")
    new_id = await queue.retry_dead_letter(letter.id)
    found = await queue.receive(10, 0)
    assert [(message.body, message.receives) for message in found] == [("good", 1), ("bad", 1)]
    assert found[1].id == new_id
    assert [letter.body for letter in await queue.list_dead_letters()] == ["worse"]


async def what_was_retried_can_die_and_be_retried_again(stage: Stage) -> None:
    queue = await stage.queue()
    await _bury(queue, "a", "bad")
    for _ in range(2):
        (letter,) = await queue.list_dead_letters()
        await queue.retry_dead_letter(letter.id)
        for _ in range(QUEUE_RECEIVES):
            await _fail(queue)
        await nothing(queue)
    assert [letter.body for letter in await queue.list_dead_letters()] == ["bad"]


async def a_dead_letter_can_be_dropped_and_then_is_unknown(stage: Stage) -> None:
    queue = await stage.queue()
    await _bury(queue, "a", "bad")
    await _bury(queue, "a", "worse")
    letter = next(letter for letter in await queue.list_dead_letters() if letter.body == "bad")
    await queue.delete_dead_letter(letter.id)
    assert [letter.body for letter in await queue.list_dead_letters()] == ["worse"]
    for verb in (
        queue.delete_dead_letter(letter.id),
        queue.retry_dead_letter(letter.id),
        queue.retry_dead_letter("nonsense"),
        queue.delete_dead_letter(""),
    ):
        with pytest.raises(UsageError, match=r"no dead letter .*ids\.$"):
            await verb
    await nothing(queue)


async def a_living_message_is_no_dead_letter(stage: Stage) -> None:
    queue = await stage.queue()
    (message_id,) = await sent(queue, "a", "1")
    with pytest.raises(UsageError, match="no dead letter"):
        await queue.delete_dead_letter(message_id)
    assert (await one(queue)).id == message_id


async def _fail(queue: Queue) -> int:
    message = await one(queue)
    await queue.postpone(message, 0)
    return message.receives


async def _bury(queue: Queue, group: str, body: str) -> None:
    await sent(queue, group, body)
    for _ in range(QUEUE_RECEIVES):
        await _fail(queue)
    await nothing(queue)
