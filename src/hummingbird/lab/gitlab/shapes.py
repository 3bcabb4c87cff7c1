"""Records as the API shows them: people, projects, members, notes, threads, emoji.

Each function makes the JSON of one entity, with everything that the real one carries. Knows nothing of who may see it.
"""

from hummingbird.lab.gitlab.records import Award, Discussion, DraftNote, Member, MergeRequest, Note, Project, Raw, User
from hummingbird.lab.gitlab.store import World

BORN = "2019-05-06T07:08:09.000Z"


def user(world: World, user_id: int) -> Raw:
    """The short form that others carry."""
    found = world.user(user_id)
    return {
        "id": found.id,
        "username": found.username,
        "name": found.name,
        "state": found.state,
        "locked": False,
        "avatar_url": f"{world.url}/uploads/-/system/user/avatar/{found.id}/avatar.png",
        "web_url": f"{world.url}/{found.username}",
    }


def user_or_none(world: World, user_id: int | None) -> Raw | None:
    return None if user_id is None else user(world, user_id)


def profile(world: World, user_id: int) -> Raw:
    found = world.user(user_id)
    return {
        **user(world, user_id),
        "created_at": BORN,
        "bio": "",
        "location": "",
        "public_email": found.public_email or None,
        "skype": "",
        "linkedin": "",
        "twitter": "",
        "discord": "",
        "website_url": "",
        "github": "",
        "organization": "",
        "job_title": "",
        "pronouns": None,
        "bot": found.bot,
        "work_information": None,
        "followers": 0,
        "following": 0,
        "local_time": None,
    }


def current_user(world: World, found: User) -> Raw:
    """GET /user."""
    email = found.public_email or f"{found.username}@noreply.localhost"
    return {
        **profile(world, found.id),
        "last_sign_in_at": BORN,
        "confirmed_at": BORN,
        "last_activity_on": world.now.strftime("%Y-%m-%d"),
        "email": email,
        "theme_id": 3,
        "color_scheme_id": 1,
        "projects_limit": 100000,
        "current_sign_in_at": None,
        "identities": [{"provider": "saml", "extern_uid": str(found.id)}],
        "can_create_group": False,
        "can_create_project": not found.bot,
        "two_factor_enabled": False,
        "external": False,
        "private_profile": False,
        "commit_email": email,
        "scim_identities": [],
    }


def member(world: World, found: Member) -> Raw:
    """As one who may see everything of it is told: an instance with accounts of its own shows addresses too."""
    return {
        "access_level": found.access_level,
        "created_at": BORN,
        "created_by": user(world, world.users[0].id),
        "expires_at": found.expires_at,
        **user(world, found.user_id),
        "membership_state": "active",
        "email": world.user(found.user_id).public_email or f"{world.user(found.user_id).username}@noreply.localhost",
        "group_saml_identity": None,
    }


def web_url(world: World, found: Project) -> str:
    return f"{world.url}/{found.path}"


def namespace(world: World, found: Project) -> Raw:
    full = found.path.rsplit("/", 1)[0]
    personal = world.user_named(full) is not None
    return {
        "id": found.id + 50_000,
        "name": full.rsplit("/", 1)[-1],
        "path": full.rsplit("/", 1)[-1],
        "kind": "user" if personal else "group",
        "full_path": full,
        "parent_id": None,
        "avatar_url": None,
        "web_url": f"{world.url}/{full}" if personal else f"{world.url}/groups/{full}",
    }


def project_short(world: World, found: Project) -> Raw:
    """What a fork says of its parent."""
    space, name = found.path.rsplit("/", 1)
    host = world.url.split("://", 1)[-1].split(":")[0]
    return {
        "id": found.id,
        "description": found.description,
        "name": found.name,
        "name_with_namespace": f"{' / '.join(space.split('/'))} / {found.name}",
        "path": name,
        "path_with_namespace": found.path,
        "created_at": found.created_at,
        "default_branch": found.default_branch,
        "tag_list": [],
        "topics": [],
        "ssh_url_to_repo": f"git@{host}:{found.path}.git",
        "http_url_to_repo": f"{web_url(world, found)}.git",
        "web_url": web_url(world, found),
        "readme_url": f"{web_url(world, found)}/-/blob/{found.default_branch}/README.md",
        "forks_count": sum(each.forked_from_id == found.id for each in world.projects),
        "avatar_url": None,
        "star_count": 0,
        "last_activity_at": found.created_at,
        "namespace": namespace(world, found),
    }


def project(world: World, found: Project, viewer: User | None) -> Raw:
    parent = world.project_with(found.forked_from_id) if found.forked_from_id else None
    api = f"{world.url}/api/v4/projects/{found.id}"
    return {
        **project_short(world, found),
        "visibility": found.visibility,
        "archived": False,
        "empty_repo": False,
        "_links": {
            "self": api,
            "issues": f"{api}/issues",
            "merge_requests": f"{api}/merge_requests",
            "repo_branches": f"{api}/repository/branches",
            "labels": f"{api}/labels",
            "events": f"{api}/events",
            "members": f"{api}/members",
            "cluster_agents": f"{api}/cluster_agents",
        },
        "creator_id": next(iter(found.members), 1),
        "issues_enabled": True,
        "merge_requests_enabled": True,
        "jobs_enabled": True,
        "wiki_enabled": True,
        "snippets_enabled": True,
        "issues_access_level": "enabled",
        "repository_access_level": "enabled",
        "merge_requests_access_level": "enabled",
        "builds_access_level": "enabled",
        "shared_runners_enabled": True,
        "lfs_enabled": True,
        "open_issues_count": 0,
        "public_jobs": found.public_jobs,
        "ci_config_path": "",
        "shared_with_groups": [],
        "only_allow_merge_if_pipeline_succeeds": False,
        "allow_merge_on_skipped_pipeline": None,
        "only_allow_merge_if_all_discussions_are_resolved": found.all_threads_must_be_resolved,
        "resolve_outdated_diff_discussions": False,
        "merge_method": "merge",
        "squash_option": "default_off",
        "merge_pipelines_enabled": True,
        "merge_trains_enabled": False,
        "permissions": {"project_access": _own_access(found, viewer), "group_access": None},
        **({"forked_from_project": project_short(world, parent)} if parent else {}),
    }


def _own_access(found: Project, viewer: User | None) -> Raw | None:
    own = found.members.get(viewer.id) if viewer else None
    return {"access_level": own.access_level, "notification_level": 3} if own else None


def note(world: World, mr: MergeRequest, found: Note, commands: Raw | None = None) -> Raw:
    """facts 2.3. `commands`: what quick actions changed, in the answer to the write alone."""
    resolution = {
        "resolved": found.resolved,
        "resolved_by": user_or_none(world, found.resolved_by_id),
        "resolved_at": found.resolved_at,
    }
    placed = {"commit_id": found.commit_id, "position": found.position}
    return {
        "id": found.id,
        "type": found.type,
        "body": found.body,
        "author": user(world, found.author_id),
        "created_at": found.created_at,
        "updated_at": found.updated_at,
        "system": found.system,
        "noteable_id": mr.id,
        "noteable_type": "MergeRequest",
        "project_id": mr.project_id,
        **(placed if found.position is not None else {}),
        "resolvable": found.resolvable,
        **(resolution if found.resolvable else {}),
        "confidential": found.internal,
        "internal": found.internal,
        "imported": False,
        "imported_from": "none",
        "noteable_iid": mr.iid,
        "commands_changes": commands or {},
    }


def discussion(world: World, mr: MergeRequest, found: Discussion, notes: list[Note] | None = None) -> Raw:
    """With those of its notes that the reader may see; all of them if none are given."""
    kept = found.notes if notes is None else notes
    return {
        "id": found.id,
        "individual_note": found.individual_note,
        "notes": [note(world, mr, each) for each in kept],
    }


def award(world: World, found: Award, awardable_id: int, awardable_type: str = "Note") -> Raw:
    return {
        "id": found.id,
        "name": found.name,
        "user": user(world, found.user_id),
        "created_at": found.created_at,
        "updated_at": found.created_at,
        "awardable_id": awardable_id,
        "awardable_type": awardable_type,
        "url": None,
    }


def draft_note(mr: MergeRequest, found: DraftNote) -> Raw:
    return {
        "id": found.id,
        "author_id": found.author_id,
        "merge_request_id": mr.id,
        "resolve_discussion": found.resolve_discussion,
        "discussion_id": found.discussion_id,
        "note": found.body,
        "commit_id": found.commit_id,
        "position": found.position,
        "line_code": None,
    }
