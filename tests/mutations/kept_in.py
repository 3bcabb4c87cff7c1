"""Faults in what keeps tokens, sandboxes, archives and rights where they belong (I1–I5)."""

from tests.mutations.mutation import Mutation

_SECRETS = "tests/security/test_service_secrets.py"
_CHAT = (
    "tests/security/test_chat_canaries.py"
    "::test_no_credential_is_anywhere_after_a_conversation_that_is_full_of_them_i1_i2"
)
_TROUBLE = "tests/adapters/forge/test_forge_trouble.py"

KEPT_IN = (
    Mutation(
        "I1",
        "A run is given the whole environment, tokens that write included",
        "hummingbird/assembly/secrets.py",
        "given = {name: value for name, value in environment.items() if name not in held_back}",
        "given = dict(environment)",
        (f"{_SECRETS}::test_what_runs_a_model_is_given_nothing_that_writes_or_opens_a_door_i1",),
    ),
    Mutation(
        "I1",
        "What was held back from a run is not masked in it",
        "hummingbird/assembly/secrets.py",
        "return given, [value.strip() for value in held_back.values() if value.strip()]",
        "return given, []",
        ("tests/assembly/test_investigating.py::test_the_orchestrators_token_is_never_in_reach",),
    ),
    Mutation(
        "I1",
        "A refusal of GitLab that repeats the token that writes is quoted with it",
        "hummingbird/adapters/forge/client.py",
        'return refusal.replace(self._token.reveal().encode(), b"")',
        "return refusal",
        (f"{_TROUBLE}::test_i1_no_error_record_or_name_shows_the_token",),
    ),
    Mutation(
        "I1",
        "The token that writes shows itself wherever it is printed",
        "hummingbird/ports/forge.py",
        'return "OrchestratorToken(…)"',
        'return f"OrchestratorToken({self._value})"',
        (f"{_TROUBLE}::test_i1_no_error_record_or_name_shows_the_token",),
    ),
    Mutation(
        "I1",
        "The token that writes follows GitLab's redirects to wherever they lead",
        "hummingbird/adapters/forge/connections.py",
        "follow_redirects=False",
        "follow_redirects=True",
        (f"{_TROUBLE}::test_g3_redirects_are_not_followed",),
    ),
    Mutation(
        "I1",
        "How far a command is, is told with the credentials in it",
        "hummingbird/agent/loop.py",
        "masked = self._setup.secrets.mask(plain(text))",
        "masked = plain(text)",
        (_CHAT,),
    ),
    Mutation(
        "I1",
        "What a model says is shown as it streams, with the credentials in it",
        "hummingbird/agent/turn.py",
        "reply = await model.generate(request, deltas if self.streaming else None)",
        "reply = await model.generate(request, self._tell if self.streaming else None)",
        (_CHAT,),
    ),
    Mutation(
        "I2",
        "Commands on the user's machine are given every variable",
        "hummingbird/assembly/chat_desk.py",
        "harmless = {name: value for name, value in given.items() if self.secrets.mask(value) == value}",
        "harmless = dict(given)",
        (_CHAT,),
    ),
    Mutation(
        "I2",
        "Where no token writes, the forge takes one that reads",
        "hummingbird/assembly/forges.py",
        "    own, _ = orchestrator_variables(project)\n",
        '    if reading := environment.get("GITLAB_TOKEN"):\n        return OrchestratorToken(reading)\n'
        "    own, _ = orchestrator_variables(project)\n",
        ("tests/security/test_two_tokens.py::test_without_a_token_that_writes_none_that_reads_takes_its_place_i2",),
    ),
    Mutation(
        "I2",
        "What sources read with is not masked in notes",
        "hummingbird/assembly/secrets.py",
        'return [value for name in sorted(names) if (value := environment.get(name, "").strip())]',
        "return []",
        (f"{_SECRETS}::test_a_report_that_spells_a_credential_in_any_usual_way_is_posted_without_it_i1_i2",),
    ),
    Mutation(
        "I2",
        "Streams of tools reach the model and the sandbox with the known credentials in them",
        "hummingbird/agent/tools/results.py",
        "masking, plain_text = secrets.stream(), PlainText()",
        "masking, plain_text = Secrets().stream(), PlainText()",
        ("tests/agent/test_spill.py::test_a_credential_reaches_neither_the_sandbox_nor_the_model",),
    ),
    Mutation(
        "I2",
        "The GitLab source takes its token to another host that GitLab names",
        "hummingbird/adapters/sources/gitlab/session.py",
        'if origin(request.url or "") != self._home:',
        "if not self._home:",
        ("tests/adapters/sources/gitlab/test_session.py::test_a_redirect_to_another_origin_is_not_followed",),
    ),
    Mutation(
        "I2",
        "What is sent along to a source goes with a redirect to another origin",
        "hummingbird/adapters/sources/http/reader.py",
        "at_home = _origin(target) == _origin(first)",
        "at_home = True",
        ("tests/adapters/sources/http/test_reader.py::test_d7_what_the_caller_sends_never_goes_to_another_origin",),
    ),
    Mutation(
        "I3",
        "A bubblewrap sandbox shares the network of the host",
        "hummingbird/adapters/sandboxes/bubblewrap_options.py",
        'found = ["--unshare-all", ',
        'found = ["--unshare-all", "--share-net", ',
        ("tests/security/test_attempts.py::test_every_attempt_fails_in_a_sandbox_as_it_is_i3[bubblewrap]",),
    ),
    Mutation(
        "I3",
        "A bubblewrap sandbox can read and write a folder of the host",
        "hummingbird/adapters/sandboxes/bubblewrap_options.py",
        'found += ["--dir", "/etc"]',
        'found += ["--dir", "/etc", "--bind", "/var/tmp", "/var/tmp"]',
        (
            "tests/security/test_files_in_and_out.py"
            "::test_links_and_archives_from_inside_lead_nowhere_on_the_host_i3_i4[bubblewrap]",
        ),
    ),
    Mutation(
        "I3",
        "Bubblewrap is started with our environment",
        "hummingbird/adapters/sandboxes/bubblewrap.py",
        "env=way.environment,",
        "env={**os.environ, **way.environment},",
        ("tests/security/test_start.py::test_bubblewrap_starts_with_nothing_of_ours_i3",),
    ),
    Mutation(
        "I3",
        "A container shares the network of the host",
        "hummingbird/adapters/sandboxes/container.py",
        '"--network=none"',
        '"--network=host"',
        ("tests/security/test_attempts.py::test_every_attempt_fails_in_a_sandbox_as_it_is_i3[podman]",),
    ),
    Mutation(
        "I3",
        "Podman is started with our environment",
        "hummingbird/adapters/sandboxes/engine.py",
        "kept = {name: environment[name] for name in names if environment.get(name)}",
        "kept = dict(environment)",
        ("tests/adapters/sandboxes/test_podman.py::test_podman_itself_is_started_without_our_tokens",),
    ),
    Mutation(
        "I3",
        "A sandbox's pod holds the token of its service account",
        "hummingbird/adapters/sandboxes/manifests/pod.json",
        '"automountServiceAccountToken": false',
        '"automountServiceAccountToken": true',
        ("tests/adapters/sandboxes/test_manifest.py::test_every_pod_says_all_that_keeps_it_harmless_x5",),
    ),
    Mutation(
        "I4",
        "The host unpacks an archive once it is stored, with Python's own library",
        "hummingbird/adapters/stores/archives.py",
        "    part.replace(path)\n",
        "    part.replace(path)\n    import tarfile\n\n    with suppress(tarfile.TarError):\n"
        "        tarfile.open(path).extractall(path.parent)\n",
        ("tests/security/test_files_in_and_out.py::test_no_module_of_ours_can_unpack_an_archive_i4",),
    ),
    Mutation(
        "I4",
        "The host unpacks an archive once it is stored, with the program tar",
        "hummingbird/adapters/stores/archives.py",
        "    part.replace(path)\n",
        "    part.replace(path)\n    import subprocess\n\n"
        '    subprocess.run(["tar", "-xzf", str(path), "-C", str(path.parent)], check=False, capture_output=True)\n',
        ("tests/agent/test_workbench.py::test_what_one_sandbox_held_is_in_the_next_one",),
    ),
    Mutation(
        "I4",
        "The host unpacks an archive's compression to look at it when it is brought back",
        "hummingbird/adapters/stores/archives.py",
        "        return Archive(self._chunks(path), saved_at)",
        "        import gzip\n\n        gzip.decompress(path.read_bytes())\n"
        "        return Archive(self._chunks(path), saved_at)",
        ("tests/stores/test_archives.py::test_what_is_put_is_what_is_got_for_each_session_its_own",),
    ),
    Mutation(
        "I4",
        "A sandbox's archive is unpacked by a command on the host instead of in the new sandbox",
        "hummingbird/agent/checkpoints.py",
        "        done = await sandbox.exec(UNPACK, chunks, timeout_s=ARCHIVING_S)",
        '        whole = b"".join([chunk async for chunk in chunks])\n'
        "        process = await asyncio.create_subprocess_shell(UNPACK, stdin=asyncio.subprocess.PIPE)\n"
        "        await process.communicate(whole)\n"
        '        done = await sandbox.exec("true")',
        ("tests/agent/test_workbench.py::test_what_one_sandbox_held_is_in_the_next_one",),
    ),
    Mutation(
        "I5",
        "Pods are looked for in the whole cluster",
        "hummingbird/adapters/sandboxes/cluster.py",
        '        headers = {"Content-Type": MERGE_PATCH',
        '        path = "/api/v1/pods" if verb == "list" else path\n        headers = {"Content-Type": MERGE_PATCH',
        (
            "tests/adapters/sandboxes/test_cluster.py"
            "::test_everything_is_asked_in_one_namespace_and_a_call_outside_it_would_be_seen_i5",
        ),
    ),
    Mutation(
        "I5",
        "The shipped role is one of the whole cluster",
        "hummingbird/adapters/sandboxes/manifests/role.json",
        '"kind": "Role"',
        '"kind": "ClusterRole"',
        (
            "tests/adapters/sandboxes/test_manifest.py"
            "::test_the_role_grants_seven_verbs_in_one_namespace_and_nothing_else_i5",
        ),
    ),
    Mutation(
        "I5",
        "A pod is looked at through a list of the namespaces, which takes more than the role grants",
        "hummingbird/adapters/sandboxes/cluster.py",
        "        client = self._opened()\n",
        "        client = self._opened()\n"
        '        if verb == "get":\n            (await client.get("/api/v1/namespaces")).raise_for_status()\n',
        ("tests/adapters/sandboxes/test_cluster.py::test_a_pod_is_made_looked_at_listed_changed_and_removed_i5",),
    ),
)
