"""What was asked for on the command line, in one value. Loads nothing."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ChatWish:
    """`query` None: a conversation; - is standard input. `newest`: goes on with the last session. `toolsets` None: as
    the configuration says. `prompt_size`: only shows what the prompt and the tools weigh."""

    query: str | None = None
    as_json: bool = False
    resume: str = ""
    newest: bool = False
    model: str = ""
    plan: bool = False
    project: str = ""
    workflow: str = ""
    toolsets: tuple[str, ...] | None = None
    workspace: str = ""
    prompt_size: bool = False
    colour: bool = True
