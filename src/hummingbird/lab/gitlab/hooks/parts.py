"""The pieces that webhooks of several kinds show alike: people, projects, commits, labels.

They differ from what the REST API shows of the same records (facts 1): other keys, times with a space and "UTC", e-mail
addresses hidden. Pure.
"""

import hashlib
from datetime import datetime
from urllib.parse import urlsplit

from hummingbird.lab.gitlab.records import Commit, Project, Raw, User
from hummingbird.lab.gitlab.store import World

HIDDEN = "[REDACTED]"
VISIBILITY = {"private": 0, "internal": 10, "public": 20}


def spoken(stamp: str | None) -> str | None:
    """A time as hooks print it: 2025-08-05 21:48:27 UTC."""
    return None if stamp is None else datetime.fromisoformat(stamp).strftime("%Y-%m-%d %H:%M:%S UTC")


def person(world: World, user: User) -> Raw:
    return {
        "id": user.id,
        "name": user.name,
        "username": user.username,
        "avatar_url": avatar(world, user),
        "email": user.public_email or HIDDEN,
    }


def avatar(world: World, user: User) -> str:
    return f"{world.url}/uploads/-/system/user/avatar/{user.id}/avatar.png"


def short_project(world: World, project: Project) -> Raw:
    """As the pipeline hook has it, without the keys of old."""
    ssh, http = addresses(world, project)
    return {
        "id": project.id,
        "name": project.name,
        "description": project.description or None,
        "web_url": f"{world.url}/{project.path}",
        "avatar_url": None,
        "git_ssh_url": ssh,
        "git_http_url": http,
        "namespace": project.path.split("/")[-2],
        "visibility_level": VISIBILITY[project.visibility],
        "path_with_namespace": project.path,
        "default_branch": project.default_branch,
        "ci_config_path": "",
    }


def whole_project(world: World, project: Project) -> Raw:
    ssh, http = addresses(world, project)
    return {
        **short_project(world, project),
        "homepage": f"{world.url}/{project.path}",
        "url": ssh,
        "ssh_url": ssh,
        "http_url": http,
    }


def repository(world: World, project: Project) -> Raw:
    return {
        "name": project.name,
        "url": addresses(world, project)[0],
        "description": project.description or None,
        "homepage": f"{world.url}/{project.path}",
    }


def addresses(world: World, project: Project) -> tuple[str, str]:
    """For git: over ssh, over http."""
    host = urlsplit(world.url).hostname
    return f"git@{host}:{project.path}.git", f"{world.url}/{project.path}.git"


def commit(world: World, project: Project, sha: str | None) -> Raw | None:
    """None for a merge request without a head."""
    if not sha:
        return None
    found = world.commits.get(sha)
    return shown_commit(world, project, found) if found else unknown_commit(world, project, sha)


def unknown_commit(world: World, project: Project, sha: str) -> Raw:
    # the merge commit of a merged-results pipeline is in no list of the case (facts 1.1)
    title = f"Merge {sha} into {project.default_branch}"
    made_up = Commit(sha, title, title, "GitLab", "noreply@gitlab.example", "2020-01-01T00:00:00.000Z")
    return shown_commit(world, project, made_up)


def shown_commit(world: World, project: Project, found: Commit) -> Raw:
    return {
        "id": found.id,
        "message": found.message,
        "title": found.title,
        "timestamp": datetime.fromisoformat(found.created_at).strftime("%Y-%m-%dT%H:%M:%S+00:00"),
        "url": f"{world.url}/{project.path}/-/commit/{found.id}",
        "author": {"name": found.author_name, "email": found.author_email or HIDDEN},
    }


def label(project: Project, title: str) -> Raw:
    return {
        "id": label_id(title),
        "title": title,
        "color": "#0075ca",
        "project_id": project.id,
        "created_at": spoken(project.created_at),
        "updated_at": spoken(project.created_at),
        "template": False,
        "description": None,
        "type": "ProjectLabel",
        "group_id": None,
    }


def label_id(title: str) -> int:
    """The same for the same title; labels are no records of their own here."""
    return int.from_bytes(hashlib.sha256(title.encode()).digest()[:3], "big") + 1
