"""Write plain text, code and links as Markdown that every version of GitLab reads as exactly that.

GitLab looks for mentions and references in the rendered text, where backslashes are gone. So an invisible word joiner
(U+2060) is put into whatever would be one: `@`, joiner, `all`. Characters that Markdown would read as markup are
escaped. All functions take time linear in the length of the text.
"""

import html
import re
from urllib.parse import unquote

JOINER = "\u2060"  # word joiner: invisible, and no line break happens at it

_LINE_ENDS = re.compile(r"\r\n?")
_OTHER_BREAKS = re.compile("[\x0b\x0c\x1c-\x1f\x85\u2028\u2029]")
# Control characters; soft hyphen, fillers, joiners, directions, variation selectors, tags; noncharacters.
_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200c\u200e\u200f"
    "\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0e\ufeff\uffa0\ufff0-\ufffb\ufffe\uffff\ud800-\udfff"
    "\U000e0000-\U000e0fff\U000f0000-\U0010ffff]"
)
_LONE_ZERO_WIDTH_JOINER = re.compile("(?<![\u00a9-\U0001ffff])\u200d|\u200d(?![\u00a9-\U0001ffff])")  # emoji need it

# Everything that GitLab turns into a link, a mention or a reference in text nodes of the rendered page. Each
# alternative ends where the joiner goes.
_REFERENCE = re.compile(
    rf"(?<![A-Za-z0-9])@(?=[^\s{JOINER}]|\Z)"  # @user, @group, @all; GitLab may cut the text at an escaped `_`
    r"|[#!](?=[0-9]|\Z)"  # issue, merge request
    rf"|%(?=[^\s%{JOINER}]|\Z)"  # milestone, placeholder
    rf"|~(?=[^\s~{JOINER}]|\Z)"  # label
    r"|\$(?=[0-9]|\Z)"  # snippet
    r"|&(?=[0-9]|\Z)"  # epic
    r"|\[(?=\[|[A-Za-z_]{1,40}:|\Z)"  # [[wiki link]], [issue:1]
    r"|\](?=\(|\Z)"  # GitLab reads links with spaces again, in the rendered text
    r"|\*(?=iteration:)"
    r"|(?<![A-Za-z0-9])[A-Z][A-Z0-9_]*+-(?=[0-9]|\Z)"  # ABC-1 of an external issue tracker
    r"|GL-(?=[0-9]|\Z)"  # an issue, within words too: WebGL-2
    r"|(?<=[A-Za-z0-9_.-])/(?=[A-Za-z0-9_.-]++>)"  # group/project>
    r"|:(?=//)"  # GitLab links addresses of any scheme
    r"|\b[wW]{3}(?=\.)",
    re.ASCII,
)
_NUMBERED_ENTITY = re.compile(r"&#0*([0-9]{1,8})[0-9]*")
_HASH = re.compile(r"[0-9a-fA-F]{7,}")  # GitLab looks up such a commit; older versions also within words
_TOKEN = re.compile(r"[A-Za-z0-9_./:=+-]+")
_MARKUP = re.compile(r"[\\`*\[\]$~|]|<|&(?=#?[A-Za-z0-9]{1,40};)|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_LINE_START = re.compile(
    r"(?P<slash>/)|(?P<number>[0-9]{1,9})(?=[.)](?:\s|\Z))|(?=[-#>]|\+(?:[\s+]|\Z)|=+\s*\Z|:(?:\s|\Z)|;;;)"
)
# A slash with only container marks (quotes, bullets, numbers) before it on its line. Behind four spaces it is code or
# text in every reading, never a quick action.
_SLASH_FIRST = re.compile(r"^(?:[^\S\n]{0,3}(?:>|(?:[-+*:~]|[0-9]{1,9}[.)])\s))*+[^\S\n]{0,3}/", re.MULTILINE)
_CODE_INDENT = "    "
_BACKTICKS = re.compile("`+")

_URL_CHARS = 2_000
_WEB = re.compile(
    r"https?://[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?(?::[0-9]{1,5})?(?P<path>[/?#].*)?", re.IGNORECASE
)
_MAIL = re.compile(r"mailto:[A-Za-z0-9._+-]{1,64}@[A-Za-z0-9.-]{1,255}")
_RELATIVE_PATH = re.compile(r"(?!//)[A-Za-z0-9_./-]*(?:#[A-Za-z_][A-Za-z0-9_-]*)?", re.ASCII)
_UNSAFE_IN_URL = re.compile(r"[^A-Za-z0-9._~:/?#=&%+,;@-]|%(?![0-9A-Fa-f]{2})|(?<=[A-Za-z0-9]);")
# A link to a GitLab item leaves a trace on that item. The listed pages below `/-/` are not items.
_PAGE = re.compile(
    r"/-/(?!(?:jobs|pipelines|blob|tree|raw|blame|artifacts|tags|branches|releases|packages)(?:[/?#]|\Z))"
)
_ITEM = re.compile(
    r"/(?:issues|merge_requests|work_items|epics|milestones|snippets|designs|alerts|vulnerabilities|incident|iterations"
    r"|commits?|compare|uploads)/",
    re.IGNORECASE,
)
_DECODINGS = 5

_LANGUAGES = """
ansi asm awk bash bat c c# c++ cc clojure cmake conf console coq cpp cs csharp css csv cuda dart diff docker dockerfile
elixir elm erlang fish fortran fsharp gherkin go golang gradle graphql groovy haskell hcl html http ini java javascript
js json json5 jsonc jsx julia kotlin latex less lisp log lua make makefile markdown matlab md meson nginx nim nix
objc objective-c ocaml output pascal patch perl php plaintext powershell prolog properties proto protobuf ps1 py pycon
pytb python python3 r rb rego rst ruby rust rs scala scheme scss sh shell shell-session sql starlark svelte swift tcl
terraform text tf toml traceback ts tsx txt typescript vb verilog vhdl vim vue xml yaml yml zig zsh
"""
LANGUAGES = frozenset(_LANGUAGES.split())  # languages that GitLab only highlights, unlike mermaid or suggestion


def strip_invisible(text: str) -> str:
    """Return the text with `\\n` between lines and without invisible characters."""
    text = _OTHER_BREAKS.sub(" ", _LINE_ENDS.sub("\n", text))
    return _LONE_ZERO_WIDTH_JOINER.sub("", _INVISIBLE.sub("", text))


def has_invisible(markdown: str) -> bool:
    """Return whether there are invisible characters, apart from our joiners, or line ends other than `\\n`."""
    plain = markdown.replace(JOINER, "")
    return strip_invisible(plain) != plain


def decode_entities(text: str) -> str:
    """Replace entities by the characters they stand for; Python alone raises at a number of more than 4,300 digits."""
    return html.unescape(_NUMBERED_ENTITY.sub(r"&#\1", text))


def break_references(text: str) -> str:
    """Put a joiner into everything that GitLab would read as a mention, a reference or an address."""
    return _REFERENCE.sub(lambda found: found[0] + JOINER, text)


def has_reference(text: str) -> bool:
    """Return whether GitLab would find a mention, a reference, an address or a commit in this rendered text."""
    return _REFERENCE.search(text.rstrip() + " ") is not None or _HASH.search(text) is not None


def has_slash_first(markdown: str) -> bool:
    """Return whether a line begins with a slash, in any container and also in code."""
    return _SLASH_FIRST.search(markdown) is not None


def escape_text(text: str, *, ends_line: bool = True) -> str:
    """Write text inside a paragraph. A word that holds what looks like a commit hash becomes code.

    `ends_line`: nothing follows the text that could complete a reference.
    """
    if ends_line:
        return escape_text(f"{text}\n", ends_line=False)[:-1]
    parts: list[str] = []
    done = 0
    for token in _TOKEN.finditer(text):
        word = token[0].rstrip(".:")
        if len(word) >= 7 and _HASH.search(word):
            parts += (_escape_markup(text[done : token.start()]), code_span(word))
            done = token.start() + len(word)
    parts.append(_escape_markup(text[done:]))
    return "".join(parts)


def _escape_markup(text: str) -> str:
    return _MARKUP.sub(_escape_sign, break_references(text))


def _escape_sign(found: re.Match[str]) -> str:
    return {"<": "&lt;", "&": "&amp;"}.get(found[0]) or "\\" + found[0]


def escape_html_text(text: str) -> str:
    """Write text inside an HTML element, where Markdown is not read."""
    line = break_references(" ".join(text.split()))
    line = _HASH.sub(lambda found: re.sub("(.{6})", rf"\g<1>{JOINER}", found[0]), line)  # GitLab needs seven digits
    return line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def escape_line_starts(lines: str) -> str:
    """Escape whatever would start a block or a quick action at the beginning of a line."""
    return "\n".join(_escape_line_start(line.strip()) for line in lines.split("\n"))


def _escape_line_start(line: str) -> str:
    found = _LINE_START.match(line)
    if found is None:
        return line
    if found["slash"]:
        return "&#47;" + line[1:]
    return (found["number"] or "") + "\\" + line[found.end() :]


def code_span(text: str) -> str:
    """Write text as code within a line."""
    line = " ".join(text.split("\n"))
    fence = "`" * (max(map(len, _BACKTICKS.findall(line)), default=0) + 1)
    if line[:1] == "`" or line[-1:] == "`" or (line[:1] == " " and line[-1:] == " " and line.strip()):
        line = f" {line} "
    return f"{fence}{line}{fence}" if line.strip() else line


def code_block(text: str, language: str = "") -> str:
    """Write text as a block of code.

    If a line begins with `/`, the whole block is indented: GitLab would execute such a line as a quick action if it
    parsed the block differently, and leading spaces do not harm a copied command.
    """
    if has_slash_first(text):
        text = "\n".join(_CODE_INDENT + line if line else line for line in text.split("\n"))
    fence = fence_for(text)
    known = language.lower() if language.lower() in LANGUAGES else "text" if language else ""
    return f"{fence}{known}\n{text}\n{fence}" if text else f"{fence}{known}\n{fence}"


def fence_for(text: str) -> str:
    """Return a fence that nothing in the text can close."""
    return "`" * max(3, max(map(len, _BACKTICKS.findall(text)), default=0) + 1)


def link_target(url: str) -> str | None:
    """Return the address as it may be used in a note; None if a link must not lead there.

    Web addresses, mailboxes and relative paths are allowed, but not GitLab's items: a link to one leaves a trace on it.
    """
    url = url.strip()
    if len(url) > _URL_CHARS or not url:
        return None
    plain = url
    for _ in range(_DECODINGS):
        decoded = unquote(plain)
        if decoded == plain:
            break
        plain = decoded
    else:
        return None
    if _PAGE.search(plain) or _ITEM.search(plain) or "\\" in plain:
        return None
    if _MAIL.fullmatch(url):
        return url
    if _RELATIVE_PATH.fullmatch(url):
        return None if has_reference(url) else url  # GitLab looks for references in addresses too
    web = _WEB.fullmatch(url)
    return _UNSAFE_IN_URL.sub(_percent_encode, url) if web and "//" not in (web["path"] or "")[:2] else None


def _percent_encode(found: re.Match[str]) -> str:
    return "".join(f"%{byte:02X}" for byte in found[0][:1].encode("utf-8", "replace")) + found[0][1:]
