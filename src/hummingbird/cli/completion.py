"""What the shell offers behind Tab: cases, workflows, models and session ids.

A completion runs on every key press of Tab, so it reads only what is on this machine and never shows an error: where
something is broken, it offers nothing, and the command itself will say what is wrong.
"""

import asyncio
import os
from collections.abc import Callable, Iterable
from functools import wraps
from pathlib import Path
from typing import TypeAlias

import click
from click.shell_completion import CompletionItem

from hummingbird.core.errors import HummingbirdError

Completer: TypeAlias = Callable[[click.Context, click.Parameter, str], list[CompletionItem]]
Candidates: TypeAlias = Iterable[tuple[str, str]]  # values with a word about each

_NEWEST_SESSIONS = 50


def _completer(list_candidates: Callable[[click.Context], Candidates]) -> Completer:
    @wraps(list_candidates)
    def complete(ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        try:
            found = list(list_candidates(ctx))
        except (HummingbirdError, OSError, ValueError):
            return []
        return [CompletionItem(value, help=about) for value, about in found if value.startswith(incomplete)]

    return complete


@_completer
def complete_case(ctx: click.Context) -> Candidates:
    """Offer the built-in cases of the lab, but none twice."""
    from hummingbird.lab.case import case_names, find_case

    given = ctx.params.get("cases") or ()
    for name in case_names():
        if name not in given:
            yield name, str(find_case(name).description["title"])


@_completer
def complete_workflow(ctx: click.Context) -> Candidates:
    """Offer the workflows of the configuration."""
    from hummingbird.config.loader import find_config, load_config

    configuration = load_config(find_config(ctx.params.get("config"), os.environ, Path.cwd()), None)
    for name in configuration.workflows:
        yield name, ""


@_completer
def complete_model(ctx: click.Context) -> Candidates:  # noqa: ARG001 - all completions have one form
    """Offer the models that are known by their bare names: bash splits words at the colon of `provider:model`."""
    from hummingbird.models.prices import list_chat_models

    yield "digest", "rules, no model"
    for name in list_chat_models():
        yield name, ""


@_completer
def complete_session(ctx: click.Context) -> Candidates:
    """Offer the newest sessions by id, with their titles."""
    from hummingbird.app.clock import SystemClock
    from hummingbird.app.session_catalog import open_session_catalog
    from hummingbird.config.loader import find_config, load_config

    configuration = load_config(find_config(ctx.params.get("config"), os.environ, Path.cwd()), None)
    catalog = open_session_catalog(configuration, os.environ, SystemClock())
    for session in asyncio.run(catalog.list_sessions(_NEWEST_SESSIONS)):
        yield session.session_id, session.title
