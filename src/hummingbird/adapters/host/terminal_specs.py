"""What a model is told of the tools for commands of the host."""

from hummingbird.domain.host_limits import (
    COMMAND_SLACK_S,
    COMMAND_TIMEOUT_CAP_S,
    COMMAND_TIMEOUT_S,
    PROCESS_READ_BYTES,
)
from hummingbird.domain.tools import Effect, ToolSpec

TERMINAL = ToolSpec(
    name="terminal",
    description=(
        "Runs a shell command (bash -c) on the user's own machine, in the workspace, once it is approved. Returns its "
        "output and exit code. No input, no terminal; each command starts anew, so cd belongs into the same one. What "
        "need not touch this machine belongs into the sandbox."
    ),
    schema={
        "type": "object",
        "properties": {
            "command": {"type": "string", "minLength": 1},
            "timeout_s": {
                "type": "number",
                "exclusiveMinimum": 0,
                "description": f"{COMMAND_TIMEOUT_S:g} unless given, at most {COMMAND_TIMEOUT_CAP_S:g}.",
            },
            "background": {
                "type": "boolean",
                "description": "Do not wait: returns a number for `process`. For servers and long work.",
            },
        },
        "required": ["command"],
        "additionalProperties": False,
    },
    toolset="terminal",
    effects=frozenset({Effect.EXEC, Effect.WRITE, Effect.SEND}),
    timeout_s=COMMAND_TIMEOUT_CAP_S + COMMAND_SLACK_S,
)
PROCESS = ToolSpec(
    name="process",
    description="Background processes of `terminal`: list them, read the output of one, or end it with all it started.",
    schema={
        "type": "object",
        "properties": {
            "action": {"enum": ["list", "read", "kill"]},
            "number": {"type": "integer", "minimum": 1},
            "offset": {
                "type": "integer",
                "minimum": 0,
                "description": f"Byte to read from, up to {PROCESS_READ_BYTES}; what is new unless given.",
            },
        },
        "required": ["action"],
        "additionalProperties": False,
    },
    toolset="terminal",
    effects=frozenset({Effect.EXEC}),
)
