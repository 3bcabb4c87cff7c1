"""Read GitLab's API responses (JSON, paging headers, error text), and build the errors for failed requests.

No field of a response is taken for granted: a value of the wrong type becomes an error or an empty value. Error
sentences are written for whoever operates the service. Nothing here sends a request.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

import httpx2

from hummingbird.core.errors import (
    CredentialRefused,
    GitLabNotFound,
    GitLabRateLimited,
    GitLabRequestRefused,
    GitLabUnavailable,
    GitLabWriteError,
    GitLabWriteUncertain,
    HummingbirdError,
)
from hummingbird.core.json_decoding import InvalidJson, decode_json
from hummingbird.core.limits import FORGE_SAID_CHARS
from hummingbird.core.text import replace_surrogates, shorten_line
from hummingbird.gitlab.http_client import GitLabRequest, JsonObject


@dataclass(frozen=True, slots=True)
class GitLabResponse:
    """A response of GitLab's API; `what` names what was asked for and begins error sentences."""

    what: str
    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def json_object(self) -> JsonObject:
        """Return the body as an object.

        Raises GitLabRequestRefused if it is not an object, GitLabUnavailable if it is not JSON.
        """
        found = self._parse_json()
        if not isinstance(found, dict):
            raise self._shape_error()
        return found

    def json_objects(self) -> list[JsonObject]:
        """Return the objects of a list, without any other values in it.

        Raises GitLabRequestRefused if the body is not a list, GitLabUnavailable if it is not JSON.
        """
        found = self._parse_json()
        if not isinstance(found, list):
            raise self._shape_error()
        return [each for each in found if isinstance(each, dict)]

    def next_page(self, page: int) -> int:
        """Return the number of the next page, 0 at the end.

        Only the page number of a link is used: its host is the server's own idea of its address.
        """
        following = self.headers.get("X-Next-Page", "").strip() or self._page_from_link("next")
        number = positive_int(following)
        return number if number > page else 0

    @property
    def last_page(self) -> int:
        """Return the number of the last page; 0 if GitLab does not say, as for long lists."""
        return positive_int(self.headers.get("X-Total-Pages", "").strip())

    @property
    def error_text(self) -> str:
        """Return GitLab's error message on one printable line; empty if there is none.

        GitLab uses `message` or `error` with `error_description`, each as text, list or object.
        """
        try:
            found = self._parse_json()
        except GitLabUnavailable:
            return ""
        raw = found if isinstance(found, dict) else {}
        parts = [_flatten_message(raw[name]) for name in ("message", "error", "error_description") if raw.get(name)]
        text = "".join(each if each.isprintable() else " " for each in replace_surrogates(" – ".join(parts)))
        return shorten_line(text, FORGE_SAID_CHARS)

    def _parse_json(self) -> object:
        try:
            return decode_json(self.body)
        except InvalidJson:
            raise GitLabUnavailable(
                f"{self.what} came as something else than JSON: something before GitLab may have answered in its "
                "place. It is tried again later."
            ) from None

    def _shape_error(self) -> GitLabRequestRefused:
        return GitLabRequestRefused(
            f"{self.what} came as something else than what GitLab's API promises: check that the configured address is "
            "that of a GitLab."
        )

    def _page_from_link(self, name: str) -> str:
        try:
            links = httpx2.Response(200, headers={"Link": self.headers.get("Link", "")}).links
            return parse_qs(urlsplit(links.get(name, {}).get("url", "")).query).get("page", [""])[0]
        except ValueError:
            return ""


def _flatten_message(value: object) -> str:
    """Turn a message into one line; GitLab sends a sentence, a list, or sentences for each field."""
    if isinstance(value, dict):
        return ", ".join(f"{name} {_flatten_message(each)}" for name, each in value.items())
    return ", ".join(_flatten_message(each) for each in value) if isinstance(value, list) else str(value)


def positive_int(value: object) -> int:
    """Return a positive integer, also one written as text; 0 for everything else."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 19:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def text_or_empty(value: object) -> str:
    """Return the text without lone surrogates; empty for everything that is not text."""
    return replace_surrogates(value) if isinstance(value, str) else ""


def object_or_empty(raw: JsonObject, name: str) -> JsonObject:
    """Return the object in that field; an empty one if there is none."""
    found = raw.get(name)
    return found if isinstance(found, dict) else {}


def unreachable_error(asked: GitLabRequest, why: str) -> GitLabUnavailable:
    """Return the error for a request that GitLab did not process."""
    return GitLabUnavailable(
        f"{asked.what} could not be {_action_phrase(asked)} GitLab: {why}. It is tried again later."
    )


def busy_error(asked: GitLabRequest) -> GitLabRateLimited:
    """Return the error for a request that GitLab's rate limit rejected."""
    limit = "it limits how often it may be asked"
    return GitLabRateLimited(
        f"{asked.what} could not be {_action_phrase(asked)} GitLab: {limit}. It is tried again later."
    )


def uncertain_error(asked: GitLabRequest, why: str) -> GitLabWriteError:
    """Return the error for a request whose outcome is unknown; only for a write does that matter."""
    if not asked.is_write:
        return unreachable_error(asked, why)
    return GitLabWriteUncertain(
        f"{asked.what} may have been written to GitLab or not: {why}. Look whether it is there before writing it again."
    )


def certificate_error(asked: GitLabRequest) -> GitLabUnavailable:
    """Return the error for a certificate that is not trusted."""
    return unreachable_error(asked, "its certificate is not trusted; set ca_bundle to your authority's certificates")


def invalid_address_error(reason: str) -> GitLabRequestRefused:
    """Return the error for a configured address that is not a URL."""
    return GitLabRequestRefused(
        f"The configured address of GitLab is not a URL ({reason}): write it like https://gitlab.example."
    )


def refusal_error(asked: GitLabRequest, answer: GitLabResponse, project: str) -> HummingbirdError:
    """Return the error for a response with a status from 300 to 499."""
    quoted = f" (GitLab said: {answer.error_text})" if answer.error_text else ""
    if answer.status == 401:
        return CredentialRefused(
            f"GitLab does not take the token that writes to {project}: it is wrong, expired or revoked. Make a new one "
            "and put it into the orchestrator token's variable."
        )
    if answer.status == 403 and "insufficient_scope" in answer.error_text:
        return CredentialRefused(
            f"The token that writes to {project} lacks the scope api: make one that has it and put it into the "
            "orchestrator token's variable."
        )
    if answer.status == 404:
        return GitLabNotFound(f"{asked.what} was not found: it does not exist, or the bot may not see it{quoted}.")
    if answer.status < 400:
        return GitLabRequestRefused(
            f"{asked.what} is said to be elsewhere, and the token is not taken there: check the configured address of "
            f"GitLab, and whether {project} was moved."
        )
    advice = "check the bot's role in the project" if answer.status == 403 else "it would be refused again"
    return GitLabRequestRefused(f"{asked.what} was refused with status {answer.status}{quoted}: {advice}.")


def _action_phrase(asked: GitLabRequest) -> str:
    return "written to" if asked.is_write else "read from"
