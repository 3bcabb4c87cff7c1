"""`digest` by its name, with the evidence engine that comes with it and nothing in its place."""

from pathlib import Path

import pytest

from hummingbird import Agent, AgentConfig
from hummingbird.core.errors import SandboxUnavailable
from hummingbird.models.rules_report.rules_model import RulesModel
from tests.models.rules_report.forge import OTHER_NAMES, Forge, listed
from tests.models.rules_report.one_log import CASE, INSTRUCTIONS, ORDER, log_tools
from tests.models.rules_report.play import play
from tests.models.rules_report.samples import COMPILE, NETWORK, TEST, log, long_log
from tests.real_parts import missing


@pytest.mark.parametrize(
    ("sample", "verdict", "line"),
    [
        (COMPILE, "code", "4: src/engine.c:42:5: error: 'throttle' undeclared (first use in this function)"),
        (TEST, "test", "AssertionError: assert 6 == 9"),
        (NETWORK, "infrastructure", "[Could not resolve host: mirror.example]"),
    ],
)
async def test_failures_are_found_and_judged_by_the_engine(sample: str, verdict: str, line: str) -> None:
    forge = Forge([listed(901, "build")], {901: log(sample, "engine")})
    played = await play(forge.order, forge.tools(), models=[RulesModel()])
    assert played.text.split("\n")[2].startswith(f"**Verdict: {verdict}**")
    assert line in played.text


@pytest.mark.parametrize(("sample", "verdict"), [(COMPILE, "code"), (TEST, "test"), (NETWORK, "infrastructure")])
def test_an_agent_with_a_sandbox_and_no_key_explains_a_log_too_long_to_be_shown(
    sample: str, verdict: str, tmp_path: Path
) -> None:
    forge = Forge([listed(901, "build")], {901: long_log(sample, "engine")})
    config = AgentConfig(environment={})
    with Agent("digest", tools=forge.tools(), sandbox="bubblewrap", sessions_dir=tmp_path, config=config) as agent:
        try:
            text = agent.chat(forge.order)
        except SandboxUnavailable as error:
            missing(str(error))
    assert text.split("\n")[2].startswith(f"**Verdict: {verdict}**")


async def test_renamed_through_and_through_it_is_the_same_failure() -> None:
    texts = []
    for names, job, stem in ((Forge([], {}).names, "compilation", "engine"), (OTHER_NAMES, "kompilieren", "zzz_quux")):
        forge = Forge([listed(901, job)], {901: log(COMPILE, stem)}, names=names, changed=(f"src/{stem}.c",))
        played = await play(forge.order, forge.tools(), models=[RulesModel()])
        texts.append(played.text.replace(job, "JOB").replace(stem, "STEM"))
        assert forge.shape == ["change", "diff", "jobs", "log"]
    assert texts[0] == texts[1]


async def test_the_example_that_comes_along_is_explained_without_a_model() -> None:
    played = await play(ORDER % "s", log_tools(CASE / "job.log"), system=INSTRUCTIONS, models=[RulesModel()])
    assert "**Verdict: infrastructure**" in played.text
    assert "TLS handshake timeout" in played.text
