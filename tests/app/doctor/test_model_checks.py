"""Models that nobody knows, that lack a key, or that do not answer. Only with leave is anything asked."""

from pathlib import Path

import pytest

from hummingbird.app.doctor.remote_checks import model_checks
from tests.app.doctor.examining import FAIL, OK, WARN, doctor_context, only, tried
from tests.standins.vendors.script import Script, Turn
from tests.standins.vendors.server import VendorLab

CLAUDE = "model: anthropic:claude-sonnet-4-5"


def test_without_a_key_it_is_said_that_digest_does_the_work(tmp_path: Path) -> None:
    found = only(tried(model_checks, doctor_context(tmp_path, "")))
    assert found.standing is WARN
    assert "set ANTHROPIC_API_KEY" in found.sentence


def test_digest_by_name_is_well(tmp_path: Path) -> None:
    assert only(tried(model_checks, doctor_context(tmp_path, "model: digest"))).standing is OK


@pytest.mark.parametrize(
    ("settings", "words"),
    [(CLAUDE, "set ANTHROPIC_API_KEY"), ("model: antropic:claude-x", "did you mean 'anthropic'")],
)
def test_a_model_that_cannot_be_had_is_told(tmp_path: Path, settings: str, words: str) -> None:
    found = only(tried(model_checks, doctor_context(tmp_path, settings)))
    assert found.standing is FAIL
    assert words in found.sentence


def test_every_model_of_a_workflow_is_tried_once(tmp_path: Path) -> None:
    """Its own first, then those that take over."""
    settings = f"{CLAUDE}\nfallback_models: [gpt-5, digest]"
    found = tried(
        model_checks, doctor_context(tmp_path, settings, "model: gemini:gemini-2.5-pro", {"OPENAI_API_KEY": "k"})
    )
    assert [(one.standing, one.sentence.split(":")[0]) for one in found] == [(FAIL, "gemini"), (OK, "openai")]


def test_a_model_that_people_may_choose_and_nobody_can_use_is_told(tmp_path: Path) -> None:
    found = tried(model_checks, doctor_context(tmp_path, "model: digest\nmodels_allowed: [gpt-5, digest]"))
    assert [one.standing for one in found] == [OK, WARN]
    assert "models_allowed has gpt-5" in found[1].sentence


def vendor(lab: VendorLab, key: str) -> dict[str, str]:
    return {"ANTHROPIC_API_KEY": key, "ANTHROPIC_BASE_URL": lab.anthropic_url}


def test_without_leave_nobody_is_asked(tmp_path: Path) -> None:
    with VendorLab() as lab:
        found = only(tried(model_checks, doctor_context(tmp_path, CLAUDE, "", vendor(lab, "bad-key"))))
        assert lab.requests == []
    assert found.standing is OK
    assert "--try-model" in found.sentence


def test_with_leave_a_model_is_asked_once_and_answers(tmp_path: Path) -> None:
    with VendorLab(Script([Turn(text="yes")])) as lab:
        found = only(tried(model_checks, doctor_context(tmp_path, CLAUDE, "", vendor(lab, "some-key"), try_model=True)))
        assert len(lab.requests) == 1
    assert (found.standing, found.sentence) == (OK, "anthropic:claude-sonnet-4-5 answers.")


def test_with_leave_a_key_that_is_refused_is_told_and_not_shown(tmp_path: Path) -> None:
    with VendorLab() as lab:
        found = only(tried(model_checks, doctor_context(tmp_path, CLAUDE, "", vendor(lab, "bad-key"), try_model=True)))
    assert found.standing is FAIL
    assert found.sentence.startswith("anthropic:claude-sonnet-4-5: ")
    assert "bad-key" not in found.sentence
