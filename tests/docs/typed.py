"""Command lines that documents show, and whether the program would take them. Nothing is run: click parses, no more."""

import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import redirect_stdout, suppress
from dataclasses import dataclass
from html import unescape
from io import StringIO
from pathlib import Path

import click

from hummingbird.cli.main import commands
from tests.docs.reading import ROOT, blocks, code_in_sentences

PROGRAM = "hummingbird"
USAGE = "[OPTIONS]"  # a line that only says what can be typed
_TYPED = re.compile(r"(?:^|[|&;]\s*|-- |^(?:[A-Z_]+=\S+\s+)+)(?:hummingbird|make) ")
_CONTINUED = re.compile(r"\\\n\s*")
_REMARK = re.compile(r"\s{3,}\S.*")  # behind a command, without a #
_VARIABLE = re.compile(r"[A-Z_]+=")
_CODE = re.compile(r"<code>(.*?)</code>")
_PLACEHOLDER = re.compile(r"\{\{.*?\}\}")
_TARGET = re.compile(r"^([a-z-]+):", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Typed:
    """`whole`: somebody is to type it as it stands there. In a sentence it may be the name of a command alone."""

    line: int
    words: tuple[str, ...]
    whole: bool

    def __str__(self) -> str:
        return shlex.join(self.words)


def typed(document: Path) -> Iterator[Typed]:
    """Every command of ours or of make, in blocks and sentences; also behind a pipe, a variable or another's `--`."""
    for block in blocks(document):
        for number, line in shown_lines(block.text):
            for words in _commands(line):
                yield Typed(block.line + number, words, whole=True)
    for number, code in code_in_sentences(document):
        for words in _commands(code.replace("\\|", "|")):
            yield Typed(number, words, whole=False)


def typed_on_page(template: Path) -> Iterator[Typed]:
    """Every command of ours that a template of the dashboard shows as code."""
    for number, line in enumerate(template.read_text(encoding="utf-8").splitlines(), 1):
        for code in _CODE.findall(line):
            for words in _commands(unescape(_PLACEHOLDER.sub("1", code))):
                yield Typed(number, words, whole=False)


def shown_lines(text: str) -> Iterator[tuple[int, str]]:
    """Where some lines have a prompt, the others are what was printed."""
    prompts = any(line.startswith("$ ") for line in text.splitlines())
    for number, line in enumerate(_CONTINUED.sub(" ", text).splitlines()):
        if not prompts or line.startswith("$ "):
            yield number, line.removeprefix("$ ").strip()


def _commands(line: str) -> Iterator[tuple[str, ...]]:
    if not _TYPED.search(f"{line} ") or USAGE in line:
        return
    cut = _REMARK.sub("", line) if line.startswith(PROGRAM) else line
    lexer = shlex.shlex(cut, posix=True, punctuation_chars="|&;<>")
    lexer.whitespace_split = True
    for words in _simple(lexer):
        while words and _VARIABLE.match(words[0]):
            del words[0]
        if "--" in words and words[0] != PROGRAM:
            del words[: words.index("--") + 1]
        if words and words[0] in {PROGRAM, "make"}:
            yield tuple(words)


def _simple(lexer: Iterable[str]) -> Iterator[list[str]]:
    """Commands between operators, without what they are redirected to."""
    words, dropped = list[str](), False
    for word in lexer:
        if dropped:
            dropped = False
        elif set(word) <= set("<>&") and set(word) & set("<>"):
            dropped = True
        elif word and set(word) <= set("|&;"):
            yield words
            words = []
        else:
            words.append(word)
    yield words


def fault(one: Typed) -> str:
    """Why it would be refused, or nothing."""
    if one.words[0] == "make":
        named = [word for word in one.words[1:] if not _VARIABLE.match(word) and not word.startswith("-")]
        missing = [name for name in named if name not in targets()]
        return f"there is no target {missing[0]!r}" if missing else ""
    try:
        with redirect_stdout(StringIO()):
            _parse(commands, PROGRAM, list(one.words[1:]), None)
    except click.exceptions.NoArgsIsHelpError:
        return ""
    except click.MissingParameter as error:
        return error.format_message() if one.whole else ""
    except click.UsageError as error:
        return error.format_message()
    return ""


def targets() -> frozenset[str]:
    return frozenset(_TARGET.findall((ROOT / "Makefile").read_text(encoding="utf-8")))


def _parse(command: click.Command, name: str, words: list[str], parent: click.Context | None) -> None:
    with suppress(click.exceptions.Exit):  # --help and --version end here
        context = command.make_context(name, words, parent)
        if isinstance(command, click.Group):
            rest = [*context._protected_args, *context.args]
            found, below, rest = command.resolve_command(context, rest)
            assert below is not None
            _parse(below, found or "", rest, context)
