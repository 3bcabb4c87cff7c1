"""What becomes of the single things that a note may not hold (N2, N5, T7)."""

import pytest

from hummingbird.adapters.forge.firewall import CUT, safe
from hummingbird.domain.limits import NOTE_CHARS
from hummingbird.domain.secrets import Secrets
from tests.adapters.forge.hostile import MARKER
from tests.adapters.forge.judging import commands, html

SECRETS = Secrets(["correct-horse-battery"])


def made(markdown: str, most: int = NOTE_CHARS) -> str:
    return safe(markdown, SECRETS, MARKER, most)


@pytest.mark.parametrize(
    ("markdown", "body"),
    [
        ("/close", "&#47;close"),
        ("a @all b", "a \\@all b"),
        ("&commat;all", "\\@all"),
        ("`x\n/close`", "`x /close`"),
        ("![a](https://x.example/p.png)", "[a](https://x.example/p.png)"),
        ("![](https://x.example/p.png)", "[image](https://x.example/p.png)"),
        ("<img src=x>", "&lt;img src=x>"),
        ("in <lambda> of", "in &lt;lambda> of"),
        ("[x](javascript:a)", "[x]\\(javascript:a)"),
        ("see https://g.example/a/-/issues/1.", "see `https://g.example/a/-/issues/1`."),
        ("a <!-- b --> c", "a  c"),
        ("<details>\n\nx", "<details>\n\nx\n\n</details>"),
        ("x </details> y", "x &lt;/details> y"),
        ("```\nx", "```\nx\n```"),
        ("> ```\n> x", "> ```\n> x\n> ```"),
        (">>>\nx\n>>>", "> > >\nx\n> > >"),
        ("---\na: b\n---", "***\na: b\n---"),
        ("a\u202eb\u200bc\x00d\ufeff", "abcd"),
        ("Encoding: x\n---\na: b\n---", "Encoding: x\n***\na: b\n---"),
        ("```plantuml\nx\n```", "```text\nx\n```"),
        ("```Mermaid:x\nx\n```", "```text\nx\n```"),
        ("``` m&#101;rmaid wide\nx\n```", "``` text\nx\n```"),
        ("~~~ json\\:table\nx\n~~~", "~~~ text\nx\n~~~"),
        ("```json table\nx\n```", "```text\nx\n```"),
        ("```json x table\nx\n```", "```text\nx\n```"),
        ("https://a.example/?" + "q" * 2_000, "`https://a.example/?" + "q" * 2_000 + "`"),
        ("https://a.example/![p](https://b.example/p.png)", "https://a.example/[p](https://b.example/p.png)"),
        ("https://#1", "https://\\#1"),
        ("https://a.example/%25252525252541", "`https://a.example/%25252525252541`"),
        ("- ```{.mermaid}\n  x\n  ```", "- ```text\n  x\n  ```"),
        ("```json\nx\n```", "```json\nx\n```"),
        ("```c++ wide\nx\n```", "```c++ wide\nx\n```"),
        ("term\n: ```d2\n  x\n  ```", "term\n: ```\u2060d2\n  x\n  ```\n  ```"),
        ("[x](javascript://a/?b)", "[x]\\(javascript://a/?b)"),
        ("[x](https://a.example/?b=https://c.example)", "[x](https://a.example/?b=https://c.example)"),
        ("http&#115;&colon;&sol;/g.example/a/-/issues/1", "`https://g.example/a/-/issues/1`"),
        ("https://a.examplehttps://g.example/-/issues/1.", "`https://a.examplehttps://g.example/-/issues/1`."),
        ("&#47;close and&#47;or", "&#47;close and/or"),
        ("<div>http&#115;:&#47;/g.example/-/issues/1</div>", "<div>https://\u2060g.example/-/issues/1</div>"),
    ],
)
def test_n5_each_thing_has_its_harmless_form(markdown: str, body: str) -> None:
    assert made(markdown) == body


@pytest.mark.parametrize("around", ["{}", "```\n{}\n```", "`{}`", "    {}", "> - {}"])
@pytest.mark.parametrize("blank", ["", " ", "\t", "\n"])
def test_n2_no_marker_of_ours_can_be_written_even_in_code(around: str, blank: str) -> None:
    body = made(around.format(f'<!--{blank}{MARKER.upper()}: {{"id":"1"}} -->')).lower()
    assert "<!--" not in body or MARKER not in body


@pytest.mark.parametrize(
    "hidden",
    [
        "correct-horse-battery",
        "correct\u200b-horse-battery",
        "correct&#45;horse&#x2d;battery",
        "correct\\-horse\\-battery",
        "correct-<!-- x -->horse-battery",
        "correct-**horse**-battery",
        "correct<b>-horse</b>-battery",
        "`correct-horse-battery`",
        "```\ncorrect-horse-battery\n```",
    ],
)
def test_t7_a_secret_is_masked_however_it_is_written(hidden: str) -> None:
    body = made(f"It is {hidden}!")
    assert "[masked]" in body
    assert "horse" not in body


@pytest.mark.parametrize(
    "piece", ["/close @all\n", "word ", "```\n/close\n", "<details>\n\n", "$", "- a\n  ```\n", "`", "&#64;"]
)
@pytest.mark.parametrize("most", [400, 5000, 60_000])
def test_n5_what_is_too_long_is_cut_where_it_harms_nobody_and_says_so(piece: str, most: int) -> None:
    body = made(piece * (2 * most // len(piece)), most)
    assert len(body) <= most
    assert body.endswith(CUT)
    assert html(body).endswith(f"<p><em>{CUT.strip().strip('*')}</em></p>\n")
    assert commands(body) == []


def test_n5_gitlab_takes_the_longest_note() -> None:
    body = made("@all ü\n" * 200_000)
    assert NOTE_CHARS * 0.9 < len(body) <= NOTE_CHARS
