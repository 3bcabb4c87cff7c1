"""The configuration changes while the service runs."""

import logging
from pathlib import Path

import pytest

from tests.journeys.service.stage import Stage, staged
from tests.standins.vendors.script import Turn

SETTINGS = {"internal_notes": False, "config_poll_seconds": 1}
WORKFLOW = {"analyze-failures": {"trigger": "pipeline"}}


def system(stage: Stage, request: int) -> str:
    assert stage.lab is not None
    return str(stage.lab.requests[request].body["system"])


async def test_what_was_changed_holds_for_the_next_event_and_nonsense_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "hummingbird")
    turns = [Turn(text="One."), Turn(text="Two."), Turn(text="Three.")]
    async with staged("failing-test", tmp_path, settings=SETTINGS, turns=turns) as stage:
        await stage.begin_case()
        await stage.notes(2)
        stage.configure({**SETTINGS, "internal_notes": True, "docs_url": "https://docs.example/h"}, WORKFLOW)
        (stage.file.parent / "workflows" / "analyze-failures.md").write_text("Speak of herons alone.")
        await stage.until(lambda: "was changed; it applies to all work that starts from now on" in caplog.text)
        await stage.until(lambda: "herons" in stage.watched.current.prompts["analyze-failures"])
        await stage.write("hsato", "/hummingbird analyze-failures")
        notes = await stage.notes(4)
        stage.file.write_text("settings: {max_iterations: many}")
        await stage.until(lambda: "is invalid, so the old one stays in use" in caplog.text)
        await stage.write("hsato", "/hummingbird analyze-failures")
        last = (await stage.notes(6))[-1]
        asked = [system(stage, number) for number in range(3)]
    assert ["herons" in text for text in asked] == [False, True, True]
    assert [note.internal for note in notes] == [False, False, True, True]
    assert "https://docs.example/h" not in notes[0].body
    assert "https://docs.example/h" in notes[2].body
    assert "settings.max_iterations" in caplog.text
    assert last.internal
    assert "Three." in last.body
