"""`hummingbird chat`: who is talked to, and on what: a terminal, a pipe, or one question."""

import asyncio
import os
import sys
from dataclasses import replace
from functools import partial
from pathlib import Path

import click

from hummingbird.assembly.chat_desk import About, ChatParts
from hummingbird.assembly.chatting import PROMPT_BYTES, partner_of, prompt_sizes
from hummingbird.assembly.partner import ChatPartner
from hummingbird.assembly.places import places
from hummingbird.assembly.results import as_result
from hummingbird.assembly.sandboxes import Chosen, check_chosen
from hummingbird.assembly.secrets import all_secrets
from hummingbird.chat.converse import converse, is_terminal
from hummingbird.chat.headless import Piping, answer_lines, answer_one, query_text, standard_input
from hummingbird.chat.terminal import Setting
from hummingbird.chat.wish import ChatWish
from hummingbird.cli.lines import logged
from hummingbird.config.load import find_named, load
from hummingbird.ports.observer import Observer
from hummingbird.ports.permissions import Asker
from hummingbird.ports.person import Clarifier

__all__ = ["Chosen", "chat"]

HISTORY = "chat_history"


def chat(config: str | None, wish: ChatWish, chosen: Chosen, *, verbose: bool) -> int:
    """Raises HummingbirdError for what it cannot begin with."""
    found, remark = find_named(config, os.environ, Path.cwd())
    configuration = load(found, os.environ)
    check_chosen(configuration.settings, chosen)
    parts = ChatParts(
        configuration=configuration,
        environment=dict(os.environ),
        workspace=Path(wish.workspace or ".").expanduser().absolute(),
        chosen=chosen,
        toolsets=wish.toolsets,
        model=wish.model,
        plan=wish.plan,
    )
    if wish.prompt_size:
        return _sizes(parts, _subject(wish))
    made = partial(_partner, parts, wish)
    piping = Piping(parts.workspace, as_result, wish.as_json, sys.stderr.isatty() and not wish.as_json, verbose)
    if wish.query is None and not wish.as_json and is_terminal(os.environ):
        return asyncio.run(converse(made, _setting(parts, wish, remark, verbose=verbose)))
    if remark:
        click.echo(f"hummingbird: {remark}", err=True)
    with logged(configuration, verbose=verbose):
        if wish.query is None:
            return asyncio.run(answer_lines(made, standard_input(), piping))
        if wish.query == "-":
            return asyncio.run(answer_one(made, query_text(standard_input()), piping, typed=False))
        return asyncio.run(answer_one(made, wish.query, piping))


async def _partner(
    parts: ChatParts, wish: ChatWish, observer: Observer, asker: Asker, clarifier: Clarifier | None
) -> ChatPartner:
    watched = replace(parts, asker=asker, clarifier=clarifier, on_event=observer)
    return await partner_of(watched, _subject(wish), resume=wish.resume, newest=wish.newest, named=True)


def _subject(wish: ChatWish) -> About:
    return About(wish.project, wish.workflow, prompted=bool(wish.workflow))


def _setting(parts: ChatParts, wish: ChatWish, remark: str, *, verbose: bool) -> Setting:
    state = places(parts.configuration.settings, parts.environment).made().state
    greeting = "Hummingbird. /help lists commands, Ctrl-C interrupts, Ctrl-D leaves."
    return Setting(
        start=parts.workspace,
        environment=parts.environment,
        mask=all_secrets(parts.configuration, parts.environment).mask,
        history=state / HISTORY,
        colour=wish.colour,
        verbose=verbose,
        greeting=f"{greeting}\n{remark}".rstrip(),
    )


def _sizes(parts: ChatParts, subject: About) -> int:
    found = prompt_sizes(parts, subject)
    for name, size in found:
        click.echo(f"{size:>7,}  {name}")
    whole = sum(size for _, size in found)
    click.echo(f"{whole:>7,}  bytes together, in every call; the default chat has {PROMPT_BYTES:,} at most")
    return 0
