"""Options of the library: what they send, what they give the model, and how those that make no sense are refused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hummingbird import Agent, AgentConfig, UsageError, tool
from tests.app.test_library import agent_on
from tests.standins.scripted_model import ScriptedClock
from tests.standins.vendors.script import Call, Script, Turn
from tests.standins.vendors.server import VendorLab
from tests.standins.vendors.surfaces import Conduct

KEY = {"ANTHROPIC_API_KEY": "k"}


def make(model: str = "anthropic:claude-sonnet-5-5", **config: Any) -> Agent:
    return Agent(model, config=AgentConfig(environment=KEY, **config))


@pytest.mark.parametrize(
    ("make_it", "sentence"),
    [
        (
            lambda: Agent("digest", fallback_models="claude-sonnet-5-5"),
            r"fallback_models is one text.*\['claude-sonnet-5-5'\]",
        ),
        (lambda: Agent(" "), "There is no model: name one"),
        (lambda: make(max_usd=-1), "max_usd is -1; give 0 or more"),
        (lambda: Agent(None), "There is no model: name one"),  # type: ignore[arg-type]  # wrong on purpose
        (lambda: make().chat(None), "The message is None; give a text"),  # type: ignore[arg-type]  # the same
        (lambda: make().chat(" "), "The message is empty"),
        (lambda: make(max_usd="1"), "max_usd is '1'; give a number"),
        (lambda: make(delegates=True), "delegates is True; give a number"),
        (lambda: make(api_key=" "), "api_key is empty"),
        (lambda: make(skills=["/nowhere"]), "no folder '/nowhere', which skills or context_files names"),
        (lambda: make(api_key=5), "api_key is of the type int; give a text"),
        (lambda: Agent("digest", tools=len), "tools is <built-in function len>; give a list"),  # type: ignore[arg-type]
        (lambda: Agent("digest", config={"max_usd": 1}), "config is of the type dict; give an AgentConfig"),  # type: ignore[arg-type]
        (lambda: Agent("digest", instructions=5), "instructions is 5; give a text"),  # type: ignore[arg-type]
        (lambda: make(max_seconds=0), "max_seconds is 0; give a number above 0"),
        (lambda: make(delegates=-1), "delegates is -1"),
        (lambda: make(auxiliary={"sumary": ["digest"]}), "no side task 'sumary' in auxiliary; there is: summary"),
        (lambda: make(auxiliary={"summary": "digest"}), "is one text, 'digest'; give a list"),
        (lambda: make(toolsets="sandbox"), "toolsets is one text"),
        (lambda: make(temperature=3), "temperature is 3; give a number from 0 to 2"),
        (lambda: make(temperature=0.5), "thinks, and takes no temperature: leave it out, or set effort"),
        (lambda: make(effort="hard"), "effort is 'hard'; give one of none, minimal, low"),
        (lambda: make(max_output_tokens=0), "max_output_tokens is 0"),
        (lambda: make("vertex-anthropic:claude-sonnet-5-5", api_key="k"), "vertex-anthropic takes no api_key"),
    ],
)
def test_option_that_makes_no_sense_is_refused_in_a_sentence(make_it: Callable[[], object], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        make_it()


def test_beginning_of_a_session_id_is_not_another_session(tmp_path: Path) -> None:
    with VendorLab(Script([Turn(text="a")])) as lab:
        with agent_on(lab, sessions_dir=tmp_path, session_id="abcdef") as agent:
            agent.chat("one")
        with pytest.raises(UsageError, match="no session abc; write the whole id: abcdef"):
            agent_on(lab, sessions_dir=tmp_path, session_id="abc")
        agent_on(lab, sessions_dir=tmp_path, session_id="abcdef").close()


@pytest.mark.parametrize(
    ("model", "variable", "address", "sent"),
    [
        (
            "anthropic:claude-sonnet-5-5",
            "ANTHROPIC_BASE_URL",
            "anthropic_url",
            {"output_config": {"effort": "low"}, "max_tokens": 777},
        ),
        ("openai:gpt-6.1-sol", "OPENAI_BASE_URL", "openai_url", {"max_output_tokens": 777}),
    ],
)
def test_effort_and_length_are_sent_with_the_given_key(
    model: str, variable: str, address: str, sent: dict[str, object]
) -> None:
    with VendorLab(Script([Turn(text="a")])) as lab:
        config = AgentConfig(
            environment={variable: getattr(lab, address)},
            clock=ScriptedClock(),
            api_key="k",
            effort="low",
            max_output_tokens=777,
        )
        with Agent(model, config=config) as agent:
            assert agent.chat("?") == "a"
        body = lab.requests[0].body
    assert {name: body[name] for name in sent} == sent
    assert body.get("reasoning", {"effort": "low"})["effort"] == "low"


def test_temperature_is_sent_to_models_that_take_one() -> None:
    with VendorLab(Script([Turn(text="a")]), conduct=Conduct(openai="compatible")) as lab:
        environment = {"OPENAI_BASE_URL": lab.openai_url, "OPENAI_API_KEY": "k"}
        config = AgentConfig(environment=environment, clock=ScriptedClock(), temperature=0.2)
        with Agent("openai-chat:gpt-5.4", config=config) as agent:
            assert agent.chat("?") == "a"
        assert lab.requests[0].body["temperature"] == 0.2


def test_knowledge_is_given_to_the_model(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "project" / "AGENTS.md").write_text("Use tabs.")
    skill = tmp_path / "skills" / "release"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: release\ndescription: How to release.\n---\nTag it.\n")
    keep = Call("memory", {"action": "add", "file": "memory", "text": "The tests need podman."})
    todo = Call("todo", {"action": "create", "texts": ["look"]})
    script = Script([Turn(calls=(keep, todo)), Turn(text="ok"), Turn(text="again")])
    options: dict[str, Any] = {
        "todo": True, "recall": True, "memory": tmp_path / "memory", "skills": [tmp_path / "skills"],
        "context_files": tmp_path / "project", "personality": "Be terse.",
    }  # fmt: skip
    with VendorLab(script) as lab:
        with agent_on(lab, **options) as agent:
            called = agent.run_sync("go").tool_calls
        assert [call.ok for call in called] == [True, True], called
        with agent_on(lab, **options) as agent:
            agent.chat("and now?")
        tools = {tool["name"] for tool in lab.requests[0].body["tools"]}
        first, later = (lab.requests[at].body["system"][0]["text"] for at in (0, 2))
    assert tools == {"todo", "recall", "memory", "skill"}
    assert all(part in first for part in ("Use tabs.", "How to release.", "Be terse.", "You are Hummingbird"))
    assert "podman" not in first
    assert "The tests need podman." in later


def test_errors_stand_alone_and_results_of_tools_have_no_marks_for_the_model() -> None:
    def look(path: str) -> str:
        """Look."""
        return f"saw {path}"

    with (
        VendorLab(Script([Turn(calls=(Call("look", {"path": "x"}),)), Turn(text="done")])) as lab,
        agent_on(lab, tools=[tool(look)]) as agent,
    ):
        with pytest.raises(UsageError) as caught:
            agent.go_on()
        assert caught.value.__context__ is None
        assert [call.result for call in agent.run_sync("look").tool_calls] == ["saw x"]


def test_images_go_along_with_the_first_attempt_and_what_is_none_is_refused(tmp_path: Path) -> None:
    shot, note = tmp_path / "shot.png", tmp_path / "note.png"
    shot.write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(20))
    note.write_text("hello")
    with VendorLab(Script([Turn(text="three"), Turn(text="3")])) as lab, agent_on(lab) as agent:
        assert agent.run_sync("How many birds?", output=int, images=[shot]).output == 3
        sent = [one["type"] for one in lab.requests[0].body["messages"][0]["content"]]
        assert sent == ["image", "text"]
        again = [one["type"] for said in lab.requests[1].body["messages"] for one in said["content"]]
        assert again == ["image", "text", "text", "text"]
        for images, sentence in (
            ([note], "note.png is not a PNG, JPEG, GIF or WebP image"),
            ([tmp_path / "none.png"], "none.png cannot be read: No such file"),
            ("shot.png", "images is one text"),
        ):
            with pytest.raises(UsageError, match=sentence):
                agent.run_sync("How many?", images=images)
    with Agent("digest") as blind, pytest.raises(UsageError, match="digest takes no images"):
        blind.run_sync("How many?", images=[shot])
