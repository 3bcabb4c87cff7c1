"""A web server's page that lists a folder, told from other pages, and the names on it. Pure."""

import re
from html import unescape
from urllib.parse import urljoin

from hummingbird.domain.limits import FARM_LISTED, URL_CHARS

# nginx and Apache, Caddy and others, and Python's own server
_TITLE = re.compile(rb"<(?:title|h1)[^>]*>\s*(?:Index of |Directory listing for )", re.IGNORECASE)
_LOOKED_AT = 16 * 1024
# No parser of HTML: the library's takes hours for a megabyte that somebody made for it. A tag ends at the next bracket,
# so no letter is looked at more than a few times.
_LINK = re.compile(r"""<a\s[^<>]{0,1000}?\bhref\s{0,9}=\s{0,9}(?:"([^"<>]*)"|'([^'<>]*)')""", re.IGNORECASE)


def is_listing(url: str, content_type: str, beginning: bytes) -> bool:
    path = url.partition("?")[0]
    return path.endswith("/") and "html" in content_type.lower() and bool(_TITLE.search(beginning[:_LOOKED_AT]))


def names_on(page: bytes, url: str) -> tuple[list[str], int]:
    """What the folder at `url` holds, as it is written in an address, folders with a slash; and how many more."""
    links = (match[1] or match[2] or "" for match in _LINK.finditer(page.decode("utf-8", "replace")))
    hrefs = (unescape(link) for link in links if len(link) <= URL_CHARS)
    names = list(dict.fromkeys(name for href in hrefs if (name := _name(href, url))))
    return names[:FARM_LISTED], max(0, len(names) - FARM_LISTED)


def _name(href: str, url: str) -> str:
    """Empty for what is not in the folder itself: its parent, another order, somebody else's page."""
    try:
        whole = urljoin(url, href.partition("?")[0].partition("#")[0])
    except ValueError:
        return ""
    folder = url.partition("?")[0]
    name = whole.removeprefix(folder) if whole.startswith(folder) else ""
    return name if name and "/" not in name[:-1] and name != "/" and name.isprintable() else ""
