"""Every key of the `chat` section changes what happens in a conversation."""

import asyncio
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from hummingbird.app.chat import ChatPartner
from hummingbird.core.errors import ConfigurationError, MissingSetting
from hummingbird.core.journal import Compacted, EndReason, ToolDecided, ToolFinished, ToolOutcome
from hummingbird.core.permissions import GrantScope
from tests.config.effects.counter import Counter
from tests.config.effects.talking import MODEL, OTHER, QUICK, Improvised, Person, call, results, talking
from tests.standins.vendors.script import Fault, Turn
from tests.thoroughly import also

REFUSED = Fault("status", status=400, type="invalid_request_error", message="no")
DONE = Turn(text="done")
LONG = "nothing happened here, line after line after line. " * 40


async def test_model_is_the_one_that_answers(tmp_path: Path) -> None:
    async with talking(tmp_path, DONE, DONE, chat=f"model: {OTHER}\n{QUICK}") as talk:
        await talk.say()
        assert talk.partner.status().model == OTHER
        assert await talk.partner.switch_model(MODEL) == MODEL
        await talk.say("again")
    assert talk.models == [OTHER.partition(":")[2], MODEL.partition(":")[2]]


@pytest.mark.parametrize(("turns", "reason"), [(2, EndReason.MAX_ITERATIONS), (9, EndReason.COMPLETED)])
async def test_max_turns_ends_a_run(tmp_path: Path, turns: int, reason: EndReason) -> None:
    async with talking(tmp_path, call("todo", action="list"), DONE, chat=f"max_turns: {turns}\n{QUICK}") as talk:
        assert (await talk.say()).reason is reason


async def test_fallback_providers_take_over(tmp_path: Path) -> None:
    async with talking(tmp_path, REFUSED, DONE, chat=f"fallback_providers: [{OTHER}]\n{QUICK}") as talk:
        assert (await talk.say()).answered
    assert talk.models[-1] == OTHER.partition(":")[2]
    async with talking(tmp_path / "without", REFUSED) as talk:
        assert not (await talk.say()).answered


@pytest.mark.parametrize(("most", "status"), [(1, "max_iterations"), (9, "completed")])
async def test_delegation_max_iterations_ends_a_sub_agent(tmp_path: Path, most: int, status: str) -> None:
    steps: list[Any] = [
        call("delegate", tasks=["look"]),
        *([call("todo", action="list")] if most > 1 else []),
        DONE,
        DONE,
    ]
    async with talking(tmp_path, *steps, chat=f"delegation: {{max_iterations: {most}}}\n{QUICK}") as talk:
        await talk.say()
        [result] = results(talk)
    assert status in result


@pytest.mark.parametrize(("at_once", "most"), [(1, 1), also(2, 2)])
async def test_delegation_max_concurrent_is_how_many_work_at_a_time(tmp_path: Path, at_once: int, most: int) -> None:
    seen, all_at_work = [0], threading.Event()

    def slow(_: Any) -> Fault:
        return Fault("slow", until=all_at_work, turn=DONE)

    async def look(partner: ChatPartner) -> None:
        while True:
            seen.append(sum("waiting for the model" in line for line in partner.status().background))
            if max(seen) >= most:
                all_at_work.set()
            await asyncio.sleep(0.02)

    steps: list[Any] = [call("delegate", tasks=["one", "two"]), slow, slow, DONE]
    async with talking(tmp_path, *steps, chat=f"delegation: {{max_concurrent: {at_once}}}\n{QUICK}") as talk:
        looks = asyncio.create_task(look(talk.partner))
        await talk.say()
        looks.cancel()
    assert max(seen) == most


@pytest.mark.thorough
@pytest.mark.parametrize(("context", "made"), [("compact", True), also("wrap_up", False)])
async def test_context_is_the_engine_that_makes_room(tmp_path: Path, context: str, made: bool) -> None:
    """`wrap_up` would make none in the middle of a conversation that is not resumed above four fifths."""

    def answer(request: dict[str, Any]) -> Turn:
        return Turn(text=LONG) if request.get("tools") else Turn(text="## State\nnothing")

    chat = f"context: {context}\ncompression: {{threshold: 0.005}}\n{QUICK}"
    async with talking(tmp_path, chat=chat, script=Improvised(answer)) as talk:
        for number in range(18):
            await talk.say(f"ask {number}")
        assert bool(talk.written(Compacted)) is made


async def test_a_side_task_that_there_is_not_is_a_fault(tmp_path: Path) -> None:
    """Nothing is accepted and ignored."""
    with pytest.raises(ConfigurationError, match="auxiliary"):
        async with talking(tmp_path, chat=f"auxiliary: {{title: {{model: {OTHER}}}}}"):
            pass


WAYS = {
    "as it is": "secrets/a.md",
    "with a dot": "./secrets/a.md",
    "up and down": "notes/../secrets/a.md",
    "by a link": "link/a.md",
    "whole": "{root}/secrets/a.md",
}


@pytest.mark.thorough
@pytest.mark.parametrize("way", [way if way == "by a link" else also(way) for way in WAYS])
async def test_rules_for_paths_hold_for_every_way_to_a_file(tmp_path: Path, way: str) -> None:
    """A deny is absolute, and what is allowed below one folder is not allowed below another."""
    root = tmp_path / "workspace"
    (root / "secrets").mkdir(parents=True)
    (root / "notes").mkdir()
    (root / "link").symlink_to("secrets")
    (root / "secrets/a.md").write_text("sesame\n")
    path = WAYS[way].format(root=root)
    rules = "permissions: [{action: deny, tool: file_read, argument: path, pattern: secrets/*}]"
    async with talking(tmp_path, call("file_read", path=path), DONE, chat=f"{rules}\n{QUICK}") as talk:
        await talk.say()
        assert [one.outcome for one in talk.written(ToolFinished)] == [ToolOutcome.DENIED]
    allow = "permissions: [{action: allow, tool: file_edit, argument: path, pattern: link/*}]"
    async with talking(
        tmp_path, call("file_edit", path="link/new.md", new="x"), DONE, chat=f"{allow}\n{QUICK}"
    ) as talk:
        await talk.say()
        assert [question.tool for question in talk.person.asked] == ["file_edit"]


SEARCHES: dict[str, dict[str, str]] = {
    "everything": {"pattern": "."},
    "the folder": {"pattern": ".", "path": "secrets"},
    "by a link": {"pattern": ".", "path": "link"},
    "the file": {"pattern": ".", "path": "secrets/a.md"},
    "names alone": {"glob": "**/*.md"},
}


@pytest.mark.thorough
@pytest.mark.parametrize("search", [name if name in {"everything", "the file"} else also(name) for name in SEARCHES])
@pytest.mark.parametrize("rule", ["deny, tool: file_*", also("deny, tool: file_read"), also("deny, tool: file_search")])
async def test_rules_for_paths_hold_for_what_a_search_finds(tmp_path: Path, search: str, rule: str) -> None:
    """What may not be read is not shown, and the model hears that there is more."""
    root = tmp_path / "workspace"
    (root / "secrets").mkdir(parents=True)
    (root / "link").symlink_to("secrets")
    (root / "secrets/a.md").write_text("sesame\n")
    (root / "b.md").write_text("open\n")
    rules = f"permissions: [{{action: {rule}, argument: path, pattern: secrets/*}}]"
    async with talking(tmp_path, call("file_search", **SEARCHES[search]), DONE, chat=f"{rules}\n{QUICK}") as talk:
        await talk.say()
        [result] = results(talk)
    assert "sesame" not in result
    assert "a.md:1" not in result
    if search == "the file":
        assert "Denied by" in result or "Rules do not let secrets/a.md be read" in result
    else:
        assert "1 files are left out because of rules" in result
        assert ("b.md" in result) is (search in {"everything", "names alone"})


@pytest.mark.thorough
@pytest.mark.parametrize(("where", "asked", "shown"), [("secrets/deep", 1, True), (".", 0, False)])
async def test_a_yes_to_a_search_is_one_to_what_it_finds_there(
    tmp_path: Path, where: str, asked: int, *, shown: bool
) -> None:
    """Nobody is asked in vain, and what was not asked about is left out."""
    deep = tmp_path / "workspace/secrets/deep"
    deep.mkdir(parents=True)
    (deep / "a.md").write_text("sesame\n")
    rules = "permissions: [{action: ask, tool: file_*, argument: path, pattern: secrets/*}]"
    search, person = call("file_search", pattern="ses", path=where), Person(GrantScope.ONCE)
    async with talking(tmp_path, search, DONE, chat=f"{rules}\n{QUICK}", person=person) as talk:
        await talk.say()
        assert len(person.asked) == asked
        assert ("sesame" in results(talk)[0]) is shown
        assert ("left out because of rules" in results(talk)[0]) is not shown


@pytest.mark.thorough
@pytest.mark.parametrize(("threshold", "made"), [(0.005, True), (0.9, False)])
async def test_compression_threshold_is_when_the_middle_is_summarised(
    tmp_path: Path, threshold: float, made: bool
) -> None:
    def answer(request: dict[str, Any]) -> Turn:
        return Turn(text=LONG) if request.get("tools") else Turn(text="## State\nnothing")

    chat = f"compression: {{threshold: {threshold}}}\n{QUICK}"
    async with talking(tmp_path, chat=chat, script=Improvised(answer)) as talk:
        for number in range(18):
            await talk.say(f"ask {number}")
        assert bool(talk.written(Compacted)) is made


@pytest.mark.parametrize(
    ("chat", "settings", "limit"),
    [
        ("context_limit: 50_000", "", 50_000),
        ("", f"models: {{{MODEL!r}: {{context_tokens: 32_768}}}}", 32_768),
        ("context_limit: 50_000", f"models: {{{MODEL!r}: {{context_tokens: 32_768}}}}", 32_768),
    ],
)
async def test_context_limit_and_the_window_of_a_model_are_how_much_fits(
    tmp_path: Path, chat: str, settings: str, limit: int
) -> None:
    async with talking(tmp_path, DONE, chat=f"{chat}\n{QUICK}", settings=settings) as talk:
        await talk.say()
        assert talk.partner.status().context_limit == limit


@pytest.mark.thorough
@pytest.mark.parametrize(("protect", "kept"), [(4, 4), also(2, 2)])
async def test_compression_protect_last_n_is_what_stays(tmp_path: Path, protect: int, kept: int) -> None:
    steps = [*[Turn(text=LONG) for _ in range(16)], Turn(text="## State\nnothing"), DONE]
    chat = f"compression: {{protect_last_n: {protect}}}\n{QUICK}"
    async with talking(tmp_path, *steps, chat=chat) as talk:
        for number in range(16):
            await talk.say(f"ask {number}")
        preview = await talk.partner.preview_compaction()
        assert not preview.refusal
        assert preview.messages == 32 - 1 - kept
        await talk.partner.apply_compaction(preview)
        await talk.say("and now?")


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("auxiliary", "asked"),
    [
        also("", MODEL),
        (f"auxiliary: {{summary: {{model: {OTHER}}}}}", OTHER),
    ],
)
async def test_auxiliary_model_writes_the_summary(tmp_path: Path, auxiliary: str, asked: str) -> None:
    steps = [*[Turn(text=LONG) for _ in range(16)], Turn(text="## State\nnothing")]
    async with talking(tmp_path, *steps, chat=f"{auxiliary}\n{QUICK}") as talk:
        for number in range(16):
            await talk.say(f"ask {number}")
        assert not (await talk.partner.preview_compaction()).refusal
    assert talk.models[-1] == asked.partition(":")[2]


@pytest.mark.thorough
async def test_auxiliary_fallback_providers_take_over_in_the_side_task(tmp_path: Path) -> None:
    steps: list[Any] = [*[Turn(text=LONG) for _ in range(16)], REFUSED, Turn(text="## State\nnothing")]
    chat = f"auxiliary: {{summary: {{model: {MODEL}, fallback_providers: [{OTHER}]}}}}\n{QUICK}"
    async with talking(tmp_path, *steps, chat=chat) as talk:
        for number in range(16):
            await talk.say(f"ask {number}")
        assert not (await talk.partner.preview_compaction()).refusal
    assert talk.models[-1] == OTHER.partition(":")[2]


@pytest.mark.thorough
@pytest.mark.parametrize(("file", "key"), [("memory", "memory_char_limit"), ("user", "user_char_limit")])
@pytest.mark.parametrize(("limit", "outcome"), [(10, ToolOutcome.ERROR), (500, ToolOutcome.OK)])
async def test_memory_limits_are_how_much_is_kept(
    tmp_path: Path, file: str, key: str, limit: int, outcome: ToolOutcome
) -> None:
    keep = call("memory", action="add", file=file, text="The cluster is called otter.")
    async with talking(tmp_path, keep, DONE, chat=f"memory: {{{key}: {limit}}}\n{QUICK}") as talk:
        await talk.say()
        assert [one.outcome for one in talk.written(ToolFinished)] == [outcome]
        assert ("otter" in talk.partner.memory_text()) is (outcome is ToolOutcome.OK)


@pytest.mark.thorough
async def test_toolsets_are_what_is_offered(tmp_path: Path) -> None:
    async with talking(tmp_path, DONE, chat="toolsets: [todo]") as talk:
        await talk.say()
        assert talk.offered == {"todo"}
    async with talking(tmp_path / "more", DONE, chat="toolsets: [todo, workspace]") as talk:
        await talk.say()
        assert talk.offered == {"todo", "file_read", "file_search", "file_edit"}


RULES = {
    "allowed by its name": ("{action: allow, tool: file_edit}", "ok", 0),
    "denied by its name": ("{action: deny, tool: file_*, reason: ask Mira instead}", "denied", 0),
    "nobody speaks of it": ("{action: allow, tool: terminal}", "denied", 1),
    "denied by its effect": ("{action: deny, effects: [write]}", "denied", 0),
    "another effect": ("{action: deny, effects: [send]}", "denied", 1),
    "allowed by its argument": ("{action: allow, tool: file_edit, argument: path, pattern: notes/*}", "ok", 0),
    "another argument": ("{action: allow, tool: file_edit, argument: path, pattern: src/*}", "denied", 1),
}


@pytest.mark.thorough
@pytest.mark.parametrize("rule", RULES)
async def test_permissions_decide_what_becomes_of_a_call(tmp_path: Path, rule: str) -> None:
    """Action, tool, argument, pattern and effects."""
    text, outcome, asked = RULES[rule]
    edit = call("file_edit", path="notes/a.md", new="hello\n")
    async with talking(tmp_path, edit, DONE, chat=f"permissions: [{text}]\n{QUICK}") as talk:
        await talk.say()
        [finished] = talk.written(ToolFinished)
        assert (finished.outcome.value, len(talk.person.asked)) == (outcome, asked)
        assert (tmp_path / "workspace/notes/a.md").exists() is (outcome == "ok")


async def test_reason_and_name_of_a_rule_are_what_the_model_and_the_journal_read(tmp_path: Path) -> None:
    rule = "{action: deny, tool: terminal, name: no shells, reason: use the sandbox}"
    async with talking(
        tmp_path, call("terminal", command="true"), DONE, chat=f"permissions: [{rule}]\n{QUICK}"
    ) as talk:
        await talk.say()
        [decided] = talk.written(ToolDecided)
        assert "no shells" in decided.by
        assert "use the sandbox" in results(talk)[0]


@pytest.mark.thorough
async def test_a_person_who_says_yes_for_the_session_is_asked_once(tmp_path: Path) -> None:
    """What `ask` leads to where there is somebody."""
    run = call("terminal", command="echo hi")
    other = call("terminal", command="echo ho")
    person = Person(GrantScope.SESSION)
    async with talking(tmp_path, run, run, other, DONE, person=person) as talk:
        await talk.say()
        assert [question.tool for question in person.asked] == ["terminal", "terminal"]
        assert len(talk.partner.grants()) == 2


SERVER = """\
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked: continue
    tools = [{"name": n, "description": n, "inputSchema": {"type": "object"}} for n in ("show", "other")]
    said = json.dumps([sys.argv[1:], sorted(k for k in os.environ if k.startswith("SHOWN"))])
    answer = {"initialize": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                             "serverInfo": {"name": "s", "version": "1"}},
              "tools/list": {"tools": tools}, "tools/call": {"content": [{"type": "text", "text": said}]}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": answer.get(asked["method"], {})}), flush=True)
"""


@pytest.mark.thorough
async def test_mcp_servers_with_a_command_are_started_as_they_are_described(tmp_path: Path) -> None:
    """Command, args, env, tools and read_tools."""
    (tmp_path / "server.py").write_text(SERVER)
    chat = f"""
{QUICK}
mcp_servers:
  shop:
    command: {sys.executable}
    args: [{tmp_path / "server.py"}, --quiet]
    env: [SHOWN_TO_IT]
    tools: [show]
    read_tools: [show]
"""
    environment = {"SHOWN_TO_IT": "yes", "SHOWN_TO_NOBODY": "no"}
    async with talking(tmp_path, call("mcp_shop_show"), DONE, chat=chat, environment=environment) as talk:
        await talk.say()
        assert {name for name in talk.offered if name.startswith("mcp")} == {"mcp_shop_show"}
        assert '[["--quiet"], ["SHOWN_TO_IT"]]' in results(talk)[0].replace('\\\\"', '"').replace('\\"', '"')
        assert not talk.person.asked
    unread = chat.replace("    read_tools: [show]\n", "")
    async with talking(tmp_path / "asked", call("mcp_shop_show"), DONE, chat=unread, environment=environment) as talk:
        await talk.say()
        assert [question.tool for question in talk.person.asked] == ["mcp_shop_show"]


async def test_a_variable_that_an_mcp_server_is_given_has_to_be_set(tmp_path: Path) -> None:
    chat = f"{QUICK}\nmcp_servers: {{shop: {{command: x, env: [NOT_SET_AT_ALL], tools: [show]}}}}"
    with pytest.raises(MissingSetting, match=r"Set NOT_SET_AT_ALL: chat.mcp_servers.shop"):
        async with talking(tmp_path, chat=chat):
            pass


@pytest.mark.thorough
async def test_mcp_servers_with_a_url_are_asked_there_with_their_headers(tmp_path: Path) -> None:
    """Url and headers_env."""

    with Counter() as server:
        chat = f"{QUICK}\nmcp_servers: {{far: {{url: {server.url}, headers_env: {{X-Shop: SHOP_KEY}}, tools: [show]}}}}"
        async with talking(tmp_path, DONE, chat=chat, environment={"SHOP_KEY": "sesame-1234"}) as talk:
            await talk.say()
        assert server.headers
        assert all(headers.get("x-shop") == "sesame-1234" for headers in server.headers)
