"""Pages of the site that stand beside docs/, not in it: README.md is its first page. A hook of MkDocs.

Files stay where readers of the repository look for them, so links between them are rewritten as the site has them.
"""

import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
PAGES = {
    "README.md": "index.md",
    "ARCHITECTURE.md": "architecture.md",
    "CONTRIBUTING.md": "contributing.md",
    "CODE_OF_CONDUCT.md": "code-of-conduct.md",
    "CHANGELOG.md": "changelog.md",
}
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)")
_CELL = re.compile(r"<td.*?</td>", re.DOTALL)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, page in PAGES.items():
        text = (ROOT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, page, content=_LINK.sub(_in_site, text)))
    return files


def _in_site(link: re.Match[str]) -> str:
    target = link[1].removeprefix("docs/")
    target = "decisions/0001-foundation.md" if target == "decisions" else target
    return f"]({PAGES.get(target, target)}"


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - MkDocs names them
    """From a page in docs to one beside it."""
    up = "../" * page.file.src_uri.count("/")
    for name, target in PAGES.items():
        markdown = markdown.replace(f"](../{up}{name}", f"]({up}{target}")
    return markdown


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - MkDocs names them
    """In code within a table, GitLab wants `\\|` for a bar, and Python-Markdown shows the backslash."""
    return _CELL.sub(lambda cell: cell[0].replace("\\|", "|"), html)
