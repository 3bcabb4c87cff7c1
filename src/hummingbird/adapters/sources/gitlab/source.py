"""The GitLab data source (D2): thirteen tools that read, around one project and those that the workflow lists."""

from collections.abc import Mapping, Sequence
from urllib.parse import urlsplit

from hummingbird.adapters.sources.gitlab.desk import Desk
from hummingbird.adapters.sources.gitlab.logs import Logs
from hummingbird.adapters.sources.gitlab.merge_requests import MergeRequests
from hummingbird.adapters.sources.gitlab.offering import NAME, spec_of
from hummingbird.adapters.sources.gitlab.pipelines import Pipelines
from hummingbird.adapters.sources.gitlab.repository import Repository
from hummingbird.adapters.sources.gitlab.scope import Scope
from hummingbird.adapters.sources.gitlab.session import origin
from hummingbird.adapters.sources.gitlab.settings import GitLabSettings
from hummingbird.adapters.sources.offered import SourceTool, Work
from hummingbird.domain.errors import CredentialRefused, SourceRefused
from hummingbird.ports.tool import Tool


class GitLabSource:
    """Making one opens no connection. Raises SourceRefused for an address that is none or no project, CredentialRefused
    for a token that cannot be sent."""

    def __init__(self, settings: GitLabSettings) -> None:
        _check(settings)
        self._settings = settings
        self._desk = Desk(settings)
        home = settings.url.rstrip("/")
        scope = Scope(settings.project, settings.projects)
        self._tools = [
            SourceTool(spec_of(name, f"{home}/{scope.own}"), work)
            for name, work in _works(settings, self._desk, scope).items()
        ]

    @property
    def name(self) -> str:
        return NAME

    @property
    def tools(self) -> Sequence[Tool]:
        return self._tools

    @property
    def secrets(self) -> Sequence[str]:
        token = self._settings.token
        return [token.reveal()] if token is not None and token.reveal() else []

    async def close(self) -> None:
        await self._desk.close()


def _check(settings: GitLabSettings) -> None:
    """Here, not when it is asked: http.client's complaint of a header quotes it, token and all."""
    origin(settings.url)
    if "@" in urlsplit(settings.url).netloc:
        raise SourceRefused("GitLab's address holds a user or a password: leave them out and set a token.")
    if not settings.project.strip("/"):
        raise SourceRefused("The GitLab source has no project: set the path of the event's project, like group/name.")
    token = settings.token.reveal() if settings.token is not None else ""
    if any(not "!" <= letter <= "~" for letter in token):
        raise CredentialRefused(
            "GitLab's token holds a space, a line break or another character that no token has: set it once more."
        )


def _works(settings: GitLabSettings, desk: Desk, scope: Scope) -> Mapping[str, Work]:
    merge_requests = MergeRequests(settings, desk, scope)
    repository = Repository(desk, scope)
    pipelines = Pipelines(desk, scope)
    logs = Logs(desk, scope)
    return {
        "gitlab_get_mr_details": merge_requests.details,
        "gitlab_get_mr_unified_diff": merge_requests.unified_diff,
        "gitlab_get_mr_diff": merge_requests.diff,
        "gitlab_get_mr_commits": merge_requests.commits,
        "gitlab_get_mr_discussions": merge_requests.discussions,
        "gitlab_get_commit_statuses": pipelines.statuses,
        "gitlab_get_file_at_ref": repository.file,
        "gitlab_get_repo_archive": repository.archive,
        "gitlab_get_job_log": logs.of_job,
        "gitlab_get_pipeline_jobs": pipelines.jobs,
        "gitlab_get_test_report": pipelines.test_report,
        "gitlab_get_baseline_job_log": logs.baseline,
        "gitlab_list_recent_pipelines": pipelines.recent,
    }
