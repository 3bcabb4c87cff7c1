"""How a session that is played again tells of sub-agents."""

import pytest

from hummingbird.cli.sessions import entry_lines
from hummingbird.core.journal import Delegated, ToolDecided, ToolFinished, ToolOutcome, ToolStarted


@pytest.mark.parametrize(
    ("own", "wanted", "lines"),
    [
        (ToolDecided(call_id="a", name="rm", by="Ada", decision="allowed"), "", ["rm is allowed by Ada"]),
        (
            ToolDecided(call_id="a", name="rm", by="a rule", decision="denied", reason="no"),
            "",
            ["rm is denied by a rule: no"],
        ),
        (ToolStarted(call_id="a", name="rm", arguments='{"x": 1}'), "", ['→ rm {"x": 1}']),
        (ToolFinished(call_id="a", name="rm", text="", seconds=1.26), "", ["rm: ok, 1.3 s"]),
        (
            ToolFinished(call_id="a", name="rm", text="Denied.", outcome=ToolOutcome.DENIED),
            '{"x": 2}',
            ['wanted rm {"x": 2}', "rm: denied, 0.0 s"],
        ),
    ],
    ids=["allowed", "denied", "began", "ended", "never began"],
)
def test_what_sub_agents_do_is_told_with_their_number(
    own: ToolDecided | ToolStarted | ToolFinished, wanted: str, lines: list[str]
) -> None:
    entry = Delegated(call_id="p", task=1001, entry=own, arguments=wanted)
    assert list(entry_lines(entry)) == [f"    sub-agent 1001: {line}" for line in lines]
