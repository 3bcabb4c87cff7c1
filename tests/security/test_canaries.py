"""A value for every tier of tokens, looked for at every sink that a journey leads to. None is found, unless one
is planted.

Two journeys, one with sessions in a folder and one with them in a bucket: `canary_journey` says what happens on them,
`sinks` where is looked.
"""

import json
from pathlib import Path

import pytest

from tests.contracts.queues.backends.ministack import Ministack
from tests.journeys.service.conftest import in_a_hurry  # noqa: F401 - a fixture
from tests.security.canaries import TIERS, ways
from tests.security.canary_journey import OF_THE_PROCESS, Trail, to_a_bucket, to_a_folder
from tests.security.sinks import BUCKET, FOLDER, READS, SINKS, WRITES, Sink, of_the_bot, of_the_reader

WAYS = tuple(ways("any value"))


def empty(folder: Path) -> Trail:
    return Trail(folder / "state", folder / "exported")


async def test_no_credential_is_at_any_sink_of_a_journey_that_ends_in_a_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    judge(await to_a_folder(tmp_path, monkeypatch), FOLDER)


@pytest.mark.thorough
async def test_no_credential_is_at_any_sink_of_a_journey_that_ends_in_a_bucket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cloud: Ministack
) -> None:
    judge(await to_a_bucket(tmp_path, monkeypatch, cloud), BUCKET)


def judge(trail: Trail, journey: str) -> None:
    """Something came to each sink, nothing of it is secret, and the search would have found it there."""
    reached = [sink for sink in SINKS if sink.on in ("", journey)]
    assert [sink.name for sink in reached if not any(sink.collect(trail).values())] == [], "they prove nothing"
    assert [sentence for sink in reached for sentence in sink.told(trail)] == []
    each_side_has_its_own_token(trail)
    everything_happened(trail)
    for sink in reached:
        sink.plant(trail, f"so {TIERS['webhook']} it is")
        assert any(sentence.startswith(f"{sink.name}: ") for sentence in sink.told(trail)), sink.name


def each_side_has_its_own_token(trail: Trail) -> None:
    """No request of the bot that carries what reads, none of a source that carries what writes, and no third side."""
    nobody = ("", "token-of-hsato")  # doctor asks whether GitLab is there; the other one is a person
    asked = [one for one in trail.heard if one.server == "gitlab" and one.header("private-token") not in nobody]
    assert [one for one in asked if not of_the_bot(one) and not of_the_reader(one)] == []
    assert {one.line.split()[0] for one in asked if of_the_reader(one)} == {"GET"}
    for whose, foreign in ((of_the_bot, (READS,)), (of_the_reader, WRITES)):
        values = [TIERS[name] for name in foreign]
        assert [one.line for one in asked if whose(one) and any(value in repr(one.headers) for value in values)] == []
    assert {one.header("authorization") for one in trail.heard if one.server == "konflux"} == {
        f"Bearer {TIERS['konflux']}"
    }


def everything_happened(trail: Trail) -> None:
    """What was to give them away did: a journey on which nobody tried proves nothing."""
    conversation = json.dumps([one.body for one in trail.vendor])
    assert conversation.count("[masked]") > 100
    for attempt in (
        "All of it is in",
        "Which line? I use [masked]",
        "is it [masked]",
        "Let me try [masked]",
        "base64 -d",
    ):
        assert attempt in conversation, attempt
    assert len([one for one in trail.records if one.exc_info and OF_THE_PROCESS in str(one.exc_info[1])]) == 3
    assert [note.body for note in trail.notes if "rules alone" in note.body], "the run without a key was told"


@pytest.mark.parametrize("sink", SINKS, ids=lambda sink: sink.name.replace(" ", "-"))
def test_a_credential_that_is_planted_is_found_in_each_spelling_and_its_sink_is_named(
    tmp_path: Path, sink: Sink
) -> None:
    """The tiers take turns."""
    for number, way in enumerate(WAYS):
        tier = list(TIERS)[(number + SINKS.index(sink)) % len(TIERS)]
        trail = empty(tmp_path / str(number))
        assert sink.told(trail) == []
        sink.plant(trail, ways(TIERS[tier])[way])
        told = sink.told(trail)
        assert told, f"{way}, it was not found"
        assert all(one.startswith(f"{sink.name}: ") and one.endswith(f"the credential {tier!r}") for one in told)


@pytest.mark.parametrize("tier", TIERS)
def test_what_is_a_credential_of_one_tier_is_none_of_another(tmp_path: Path, tier: str) -> None:
    """So that a sentence names the right one."""
    sink, trail = SINKS[0], empty(tmp_path)
    sink.plant(trail, TIERS[tier])
    assert sink.told(trail) == [f"{sink.name}: request 1 tells the credential {tier!r}"]
