"""What somebody sends from an editor, as one message: words, links to files, and files that came along.

A link is named where it stands, and the model reads it with its tools. What came along stands behind the words, fenced.
Nothing is cut off: what is too long for a message is put away where the tools can read it (`chat.attachments`).
"""

import base64
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from acp.schema import (
    BlobResourceContents,
    EmbeddedResourceContentBlock,
    ResourceContentBlock,
    TextContentBlock,
    TextResourceContents,
)

from hummingbird.chat.acp.limits import BLOB_BYTES, QUOTED_CHARS, TITLE_CHARS
from hummingbird.chat.attachments import INSTEAD, Attach, Composer, Pastes, fenced, repaired
from hummingbird.domain.errors import UsageFault
from hummingbird.domain.text import shortened


def typed_in(blocks: Sequence[Any]) -> str:
    """The words alone, if there are no files with them: what may be a command."""
    texts = [block.text for block in blocks if isinstance(block, TextContentBlock)]
    return "\n\n".join(texts) if len(texts) == len(blocks) else ""


async def composed(blocks: Sequence[Any], workspace: Path, attach: Attach) -> str:
    """The message. Raises UsageFault for what cannot be taken, and what `attach` raises."""
    pastes, words, files = Pastes(), list[str](), list[str]()
    for block in blocks:
        match block:
            case TextContentBlock(text=text):
                words.append(("\n\n" if words and not words[-1].endswith("`") else "") + repaired(text)[0])
            case ResourceContentBlock(uri=uri, name=name):
                words.append(_named(words, _place(uri, workspace, name)))
            case EmbeddedResourceContentBlock(resource=TextResourceContents(uri=uri, text=text)):
                words.append(_named(words, place := _place(uri, workspace)))
                files.append(f"The file {place}:\n{pastes.keep(fenced(repaired(text)[0]))}")
            case EmbeddedResourceContentBlock(resource=BlobResourceContents(uri=uri, blob=blob)):
                words.append(_named(words, place := _place(uri, workspace)))
                files.append(await _put_away(place, blob, attach))
            case _:
                raise UsageFault("Images and sound cannot be looked at here: send text, or link to a file.")
    message = "\n\n".join(filter(None, ["".join(words), *files]))
    if not message.strip():
        raise UsageFault("The message is empty: say something.")
    return await Composer(workspace, attach, pastes, mentions=False).composed(message)  # typed or pasted, who knows


def _named(before: Sequence[str], place: str) -> str:
    gap = " " if before and not before[-1][-1:].isspace() else ""
    return f"{gap}`{place}`"


def _place(uri: str, workspace: Path, name: str = "") -> str:
    """A path in the workspace as the tools name it, any other file whole; another address as it is."""
    parts = urlsplit(uri) if not _broken(uri) else None
    if parts is None or parts.scheme not in {"file", ""}:
        return shortened(f"{name} ({uri})" if name and name != uri else uri, QUOTED_CHARS).replace("`", "'")
    path = Path(unquote(parts.path))
    inside = path.relative_to(workspace) if path.is_relative_to(workspace) else path
    lines = f":{parts.fragment}" if re.fullmatch(r"[L\d:-]+", parts.fragment) else ""
    return f"{inside}{lines}".replace("`", "'").replace("\n", " ")


def _broken(uri: str) -> bool:
    try:
        urlsplit(uri)
    except ValueError:
        return True
    return False


async def _put_away(place: str, blob: str, attach: Attach) -> str:
    try:
        content = base64.b64decode(blob, validate=True)
    except ValueError as error:
        raise UsageFault(f"What came along as {shortened(place, TITLE_CHARS)} is not Base64: send it again.") from error
    if len(content) > BLOB_BYTES:
        most = f"{BLOB_BYTES // 1024 // 1024} MiB"
        raise UsageFault(f"{shortened(place, TITLE_CHARS)} is longer than {most}: link to it instead.")
    name = re.sub(r"[^A-Za-z0-9._-]+", "_", Path(place).name)[-60:] or "file"
    try:
        path = await attach(name, content)
    except UsageFault as fault:
        shown = shortened(place, TITLE_CHARS)
        raise UsageFault(f"There is no sandbox to put {shown} into: {INSTEAD} link to it.") from fault
    return f"(The file {place}, {len(content):,} bytes, is in the sandbox: {path})"
