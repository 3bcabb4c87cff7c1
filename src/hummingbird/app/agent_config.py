"""Holds `AgentConfig`, the settings of an `Agent` that most programs leave at their defaults, and what they switch on.

An agent gets what a chat has, if it asks: a todo list, memory, recall, skills, files of a project, a personality.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, Literal

from hummingbird.agent.budget import CHAT_LIMITS, RunLimits
from hummingbird.agent.context_files.instruction_files import SkillFolders, find_context_files
from hummingbird.agent.context_files.memory_files import FileMemory
from hummingbird.agent.context_files.memory_pages import render_memory_prompt
from hummingbird.agent.prompts import BASE_RULES, PromptParts, build_chat_prompt, build_system_prompt
from hummingbird.agent.tools.chat_tools import MEMORY_NAME, MemoryTool, SkillTool, TodoTool
from hummingbird.agent.tools.permission_gate import SessionPermissions
from hummingbird.agent.tools.recall import RecallTool
from hummingbird.agent.tools.sandbox_tools import SANDBOX_TOOLS
from hummingbird.agent.tools.spill import LineDigests
from hummingbird.app.callbacks import CallbackAsker, Callbacks
from hummingbird.app.session_holder import SessionHolder
from hummingbird.core.background import RunBackground
from hummingbird.core.errors import UsageError
from hummingbird.core.journal import JournalEntry
from hummingbird.core.limits import (
    CHAT_ITERATIONS,
    EXEC_TIMEOUT_S,
    INTERRUPT_GRACE_S,
    MAX_INLINE_BYTES,
    SUBAGENT_ITERATIONS,
)
from hummingbird.core.masking import Secrets
from hummingbird.core.permissions import PermissionAction, PermissionQuestion, PermissionRule
from hummingbird.core.protocols.context_engine import ContextEngine
from hummingbird.core.protocols.observer import Clock, RunObserver
from hummingbird.core.protocols.tools import Tool, ToolHook
from hummingbird.core.sessions import SessionSubject
from hummingbird.core.text import shorten_line
from hummingbird.core.tool_spec import ToolEffect
from hummingbird.core.verdicts import FailureVerdict
from hummingbird.models.prices import PriceOverride

APPROVE_ALL: Literal["all"] = "all"
_NUMBERS = (
    *("max_iterations", "context_limit", "max_usd", "max_usd_per_day", "max_seconds", "grace_s", "temperature"),
    *("max_output_tokens", "delegates", "delegate_iterations", "max_inline_bytes", "exec_timeout_s"),
)
SIDE_TASKS = ("summary",)
EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")


def check_sequence(name: str, given: object) -> None:
    """Raise UsageError for one thing where several are expected; of one text, the letters would be taken one by one."""
    if isinstance(given, str | bytes):
        raise UsageError(f"{name} is one text, {given!r}; give a list: [{given!r}].")
    if not isinstance(given, Iterable | None):
        raise UsageError(f"{name} is {shorten_line(repr(given), 80)}; give a list.")


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentConfig:
    """Settings of an agent: limits, models, tools, what observes it, and what the application plugs in.

    Limits:
        max_iterations: Answers of the model in one run.
        context_limit: Tokens of context at which a run ends; None leaves it to the model's window.
        max_usd: Cost of one run.
        max_usd_per_day: Cost of a day, for all agents with the same sessions folder and `project`.
        max_seconds: Duration of one run.
        warns: Tell the model when a budget is nearly used up, as workflows do.
        grace_s: How long tools may take to stop after an interrupt.

    Models:
        base_url, api_mode: Where and how the primary model is asked.
        model_regions: The region of each Vertex model.
        model_windows: The size of a model's window in tokens, where it is not known or differs.
        prices: Prices that replace the built-in ones.
        ca_bundle: A file with certificate authorities for the connections to models.
        context: What a full context leads to: "compact", "wrap_up", or an engine (its entry point's name, or itself).
        auxiliary: The models that do a side task, by its name ("summary").
        api_key: The key of the primary model, in place of the one in the environment.
        temperature: From 0 to 2; models that think take none.
        effort: How much a model is to think: "low", "medium", "high", or what else its provider knows.
        max_output_tokens: The longest answer of the model.

    Tools:
        toolsets: Names of the toolsets that the agent gets; None means all.
        plugins: Add the tools and hooks of installed third-party packages.
        hooks: See each tool call before and after it runs, and may deny or rewrite it.
        approve: Answers whether a call of a tool that does more than read may run: a function, sync or async, that
            takes a PermissionQuestion and returns True or False. "all" lets every call run. What happens in the
            sandbox is not asked about.
        permissions: Rules about which calls run, which are asked about and which never run.
        delegates: How many sub-agents may work at once; 0 means that there are none.
        delegate_iterations: Answers of the model in one sub-agent.
        has_host_file: Return whether a path is a file that sub-agents may have made on this machine.
        max_inline_bytes: Longer results go to a file in the sandbox, or are cut; at most 80 % of the context.
        exec_timeout_s: How long a command in the sandbox may run if it asks for no other time.

    Knowledge:
        todo: Give the model a list of what is to be done.
        recall: Give the model a tool that finds what a summary left out of the conversation.
        memory: A folder with what the model keeps for later sessions; it stands in the prompt.
        skills: Folders of skills, each a folder with a SKILL.md; the model loads one when it needs it.
        context_files: A folder whose AGENTS.md and the like, up to the top of the repository, stand in the prompt.
        personality: How the model is to speak.

    Observation:
        on_event: Sees each journal entry and delta as it happens.
        callbacks: Views of the same stream, one subject each, and answers to questions.
        streaming: Ask models to stream their answers.
        on_trouble: Hears, in sentences, what could not be saved. With it, a run continues without its journal if that
            cannot be written.

    Environment and session:
        environment: Replaces `os.environ`.
        secrets: Values to mask, besides those of the environment.
        clock: Replaces the system's clock.
        project: The name under which costs are recorded.
        subject: What the session is about, recorded for whoever resumes it.
        session_holder: Keeps sessions in place of `sessions_dir`.
        build_prompt: Makes the system prompt from the notes of the tools, in place of base rules and `instructions`.
        background: What is known about the subject, recorded for lists and pages; the model is not told.
        verdict: What the rules say about the failure that the runs are about.
        judge_again: Returns the rules' verdict again when a run has ended.
        line_digests: Collects digests of the lines that go to files of the sandbox, to check quotations later.
    """

    max_iterations: int = CHAT_ITERATIONS
    context_limit: int | None = None
    max_usd: Decimal | float | None = None
    max_usd_per_day: Decimal | float | None = None
    max_seconds: float | None = None
    warns: bool = False
    grace_s: float = INTERRUPT_GRACE_S

    base_url: str | None = None
    api_mode: str | None = None
    model_regions: Mapping[str, str] = field(default_factory=dict)
    model_windows: Mapping[str, int] = field(default_factory=dict)
    prices: Mapping[str, PriceOverride] = field(default_factory=dict)
    ca_bundle: str = ""
    context: str | ContextEngine = "compact"
    auxiliary: Mapping[str, Sequence[str]] = field(default_factory=dict)

    api_key: str | None = field(default=None, repr=False)
    temperature: float | None = None
    effort: str | None = None
    max_output_tokens: int | None = None

    todo: bool = False
    recall: bool = False
    memory: Path | str | None = None
    skills: Sequence[Path | str] = ()
    context_files: Path | str | None = None
    personality: str = ""

    toolsets: Sequence[str] | None = None
    plugins: bool = False
    hooks: Sequence[ToolHook] = ()
    approve: Callable[[PermissionQuestion], Any] | Literal["all"] | None = None
    permissions: SessionPermissions | None = None
    delegates: int = 0
    delegate_iterations: int = SUBAGENT_ITERATIONS
    has_host_file: Callable[[str], bool] | None = None
    max_inline_bytes: int = MAX_INLINE_BYTES
    exec_timeout_s: float = EXEC_TIMEOUT_S

    on_event: RunObserver | None = None
    callbacks: Callbacks | None = None
    streaming: bool = False
    on_trouble: Callable[[str], None] | None = None

    environment: Mapping[str, str] | None = field(default=None, repr=False)  # it has keys
    secrets: Sequence[str] = field(default=(), repr=False)
    clock: Clock | None = None
    project: str = "default"
    subject: SessionSubject | None = None
    session_holder: SessionHolder | None = None
    build_prompt: Callable[[str], str] | None = None
    background: RunBackground | None = None
    verdict: FailureVerdict | None = None
    judge_again: Callable[[], FailureVerdict | None] | None = None
    line_digests: LineDigests | None = None

    def __post_init__(self) -> None:
        for name in _NUMBERS:
            if not isinstance(value := getattr(self, name), int | float | Decimal | None) or isinstance(value, bool):
                raise UsageError(f"{name} is {value!r}; give a number.")
        for name in ("max_seconds", "exec_timeout_s", "max_inline_bytes"):
            if (value := getattr(self, name)) is not None and not value > 0:
                raise UsageError(f"{name} is {value}; give a number above 0.")
        for name in ("max_usd", "max_usd_per_day", "delegates", "grace_s"):
            if (value := getattr(self, name)) is not None and not value >= 0:
                raise UsageError(f"{name} is {value}; give 0 or more.")
        if self.max_output_tokens is not None and self.max_output_tokens < 1:
            raise UsageError(f"max_output_tokens is {self.max_output_tokens}; give a number of tokens, or None.")
        if self.temperature is not None and not 0 <= self.temperature <= 2:
            raise UsageError(f"temperature is {self.temperature}; give a number from 0 to 2, or None.")
        if self.effort is not None and self.effort not in EFFORTS:
            raise UsageError(f"effort is {self.effort!r}; give one of {', '.join(EFFORTS)}, or None.")
        for task in self.auxiliary:
            if task not in SIDE_TASKS:
                raise UsageError(f"There is no side task {task!r} in auxiliary; there is: {', '.join(SIDE_TASKS)}.")
            check_sequence(f"auxiliary[{task!r}]", self.auxiliary[task])
        check_sequence("toolsets", self.toolsets)
        check_sequence("skills", self.skills)
        check_sequence("secrets", self.secrets)
        if not isinstance(self.api_key, str | None):
            raise UsageError(f"api_key is of the type {type(self.api_key).__name__}; give a text.")
        if self.api_key is not None and not self.api_key.strip():
            raise UsageError("api_key is empty: give the key, or None for the one in the environment.")
        for folder in [*self.skills, *([] if self.context_files is None else [self.context_files])]:
            if not Path(folder).is_dir():
                raise UsageError(f"There is no folder {str(folder)!r}, which skills or context_files names.")

    def build_run_limits(self, *, records_spending: bool) -> RunLimits:
        """Return the limits of each run.

        Raises UsageError for a limit that makes no sense, and for a daily one where no spending is recorded.
        """
        if self.max_iterations < 1:
            raise UsageError(f"max_iterations is {self.max_iterations}; give the agent at least one turn.")
        if self.context_limit is not None and self.context_limit < 1:
            raise UsageError(f"context_limit is {self.context_limit}; give a number of tokens, or None.")
        if self.max_usd_per_day is not None and not records_spending:
            raise UsageError("max_usd_per_day needs sessions_dir: what was spent is recorded there.")
        return replace(
            CHAT_LIMITS,
            iterations=self.max_iterations,
            context_tokens=self.context_limit,
            usd=_to_decimal(self.max_usd),
            usd_per_day=_to_decimal(self.max_usd_per_day),
            seconds=self.max_seconds,
            warns=self.warns,
        )


def _to_decimal(usd: Decimal | float | None) -> Decimal | None:
    return None if usd is None else Decimal(str(usd))


def create_own_tools(
    config: AgentConfig, entries: Callable[[], Sequence[JournalEntry]], now: Callable[[], float], secrets: Secrets
) -> list[Tool]:
    """Return the built-in tools that the configuration asks for."""
    tools: list[Tool] = []
    if config.todo:
        tools.append(TodoTool(entries))
    if config.recall:
        tools.append(RecallTool(None, entries, secrets))
    if config.memory is not None:
        tools.append(MemoryTool(FileMemory(Path(config.memory)), now, secrets=secrets))
    skills = SkillFolders([Path(folder) for folder in config.skills])
    if found := skills.list_skills().skills:
        tools.append(SkillTool(skills, tuple(found)))
    return tools


def choose_prompt(config: AgentConfig, instructions: str, secrets: Secrets) -> Callable[[str], str]:
    """Return what makes the system prompt of the notes of the tools. Reads the files that belong in it, once."""
    if config.build_prompt is not None:
        return config.build_prompt
    if not (config.skills or config.personality or config.memory or config.context_files):
        return partial(build_system_prompt, workflow=instructions)
    remembered = None if config.memory is None else FileMemory(Path(config.memory)).read()
    parts = PromptParts(
        base=build_system_prompt("", instructions, BASE_RULES),
        personality=config.personality,
        memory="" if remembered is None else render_memory_prompt(remembered, secrets=secrets).text,
        context_files=() if config.context_files is None else find_context_files(Path(config.context_files)).files,
        skills=tuple(SkillFolders([Path(folder) for folder in config.skills]).list_skills().skills),
    )
    return lambda notes: build_chat_prompt(replace(parts, tools=notes))


# What happens in the sandbox changes nothing outside of it.
# The memory is a folder that the user has named for it.
_UNASKED = frozenset((*SANDBOX_TOOLS, MEMORY_NAME))
_ALLOWED_RULES = tuple(PermissionRule(PermissionAction.ALLOW, name) for name in sorted(_UNASKED))


def choose_permissions(config: AgentConfig, callbacks: Callbacks, tools: Iterable[Tool]) -> SessionPermissions | None:
    """Return the permissions of an agent with these tools; None if every call may run.

    Raises UsageError for a tool that does more than read, if nobody was named who approves its calls.
    """
    approve = config.approve or callbacks.approval
    given = config.permissions
    if approve == APPROVE_ALL:
        return given
    if callable(approve):
        if given is not None and given.asker is not None:
            return given
        return replace(given or SessionPermissions(_ALLOWED_RULES), asker=CallbackAsker(approve))
    if approve is not None:
        raise UsageError(f'approve is {approve!r}; give a function that answers questions, or "{APPROVE_ALL}".')
    if given is not None:
        return given
    for tool in tools:
        if tool.spec.name not in _UNASKED and (beyond := sorted(tool.spec.effects - {ToolEffect.READ})):
            raise UsageError(
                f"The tool {tool.spec.name} does more than read ({', '.join(beyond)}), and nobody approves its calls: "
                f'give AgentConfig a function as approve, or approve="{APPROVE_ALL}" if every call may run.'
            )
    return None
