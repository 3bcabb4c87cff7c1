"""What can be chosen for a conversation in an editor: its mode and its model.

Both stand twice in what an editor is told, because the protocol is moving from modes to options: editors that know
options are to use them and to leave modes alone.
"""

from collections.abc import Sequence

from acp.schema import (
    ConfigOptionUpdate,
    CurrentModeUpdate,
    SessionConfigOptionBoolean,
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
)

from hummingbird.domain.errors import UsageFault
from hummingbird.domain.text import shortened

ASK, PLAN = "ask", "plan"
MODE, MODEL = "mode", "model"
_MODES = {
    ASK: ("Ask", "Reads by itself, asks before it changes, sends or runs something"),
    PLAN: ("Plan", "Looks and plans; what changes or sends something is refused"),
}


def modes_of(*, plan: bool, plan_only: bool) -> SessionModeState:
    offered = [
        SessionMode(id=mode, name=name, description=description)
        for mode, (name, description) in _MODES.items()
        if mode == PLAN or not plan_only
    ]
    return SessionModeState(current_mode_id=PLAN if plan else ASK, available_modes=offered)


def checked_mode(mode: str, *, plan_only: bool) -> bool:
    """Whether it is plan mode. Raises UsageFault."""
    if mode not in _MODES:
        raise UsageFault(f"There is no mode {shortened(mode, 40)!r}; there are: {', '.join(_MODES)}.")
    if plan_only and mode != PLAN:
        raise UsageFault("This agent was started with --plan: it changes nothing, in whatever mode.")
    return mode == PLAN


def options_of(
    *, plan: bool, plan_only: bool, model: str, models: Sequence[str]
) -> list[SessionConfigOptionSelect | SessionConfigOptionBoolean]:
    modes = modes_of(plan=plan, plan_only=plan_only)
    offered_modes = [
        SessionConfigSelectOption(value=one.id, name=one.name, description=one.description)
        for one in modes.available_modes
    ]
    offered_models = [SessionConfigSelectOption(value=one, name=one) for one in dict.fromkeys((model, *models))]
    return [
        SessionConfigOptionSelect(
            id=MODE, name="Mode", category="mode", type="select", current_value=modes.current_mode_id,
            options=offered_modes,
        ),
        SessionConfigOptionSelect(
            id=MODEL, name="Model", category="model", type="select", current_value=model, options=offered_models,
            description="/model NAME takes any other one",
        ),
    ]  # fmt: skip


def mode_changed(*, plan: bool) -> CurrentModeUpdate:
    return CurrentModeUpdate(session_update="current_mode_update", current_mode_id=PLAN if plan else ASK)


def options_changed(
    options: list[SessionConfigOptionSelect | SessionConfigOptionBoolean],
) -> ConfigOptionUpdate:
    return ConfigOptionUpdate(session_update="config_option_update", config_options=options)
