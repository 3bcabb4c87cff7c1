"""The site builds without a warning, loads nothing from elsewhere, and shows what the files show."""

import re
import subprocess
import sys
from collections import Counter
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from markdown_it import MarkdownIt

from tests.docs.reading import ROOT

LOADED = {"script": "src", "img": "src", "link": "href", "iframe": "src", "source": "src", "object": "data"}
COUNTED = ("li", "table", "pre", "h1", "h2", "h3")
_CSS = re.compile(r"url\(\s*['\"]?([^'\")]+)|@import\s+['\"]([^'\"]+)")
_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


class Elements(HTMLParser):
    """What a page loads, where it leads, and how many of which elements the text has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.leads: list[str] = []
        self.ids: set[str] = set()
        self.counted: Counter[str] = Counter()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.counted[tag] += 1
        self.ids.add(given.get("id") or "")
        if target := given.get(LOADED.get(tag, "")):
            self.loads.append(target)
        if tag == "a" and (target := given.get("href")):
            self.leads.append(target)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stderr
    assert "WARNING" not in done.stderr
    return folder


def pages(site: Path) -> dict[str, Elements]:
    return {str(path.relative_to(site)): Elements(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


@pytest.mark.thorough
def test_no_page_and_no_style_loads_anything_from_elsewhere(site: Path) -> None:
    foreign = [(name, load) for name, page in pages(site).items() for load in page.loads if _elsewhere(load)]
    for path in site.rglob("*.css"):
        text = _COMMENT.sub("", path.read_text(encoding="utf-8"))
        foreign += [(path.name, "".join(found)) for found in _CSS.findall(text) if _elsewhere("".join(found))]
    assert foreign == []
    assert sum(len(page.loads) for page in pages(site).values()) > 50


@pytest.mark.thorough
def test_no_script_of_a_page_asks_another_host(site: Path) -> None:
    scripts = [path.read_text(encoding="utf-8") for path in site.rglob("*.js")]
    inline = [re.findall(r"<script>.*?</script>", path.read_text(), re.DOTALL) for path in site.rglob("*.html")]
    text = "\n".join([*scripts, *(part for parts in inline for part in parts)])
    assert not re.search(r"(?:fetch|open|importScripts|src\s*=)\s*\(?\s*['\"](?:https?:)?//", text)


def test_what_would_be_loaded_from_elsewhere_is_noticed() -> None:
    page = Elements('<script src="https://cdn.example/a.js"></script><img src="//cdn.example/b.png"><img src="c.png">')
    assert [_elsewhere(load) for load in page.loads] == [True, True, False]


@pytest.mark.thorough
def test_every_link_within_the_site_leads_to_a_page_and_a_heading_of_it(site: Path) -> None:
    all_pages = pages(site)
    dead = []
    for name, page in all_pages.items():
        for lead in page.leads:
            parts = urlsplit(lead)
            if parts.scheme or name == "404.html":
                continue
            target = ((site / name).parent / parts.path).resolve() if parts.path else site / name
            known = all_pages.get(str(target.relative_to(site))) if target.suffix == ".html" else None
            if not target.exists() or (parts.fragment and known and parts.fragment not in known.ids):
                dead.append((name, lead))
    assert dead == []


def test_every_page_is_in_one_of_the_four_parts() -> None:
    nav = yaml.safe_load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert [next(iter(part)) for part in nav[1:]] == ["Tutorial", "How-to guides", "Reference", "Explanation"]
    listed = [leaf for part in nav for leaf in _leaves(part)]
    assert len(listed) == len(set(listed))
    documents = {str(path.relative_to(ROOT / "docs")) for path in (ROOT / "docs").rglob("*.md")}
    assert documents <= set(listed)


@pytest.mark.thorough
def test_pages_show_as_many_lists_tables_and_blocks_as_the_files(site: Path) -> None:
    """MkDocs reads Markdown in another way than GitLab does: a list without a blank line above it is none."""
    reader = MarkdownIt("commonmark").enable("table")
    differ = {}
    for path in sorted((ROOT / "docs").rglob("*.md")):
        text = (site / path.relative_to(ROOT / "docs")).with_suffix(".html").read_text(encoding="utf-8")
        main = re.search(r'<div class="col-md-9" role="main">(.*?)<footer', text, re.DOTALL)
        assert main, path
        assert not re.search(r"<td[^>]*>[^\n]*\\\|", main[1]), f"{path} shows the backslash before a bar"
        shown = Elements(main[1]).counted
        wanted = Elements(reader.render(path.read_text(encoding="utf-8"))).counted
        if wrong := {tag: (shown[tag], wanted[tag]) for tag in COUNTED if shown[tag] != wanted[tag]}:
            differ[path.name] = wrong
    assert differ == {}


def _elsewhere(target: str) -> bool:
    parts = urlsplit(target)
    return bool(parts.netloc) or parts.scheme not in {"", "data"}


def _leaves(part: object) -> list[str]:
    if isinstance(part, str):
        return [part]
    inside = part.values() if isinstance(part, dict) else part if isinstance(part, list) else ()
    return [leaf for each in inside for leaf in _leaves(each)]
