"""Buckets in memory keep what they can of the contract, so that what is tried on them holds on others."""

import pytest

from hummingbird.core.protocols.storage import VersionedObjectStore
from hummingbird.storage.object_store import BucketObjectStore
from tests.contracts.storage.cases import listing, looking, racing, trouble
from tests.contracts.storage.cases.flows import a_flow_comes_in_pieces_and_can_be_left_early
from tests.contracts.storage.stage import Case, Stage
from tests.contracts.storage.suite import CASES

_NOT_IN_MEMORY = (  # what is opened twice there is two stores; no bucket can be missing; pieces are as they are held
    looking.two_who_opened_the_same_place_see_the_same,
    trouble.a_bucket_that_is_not_there_is_a_sentence_from_every_verb,
    a_flow_comes_in_pieces_and_can_be_left_early,
    racing.of_eight_processes_exactly_one_wins_each_round,
    listing.what_is_written_again_is_newer_in_the_list,  # it is, but a second later takes a second
)


class InMemory:
    def address(self) -> str:
        return "memory://"

    def nowhere(self) -> str:
        raise NotImplementedError


class MemoryStage(Stage):
    def opened(self, address: str) -> VersionedObjectStore:
        return BucketObjectStore.in_memory()


@pytest.mark.parametrize("case", [one for one in CASES if one not in _NOT_IN_MEMORY], ids=lambda case: case.__name__)
async def test_memory_keeps_the_contract(case: Case) -> None:
    await MemoryStage(InMemory()).play(case)
