"""Faults in what keeps tokens, sandboxes, archives and rights where they belong."""

from tests.mutations.mutation import Mutation

_SECRETS = "tests/security/test_service_secrets.py"
_CHAT = "tests/security/test_chat_canaries.py::test_no_credential_is_anywhere_after_a_conversation_that_is_full_of_them"
_TROUBLE = "tests/gitlab/write/test_errors_and_retries.py"

KEPT_IN = (
    Mutation(
        "write-token",
        "A run is given the whole environment, tokens that write included",
        "hummingbird/app/environment_secrets.py",
        "given = {name: value for name, value in environment.items() if name not in held_back}",
        "given = dict(environment)",
        (f"{_SECRETS}::test_what_runs_a_model_is_given_nothing_that_writes_or_opens_a_door",),
    ),
    Mutation(
        "write-token",
        "What was held back from a run is not masked in it",
        "hummingbird/app/environment_secrets.py",
        "return given, [value.strip() for value in held_back.values() if value.strip()]",
        "return given, []",
        ("tests/app/test_investigation.py::test_the_orchestrators_token_is_never_in_reach",),
    ),
    Mutation(
        "write-token",
        "A refusal of GitLab that repeats the token that writes is quoted with it",
        "hummingbird/gitlab/http_client.py",
        'return bytes(content[:most]).replace(secret, b"") if secret else bytes(content[:most])',
        "return bytes(content[:most])",
        (f"{_TROUBLE}::test_no_error_record_or_name_shows_the_token",),
    ),
    Mutation(
        "write-token",
        "The token that writes shows itself wherever it is printed",
        "hummingbird/gitlab/write/protocol.py",
        'return "OrchestratorToken(…)"',
        'return f"OrchestratorToken({self._value})"',
        (f"{_TROUBLE}::test_no_error_record_or_name_shows_the_token",),
    ),
    Mutation(
        "write-token",
        "The token that writes follows GitLab's redirects to wherever they lead",
        "hummingbird/gitlab/http_client.py",
        "follow_redirects=False",
        "follow_redirects=True",
        (f"{_TROUBLE}::test_redirects_are_not_followed",),
    ),
    Mutation(
        "write-token",
        "How far a command is, is told with the credentials in it",
        "hummingbird/agent/loop.py",
        "for line in masked.split(",
        "for line in replace_surrogates(text).split(",
        (_CHAT,),
    ),
    Mutation(
        "write-token",
        "What a model says is shown as it streams, with the credentials in it",
        "hummingbird/agent/model_call.py",
        "reply = await model.generate(request, deltas if self.streaming else None)",
        "reply = await model.generate(request, self._notify if self.streaming else None)",
        (_CHAT,),
    ),
    Mutation(
        "read-token",
        "Commands on the user's machine are given every variable",
        "hummingbird/app/chat_context.py",
        "harmless = {name: value for name, value in given.items() if self.secrets.mask(value) == value}",
        "harmless = dict(given)",
        (_CHAT,),
    ),
    Mutation(
        "read-token",
        "Where no token writes, the forge takes one that reads",
        "hummingbird/app/gitlab_write.py",
        "    own, _ = orchestrator_variables(project)\n",
        '    if reading := environment.get("GITLAB_TOKEN"):\n        return OrchestratorToken(reading)\n'
        "    own, _ = orchestrator_variables(project)\n",
        ("tests/security/test_two_tokens.py::test_without_a_token_that_writes_none_that_reads_takes_its_place",),
    ),
    Mutation(
        "read-token",
        "What sources read with is not masked in notes",
        "hummingbird/app/environment_secrets.py",
        'return [value for name in sorted(names) if (value := environment.get(name, "").strip())]',
        "return []",
        (f"{_SECRETS}::test_a_report_that_spells_a_credential_in_any_usual_way_is_posted_without_it",),
    ),
    Mutation(
        "read-token",
        "Streams of tools reach the model and the sandbox with the known credentials in them",
        "hummingbird/agent/tools/results.py",
        "masking, plain_text = secrets.open_stream(), ",
        "masking, plain_text = Secrets().open_stream(), ",
        ("tests/agent/test_spill.py::test_a_credential_reaches_neither_the_sandbox_nor_the_model",),
    ),
    Mutation(
        "read-token",
        "The GitLab source takes its token to another host that GitLab names",
        "hummingbird/gitlab/http_client.py",
        "if origin is None or origin != url_origin(self.connection.url):",
        "if origin is None:",
        ("tests/gitlab/read/test_reader.py::test_a_redirect_to_another_origin_is_not_followed",),
    ),
    Mutation(
        "read-token",
        "What is sent along to a source goes with a redirect to another origin",
        "hummingbird/clients/url_fetch.py",
        "at_home = _url_origin(target) == _url_origin(first)",
        "at_home = True",
        ("tests/clients/test_url_fetch.py::test_what_the_caller_sends_never_goes_to_another_origin",),
    ),
    Mutation(
        "sandbox",
        "A bubblewrap sandbox shares the network of the host",
        "hummingbird/sandboxes/bubblewrap.py",
        'found = ["--unshare-all", ',
        'found = ["--unshare-all", "--share-net", ',
        ("tests/security/test_attempts.py::test_every_attempt_fails_in_a_sandbox_as_it_is[bubblewrap]",),
    ),
    Mutation(
        "sandbox",
        "A bubblewrap sandbox can read and write a folder of the host",
        "hummingbird/sandboxes/bubblewrap.py",
        'found += ["--dir", "/etc"]',
        'found += ["--dir", "/etc", "--bind", "/var/tmp", "/var/tmp"]',
        (
            "tests/security/test_files_in_and_out.py"
            "::test_links_and_archives_from_inside_lead_nowhere_on_the_host[bubblewrap]",
        ),
    ),
    Mutation(
        "sandbox",
        "Bubblewrap is started with our environment",
        "hummingbird/sandboxes/bubblewrap.py",
        "env=way.environment,",
        "env={**os.environ, **way.environment},",
        ("tests/security/test_start.py::test_bubblewrap_starts_with_nothing_of_ours",),
    ),
    Mutation(
        "sandbox",
        "A container shares the network of the host",
        "hummingbird/sandboxes/podman.py",
        '"--network=none"',
        '"--network=host"',
        ("tests/security/test_attempts.py::test_every_attempt_fails_in_a_sandbox_as_it_is[podman]",),
    ),
    Mutation(
        "sandbox",
        "Podman is started with our environment",
        "hummingbird/sandboxes/podman_engine.py",
        "kept = {name: environment[name] for name in names if environment.get(name)}",
        "kept = dict(environment)",
        ("tests/sandboxes/test_podman.py::test_podman_itself_is_started_without_our_tokens",),
    ),
    Mutation(
        "sandbox",
        "A sandbox's pod holds the token of its service account",
        "hummingbird/sandboxes/manifests/pod.json",
        '"automountServiceAccountToken": false',
        '"automountServiceAccountToken": true',
        ("tests/sandboxes/test_manifest.py::test_every_pod_says_all_that_keeps_it_harmless",),
    ),
    Mutation(
        "archives",
        "The host unpacks an archive once it is stored, with Python's own library",
        "hummingbird/storage/folder_sessions.py",
        "    part.replace(path)\n",
        "    part.replace(path)\n    import tarfile\n\n    with suppress(tarfile.TarError):\n"
        "        tarfile.open(path).extractall(path.parent)\n",
        ("tests/security/test_files_in_and_out.py::test_no_module_of_ours_can_unpack_an_archive",),
    ),
    Mutation(
        "archives",
        "The host unpacks an archive once it is stored, with the program tar",
        "hummingbird/storage/folder_sessions.py",
        "    part.replace(path)\n",
        "    part.replace(path)\n    import subprocess\n\n"
        '    subprocess.run(["tar", "-xzf", str(path), "-C", str(path.parent)], check=False, capture_output=True)\n',
        ("tests/agent/test_session_sandbox.py::test_what_one_sandbox_held_is_in_the_next_one",),
    ),
    Mutation(
        "archives",
        "The host unpacks an archive's compression to look at it when it is brought back",
        "hummingbird/storage/folder_sessions.py",
        "        return SandboxArchive(self._chunks(path), saved_at)",
        "        import gzip\n\n        gzip.decompress(path.read_bytes())\n"
        "        return SandboxArchive(self._chunks(path), saved_at)",
        ("tests/storage/test_archives.py::test_what_is_put_is_what_is_got_for_each_session_its_own",),
    ),
    Mutation(
        "archives",
        "A sandbox's archive is unpacked by a command on the host instead of in the new sandbox",
        "hummingbird/agent/session_sandbox.py",
        "        done = await sandbox.exec(UNPACK, chunks, timeout_s=ARCHIVING_S)",
        '        whole = b"".join([chunk async for chunk in chunks])\n'
        "        process = await asyncio.create_subprocess_shell(UNPACK, stdin=asyncio.subprocess.PIPE)\n"
        "        await process.communicate(whole)\n"
        '        done = await sandbox.exec("true")',
        ("tests/agent/test_session_sandbox.py::test_what_one_sandbox_held_is_in_the_next_one",),
    ),
    Mutation(
        "cluster-role",
        "Pods are looked for in the whole cluster",
        "hummingbird/sandboxes/kubernetes_api.py",
        '        headers = {"Content-Type": MERGE_PATCH',
        '        path = "/api/v1/pods" if verb == "list" else path\n        headers = {"Content-Type": MERGE_PATCH',
        (
            "tests/sandboxes/test_cluster.py"
            "::test_everything_is_asked_in_one_namespace_and_a_call_outside_it_would_be_seen",
        ),
    ),
    Mutation(
        "cluster-role",
        "The shipped role is one of the whole cluster",
        "hummingbird/sandboxes/manifests/role.json",
        '"kind": "Role"',
        '"kind": "ClusterRole"',
        ("tests/sandboxes/test_manifest.py::test_the_role_grants_seven_verbs_in_one_namespace_and_nothing_else",),
    ),
    Mutation(
        "cluster-role",
        "A pod is looked at through a list of the namespaces, which takes more than the role grants",
        "hummingbird/sandboxes/kubernetes_api.py",
        "        client = self._get_client()\n",
        "        client = self._get_client()\n"
        '        if verb == "get":\n            (await client.get("/api/v1/namespaces")).raise_for_status()\n',
        ("tests/sandboxes/test_cluster.py::test_a_pod_is_made_looked_at_listed_changed_and_removed",),
    ),
)
