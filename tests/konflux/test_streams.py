"""Streams that are read by halves, by several at once, or by nobody, and servers that say odd things."""

import asyncio
import gzip
import json
import random
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import parse_qs

import pytest

from hummingbird.core.errors import HummingbirdError, SourceUnavailable
from hummingbird.core.limits import KONFLUX_ITEM_CHARS, KONFLUX_PAGE, SOURCE_ATTEMPTS
from hummingbird.core.protocols.tools import ByteStream
from hummingbird.konflux import servers
from hummingbird.konflux.source import KonfluxSource
from hummingbird.lab.fault_injection import DropConnection, FaultGate, FaultResponse, Hold
from tests.konflux.stage import PODS, RUNS, SHA, Asked, before, konflux, parted, thing
from tests.standins.konflux_lab import KonfluxLab

BUILDS = "*pipelinesascode*"


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[KonfluxLab]:
    with konflux(tmp_path / "case") as running:
        yield running


def busy(asked: Asked) -> list[str]:
    """Connections that are in use."""
    source = asked.source
    assert isinstance(source, KonfluxSource)
    pools = [client._transport._pool for client in source._connections._clients]  # type: ignore[attr-defined]  # inside
    return [repr(each) for pool in pools for each in pool.connections if not each.is_idle()]


async def test_a_list_that_nobody_begins_to_read_is_closed(lab: KonfluxLab, tmp_path: Path) -> None:
    lab.add_many("PipelineRun", KONFLUX_PAGE, thing("PipelineRun", "live", spec={"x": "y" * 5_000}))
    async with before(lab, tmp_path) as asked:
        output = await asked("list_pipelineruns", sha=SHA)
        assert isinstance(output, ByteStream)
        assert busy(asked) != []
        await output.chunks.aclose()  # type: ignore[attr-defined]  # a look inside a library
        assert busy(asked) == []


async def test_a_call_that_is_given_up_leaves_no_connection(lab: KonfluxLab, tmp_path: Path) -> None:
    gate = FaultGate()
    lab.cluster_faults.plan(RUNS, Hold(gate))
    async with before(lab, tmp_path) as asked:
        call = asyncio.create_task(asked.lines("list_pipelineruns", sha=SHA))
        await asyncio.to_thread(gate.reached.wait)
        assert busy(asked) != []
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert busy(asked) == []
        gate.open()
        assert "nothing_found" in (await asked.lines("list_pipelineruns", sha=SHA))[0]


@pytest.mark.thorough
async def test_a_source_that_is_closed_while_it_is_read_says_so(lab: KonfluxLab, tmp_path: Path) -> None:
    lab.add_many("PipelineRun", 3 * KONFLUX_PAGE, thing("PipelineRun", "live"))
    async with before(lab, tmp_path) as asked:
        output = await asked("list_pipelineruns", sha=SHA)
        assert isinstance(output, ByteStream)
        lines = [await anext(output.chunks)]
        await asked.source.close()
        lines += [line async for line in output.chunks]
    names, gap = parted([json.loads(line) for line in lines])
    assert names
    assert "was closed while it was read" in gap or "broke off" in gap


@pytest.mark.thorough
async def test_several_calls_at_once_do_not_disturb_each_other(lab: KonfluxLab, tmp_path: Path) -> None:
    lab.add_many("PipelineRun", KONFLUX_PAGE + 5, thing("PipelineRun", "live"))
    lab.add_many("PipelineRun", 20, thing("PipelineRun", "old", value="1" * 40), archived=True)
    async with before(lab, tmp_path) as asked:
        calls = [asked.names("list_pipelineruns", sha=sha) for sha in (SHA, "1" * 40) * 4]
        found = await asyncio.gather(*calls)
    assert [len(names) for names in found] == [KONFLUX_PAGE + 5, 20] * 4


@pytest.mark.thorough
@pytest.mark.parametrize("token", ["x" * 100_000, "\ud800", "\r\nX-Evil: 1"], ids=["long", "surrogate", "header"])
async def test_a_token_that_no_address_holds_is_a_gap(lab: KonfluxLab, tmp_path: Path, token: str) -> None:
    lab.add(thing("PipelineRun", "old"), archived=True)
    page = {"items": [thing("PipelineRun", "one")], "metadata": {"continue": token}}
    lab.cluster_faults.plan(RUNS, FaultResponse(200, page), query=BUILDS)
    async with before(lab, tmp_path) as asked:
        names, gap = parted(await asked.lines("list_pipelineruns", sha=SHA))
    assert names == ["one", "old"]
    assert "The cluster, pipelineruns: " in gap
    assert not any("x-evil" in request.headers for request in lab.requests)


@pytest.mark.thorough
async def test_an_item_that_is_too_long_or_odd_is_left_out_and_said(lab: KonfluxLab, tmp_path: Path) -> None:
    long = json.dumps(thing("PipelineRun", "long", spec="x" * (KONFLUX_ITEM_CHARS + 600_000)))
    deep = '{"a":' + "[" * 5_000 + "]" * 5_000 + "}"
    good = [json.dumps(thing("PipelineRun", name)) for name in ("one", "two", "three")]
    body = f'{{"items":[{good[0]},{long},{good[1]},{deep},null,{good[2]}],"metadata":{{}}}}'
    lab.cluster_faults.plan(RUNS, FaultResponse(200, body.encode()), query=BUILDS)
    async with before(lab, tmp_path, archive=False) as asked:
        names, gap = parted(await asked.lines("list_pipelineruns", sha=SHA))
    assert names == ["one", "two", "three"]
    assert gap == "The cluster, pipelineruns: 3 items could not be read and were left out."


async def test_what_was_gathered_when_a_page_broke_off_is_kept(lab: KonfluxLab, tmp_path: Path) -> None:
    """Text is gathered while an item is not whole; the items behind that one are whole already when the end fails."""
    runs = [
        thing("PipelineRun", f"run-{number}", spec=random.Random(number).randbytes(20_000).hex()) for number in range(9)
    ]
    packed = gzip.compress(json.dumps({"items": runs}).encode(), 1)[:-4]
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    lab.cluster_faults.plan(RUNS, FaultResponse(200, packed, headers), query=BUILDS)
    async with before(lab, tmp_path, archive=False) as asked:
        names, gap = parted(await asked.lines("list_pipelineruns", sha=SHA))
    assert names == [f"run-{number}" for number in range(9)]
    assert "broke off in the middle of compressed data" in gap


@pytest.mark.thorough
async def test_a_page_that_gives_nothing_but_its_token_does_not_end_the_list(lab: KonfluxLab, tmp_path: Path) -> None:
    for number in range(KONFLUX_PAGE + 5):
        lab.add(thing("Pod", f"pod-{number:05d}", spec={"x": random.Random(number).randbytes(2_000).hex()}))
    cut = {"kind": "PodList", "metadata": {"continue": await first_token(lab, tmp_path)}}
    half = json.dumps(cut).encode()[:-1] + b',"items":[{"metadata"'
    lab.cluster_faults.plan(PODS, FaultResponse(200, half), query=BUILDS)
    async with before(lab, tmp_path, archive=False) as asked:
        names, gap = parted(await asked.lines("list_pods", sha=SHA))
    assert names == [f"pod-{number:05d}" for number in range(KONFLUX_PAGE, KONFLUX_PAGE + 5)]
    assert gap.endswith("The rest of that page is missing.")


async def first_token(lab: KonfluxLab, folder: Path) -> str:
    """With which the second page of the cluster's pods is asked for."""
    async with before(lab, folder, archive=False) as asked:
        await asked.lines("list_pods", sha=SHA)
    queries = [parse_qs(request.query) for request in lab.requests]
    return next(query["continue"][0] for query in queries if "continue" in query)


@pytest.mark.thorough
async def test_a_list_without_an_end_is_given_up(
    lab: KonfluxLab, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "KONFLUX_PAGES", 3)
    for number in range(3):
        page = {"items": [thing("PipelineRun", f"run-{number}")], "metadata": {"continue": f"on-{number}"}}
        lab.cluster_faults.plan(RUNS, FaultResponse(200, page), query=BUILDS)
    async with before(lab, tmp_path, archive=False) as asked:
        names, gap = parted(await asked.lines("list_pipelineruns", sha=SHA))
    assert names == ["run-0", "run-1", "run-2"]
    assert gap == "The cluster, pipelineruns: the list has over 3 pages; its rest was not read."


@pytest.mark.thorough
async def test_nobody_says_there_is_nothing_where_a_server_was_not_to_be_asked(lab: KonfluxLab, tmp_path: Path) -> None:
    lab.cluster_faults.plan(RUNS, DropConnection(), times=SOURCE_ATTEMPTS)
    async with before(lab, tmp_path) as asked:
        (line,) = await asked.lines("list_pipelineruns", sha=SHA)
    assert list(line) == ["incomplete"]
    assert line["incomplete"].startswith(
        "Nothing was found, but not all could be asked for, so there may be some. No pipelineruns of builds"
    )


@pytest.mark.thorough
async def test_a_name_stays_one_part_of_the_path_whoever_lets_it_through(lab: KonfluxLab, tmp_path: Path) -> None:
    """Arguments are checked before; this is what holds if they were not."""
    async with before(lab, tmp_path, archive=False) as asked:
        for name in ("../secrets/x", "p/log", "p?x=y", "p#x"):
            with pytest.raises(HummingbirdError):
                await asked("get_pod", pod=name)
    assert all(request.path.startswith("/api/v1/namespaces/acme-tenant/pods/") for request in lab.requests)
    assert all(request.query == "" for request in lab.requests)


@pytest.mark.thorough
async def test_a_server_that_is_down_for_good_is_one_sentence(lab: KonfluxLab, tmp_path: Path) -> None:
    lab.cluster_faults.plan(RUNS, DropConnection(), times=SOURCE_ATTEMPTS)
    async with before(lab, tmp_path, archive=False) as asked:
        with pytest.raises(SourceUnavailable, match="cannot be reached"):
            await asked("list_pipelineruns", sha=SHA)
