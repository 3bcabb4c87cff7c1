"""Markdown as people and models write it. None of it may look different once it was made safe."""

REPORT = """## Why the pipeline failed

**Verdict:** the test is flaky; the change did not cause it.

| Job | Stage | What happened |
|-----|:-----:|--------------:|
| `unit` | test | 1 of 214 tests failed |
| `lint` | check | passed |

### Evidence

1. [unit, line 412](https://gitlab.example/acme/widgets/-/jobs/70001#L412) says:
   ```
   E   AssertionError: expected 3, got 4
   /usr/lib/python3.11/site-packages/x.py:12
   ```
2. The same test failed on `main` in [pipeline 9000](https://gitlab.example/acme/widgets/-/pipelines/9000).

> The runner was low on memory.
> It said so twice.

<details>
<summary>What was looked at</summary>

- `unit.log` (2,140 lines)
- the diff

</details>

---

*Confidence: high.*
"""

SAMPLES = (
    REPORT,
    "Plain text.",
    "Two lines\nof one paragraph.",
    "A hard  \nbreak and another\\\none.",
    "# One\n## Two\n### Three ###\n",
    "Heading\n=======\n\nOther\n-----\n",
    "*a* **b** ***c*** _d_ __e__ `f`",
    "- a\n- b\n- c",
    "- a\n  - b\n    - c\n      more of c\n- d",
    "1. a\n2. b\n   1. c\n   2. d\n",
    "* a\n\n  second paragraph\n\n* b",
    "- [ ] to do\n- [x] done",
    "> quote\n> goes on",
    "> quote\nlazily",
    "> a\n> > b\n>\n> - c\n",
    "```\n/usr/bin/env\n@decorator\n#1\n```",
    "```python\n@pytest.fixture\ndef x() -> None:\n    '''#1'''\n```",
    "~~~\n```\n~~~",
    "````\n```\ninner\n```\n````",
    "- item\n  ```sh\n  /bin/true\n  ```\n- next",
    "> ```\n> /bin/true @x\n> ```",
    "    indented code\n    /bin/true\n    @x\n\nafter",
    "\t/tab/indented",
    "- a\n\n      code in a list\n",
    "```python\n    return /close\n```",
    "Use `@property` and `#1` and `$HOME` and `<div>` and `/close`.",
    "Use ``a ` b`` and `` ` ``.",
    "The path\n/usr/bin/python\nis missing.",
    "/usr/bin/python is missing.",
    "- /etc/passwd\n- /etc/hosts",
    "> /etc/passwd",
    "| a | b |\n|---|---|\n| 1 | 2 |",
    "a | b\n:-: | --:\n`x` | **y**\n/z | w",
    "| a |\n|---|\n| `x \\| y` |",
    "| @x | #1 |\n|---|---|\n| !2 | 50% |",
    "Mail ada@example.com about @ada and #12 and !34 and %1 and ~bug and $5 and &6.",
    "It costs $5, or 10 % of $50 (&c.), C# and F#.",
    "AT&amp;T &lt;b&gt; &copy; &#169; &nbsp;x",
    "a < b and b > a, a<b, x << 2, if a <= b",
    "[text](https://example.com)",
    '[text](https://example.com "a title")',
    "[text](<https://example.com/a b>)",
    "[text](docs/readme.md) [up](../x) [root](/x/y) [here](#section)",
    "[text](https://example.com/a_(b)?c=d&e=f#g)",
    "[text][ref] and [ref]\n\n[ref]: https://example.com 'title'",
    "[ref]\n\n[ref]:\n  /path/of/it\n",
    "<https://example.com/x?y=z> <ada@example.com>",
    "See https://example.com/a/b?c=1&d=2#L10-20, please.",
    "See https://gitlab.example/a/b/-/jobs/123/artifacts/browse/~x/%20y.",
    "[mail](mailto:ada@example.com)",
    "a<br>b<br/>c<br />d",
    "H<sub>2</sub>O x<sup>2</sup> <kbd>Ctrl</kbd>",
    "<details><summary>Log</summary>\n\n```\nx\n```\n\n</details>\n\nafter",
    "<details open>\n<summary>Log</summary>\nplain\n</details>",
    "***\n\n---\n\n___",
    "---\n\nafter a rule",
    "Escapes: \\* \\_ \\# \\@ \\/ \\\\ \\` \\[",
    "~~struck~~ and ~single",
    "Wow! Really!! [1] ![",
    "Emoji 🎉 👩\u200d🚀 :tada: and ümläuts, 漢字, עברית",
    "Numbers: 1. 2) 3\n1986\\. A year",
    "a\n***\nb",
    "`code\nover lines` and `more\nof it`",
    "snake_case_name and __init__ and a*b*c",
    "Traceback (most recent call last):\n  File \"/app/x.py\", line 3, in \\<lambda>\nKeyError: 'a'",
    "-  wide\n\n   item\n\n10. ten\n11. eleven",
    "Version ^1.2 ~> 2.0 >= 3 && x || y",
    "Time 12:30: done; ratio 3:4",
    "sha `3f786850e387550fdab836ed7e6dc881de23001b` and 3f786850",
    "<div>\n\n*inside*\n\n</div>",
    "Set `A=$B` and ${C}, then run `x | y`.",
    "",
)
