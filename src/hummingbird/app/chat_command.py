"""`hummingbird chat`: chooses between a terminal, a pipe and one question, and starts the conversation."""

import asyncio
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from hummingbird.app.chat import MAX_PROMPT_BYTES, ChatPartner, create_partner, measure_prompt
from hummingbird.app.chat_context import ChatOptions, ChatSubject
from hummingbird.app.console import log_to_terminal
from hummingbird.app.environment_secrets import all_secrets
from hummingbird.app.library import outcome_to_dict
from hummingbird.app.sandboxes import SandboxChoice, check_sandbox_choice
from hummingbird.app.stores import state_paths
from hummingbird.chat.headless import (
    HeadlessSettings,
    answer_lines,
    answer_one,
    open_standard_input,
    read_piped_input,
    read_query,
)
from hummingbird.chat.request import PICK_SESSION, ChatRequest
from hummingbird.chat.screen import AWAY_S
from hummingbird.chat.terminal import TerminalSettings, has_terminal, run_terminal_chat
from hummingbird.config.loader import find_explicit_config, load_config
from hummingbird.core.protocols.interaction import Clarifier, PermissionAsker
from hummingbird.core.protocols.observer import RunObserver

HISTORY_FILE = "chat_history"


def chat_command(config: str | None, request: ChatRequest, chosen: SandboxChoice, *, verbose: bool) -> int:
    """Run `hummingbird chat` and return its exit code.

    Raises HummingbirdError if it cannot start.
    """
    _replace_closed_streams()
    found, remark = find_explicit_config(config, os.environ, Path.cwd())
    configuration = load_config(found, os.environ)
    check_sandbox_choice(configuration.settings, chosen)
    parts = ChatOptions(
        configuration=configuration,
        environment=dict(os.environ),
        workspace=Path(request.workspace or ".").expanduser().absolute(),
        chosen=chosen,
        toolsets=request.toolsets,
        model=request.model,
        plan=request.plan,
        accept_edits=request.accept_edits,
        allow=request.allow,
        deny=request.deny,
        effort=request.effort,
        max_usd=request.max_usd,
        max_turns=request.max_turns,
        instructions=request.instructions,
    )
    if request.prompt_size:
        return _print_prompt_sizes(parts, _subject_of_request(request))
    made = partial(_create_observed_partner, parts, request)
    is_text = not request.as_json and not request.only_result
    piping = HeadlessSettings(
        parts.workspace,
        outcome_to_dict,
        request.as_json,
        sys.stderr.isatty() and is_text,
        verbose,
        only_result=request.only_result,
    )
    if request.query is None and is_text and has_terminal(os.environ):
        parts = replace(parts, titles=True)
        made = partial(_create_observed_partner, parts, request)
        return asyncio.run(run_terminal_chat(made, _terminal_settings(parts, request, remark, verbose=verbose)))
    if remark:
        click.echo(f"hummingbird: {remark}", err=True)
    query = request.query or request.message or None
    with log_to_terminal(configuration, verbose=verbose):
        if query is None:
            return asyncio.run(answer_lines(made, open_standard_input(), piping))
        if query == "-":
            return asyncio.run(answer_one(made, "", piping, piped=read_query(open_standard_input())))
        return asyncio.run(answer_one(made, query, piping, piped=read_piped_input()))


def _replace_closed_streams() -> None:
    """Discard what is written to streams that were closed before the start (`>&-`); Python has None for them."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - until the end


async def _create_observed_partner(
    parts: ChatOptions, request: ChatRequest, observer: RunObserver, asker: PermissionAsker, clarifier: Clarifier | None
) -> ChatPartner:
    watched = replace(parts, asker=asker, clarifier=clarifier, on_event=observer)
    resume = "" if request.resume == PICK_SESSION else request.resume
    return await create_partner(watched, _subject_of_request(request), resume=resume, newest=request.newest, named=True)


def _subject_of_request(request: ChatRequest) -> ChatSubject:
    return ChatSubject(request.project, request.workflow, with_prompt=bool(request.workflow))


def _terminal_settings(parts: ChatOptions, request: ChatRequest, remark: str, *, verbose: bool) -> TerminalSettings:
    state = state_paths(parts.configuration.settings, parts.environment).create_folders().state
    greeting = "Hummingbird. /help lists commands, Ctrl-C interrupts, Ctrl-D leaves."
    return TerminalSettings(
        start=parts.workspace,
        environment=parts.environment,
        mask=all_secrets(parts.configuration, parts.environment).mask,
        history=state / HISTORY_FILE,
        colour=request.colour,
        verbose=verbose,
        bell_after_s=AWAY_S if parts.configuration.chat.bell else None,
        greeting=f"{greeting}\n{remark}".rstrip(),
        resumed=request.newest or request.resume not in {"", PICK_SESSION},
        first="/resume" if request.resume == PICK_SESSION else request.message,
    )


def _print_prompt_sizes(parts: ChatOptions, subject: ChatSubject) -> int:
    found = measure_prompt(parts, subject)
    for name, size in found:
        click.echo(f"{size:>7,}  {name}")
    whole = sum(size for _, size in found)
    click.echo(f"{whole:>7,}  bytes together, in every call; the default chat has {MAX_PROMPT_BYTES:,} at most")
    return 0
