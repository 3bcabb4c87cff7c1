"""What python-gitlab and requests raise, as errors of ours with sentences for a model (D8). The token is in none.

Our sentences are read outside the fence (T8). So of what an answer says only GitLab's own stock phrases are repeated:
anything else may hold a title, a file name or a proxy's page.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager

import gitlab
import requests
from urllib3.exceptions import HTTPError

from hummingbird.adapters.sources.gitlab.session import silent
from hummingbird.domain.errors import (
    AnswerUnusable,
    CredentialRefused,
    HummingbirdError,
    NothingThere,
    SourceDown,
    SourceRefused,
)

_RENEW = "whoever runs this must renew it; go on without GitLab meanwhile"
_STOCK = re.compile(
    r"\d{3} (?:(?:Project|Merge Request|Commit|File|Pipeline|Job|Branch|Tag|Tree|Repository|User|Group) )?Not [Ff]ound"
    r"|\d{3} Forbidden|\d{3} Bad [Rr]equest"
    r"|(?:id|sha|ref|name|scope|page|per_page|pipeline_id|file_path|order_by|sort|all)(?:\[\])? "
    r"(?:is missing|is invalid|is empty|does not have a valid value)"
)


@contextmanager
def told(what: str) -> Iterator[None]:
    """`what` begins a sentence: "The log of job 7". Raises a SourceError or CredentialRefused, chained."""
    try:
        yield
    except gitlab.GitlabError as error:
        raise _refused(what, error) from error
    except (requests.RequestException, HTTPError) as error:
        raise _broken(what, error) from error
    except (ValueError, RecursionError) as error:  # headers that are no numbers, links that are no addresses
        raise AnswerUnusable(f"{what} came in a form that cannot be read: go on without.") from error


def _refused(what: str, error: gitlab.GitlabError) -> HummingbirdError:
    code = error.response_code
    if code is None:
        return AnswerUnusable(f"{what} came as something else than the JSON that GitLab's API promises: go on without.")
    if code == 401:
        return CredentialRefused(
            f"{what} was not given out: GitLab says that the token is invalid or expired; {_RENEW}."
        )
    if code == 403 and "insufficient_scope" in str(error.error_message):
        return CredentialRefused(f"{what} was not given out: the token lacks the scope read_api; {_RENEW}.")
    if code == 404:
        return NothingThere(
            f"{what} was not found: it does not exist, or the token may not see it{_quoted(error)}. "
            "Check the number, name or reference; do not ask for the same again."
        )
    if code == 429:
        return SourceDown(
            f"{what} was not given out: GitLab limits how often it may be asked. Ask again in some minutes."
        )
    if code >= 500:
        return SourceDown(
            f"{what} was not given out: GitLab fails with status {code}, also when asked again. Try later."
        )
    return SourceRefused(f"{what} was refused with status {code}{_quoted(error)}. Ask for something else.")


def _broken(what: str, error: Exception) -> HummingbirdError:
    if isinstance(error, requests.exceptions.SSLError):
        return SourceDown(
            f"{what} was not asked for: GitLab's certificate is not trusted. Whoever runs this must set a CA."
        )
    if isinstance(
        error, requests.exceptions.ChunkedEncodingError | requests.exceptions.ContentDecodingError | HTTPError
    ):
        return AnswerUnusable(f"{what} broke off in the middle: use what came, or ask once more.")
    if silent(error):
        return SourceDown(f"{what} did not come in time, also when asked again. Try later or go on without.")
    if isinstance(error, requests.ConnectionError):
        return SourceDown(f"{what} did not come: GitLab cannot be reached, or hung up. Try later or go on without.")
    if isinstance(error, requests.exceptions.JSONDecodeError):
        return AnswerUnusable(f"{what} came as something else than the JSON that GitLab's API promises: go on without.")
    return SourceRefused(f"{what} could not be asked for ({type(error).__name__}): go on without.")


def _quoted(error: gitlab.GitlabError) -> str:
    """GitLab's own words, where they are its own."""
    said = str(error.error_message)  # may be any JSON
    return f" (GitLab said: {said})" if _STOCK.fullmatch(said) else ""
