"""The options of `hummingbird chat` in one value. Imports nothing, so that `--help` is fast."""

from dataclasses import dataclass

PICK_SESSION = "?"  # in place of a session's id: choose it from a list


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """What the command line asks for.

    With `query` None the chat is interactive; the query "-" stands for standard input. `message` is what an interactive
    chat begins with, or the query where there is no terminal. With `only_result`, one JSON document is printed.
    `newest` continues the last session of the folder. With `toolsets`, `max_usd` or `max_turns` None the configuration
    decides, with `effort` None the model. `instructions` join the system prompt. `prompt_size` only shows the size of
    prompt and tools.
    """

    query: str | None = None
    message: str = ""
    as_json: bool = False
    only_result: bool = False
    resume: str = ""
    newest: bool = False
    model: str = ""
    plan: bool = False
    accept_edits: bool = False
    allow: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    project: str = ""
    workflow: str = ""
    toolsets: tuple[str, ...] | None = None
    max_usd: float | None = None
    max_turns: int | None = None
    instructions: str = ""
    effort: str | None = None
    workspace: str = ""
    prompt_size: bool = False
    colour: bool = True
