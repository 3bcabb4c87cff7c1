"""Which test shows that changing a key changes what happens: each key of the table. A test is named by its
file, below tests/, and its function."""

from collections.abc import Mapping
from types import MappingProxyType

OWN = "config/effects/test_{}.py::test_{}"
LINKS = OWN.format("notes", "links_of_the_configuration_stand_in_the_first_note")
PRICES = OWN.format("models", "each_price_is_in_the_bill")
POD = OWN.format("sandboxes", "each_key_of_a_pod_reaches_the_api")
TRIGGERS = OWN.format("beginning", "trigger_and_auto_trigger_decide_what_a_workflow_begins_with")
IGNORED = OWN.format("beginning", "ignore_users_and_ignore_branches_leave_merge_requests_alone")
RUNS = OWN.format("beginning", "max_runs_per_mr_ends_automatic_runs")
INTERNAL = OWN.format("notes", "internal_notes_decide_who_reads_a_result")
MODEL = OWN.format("models", "model_is_the_one_that_is_asked")
FALLBACK = OWN.format("models", "fallback_models_take_over")
ITERATIONS = OWN.format("models", "max_iterations_ends_a_run")
CONTEXT = OWN.format("models", "context_limit_ends_a_run")
INLINE = OWN.format("models", "max_inline_size_decides_what_becomes_a_file")
ONLY = OWN.format("models", "what_is_not_offered_is_refused_and_not_ignored")
STORE = OWN.format("places", "s3_session_bucket_and_session_store_are_where_other_hosts_find_sessions")
LIVES = OWN.format("sandboxes", "active_deadline_seconds_and_linger_seconds_are_how_long_a_pod_of_a_pool_lives")
GITLAB_TOKEN = OWN.format("sources", "token_env_is_whom_gitlab_sees")
FARM_TOKEN = OWN.format("sources", "token_env_is_whom_testing_farm_sees")
KUBECONFIG = OWN.format("sources", "kubeconfig_env_and_context_are_the_credentials_for_a_cluster")
BUDGETS = "app/test_effective_settings.py::test_budgets_bring_a_run_to_its_end"

SETTINGS = {
    "gitlab_url": OWN.format("beginning", "gitlab_url_is_the_server_that_is_written_to"),
    "max_concurrent_agents": OWN.format("slots", "max_concurrent_agents_is_how_many_runs_there_are_at_a_time"),
    "sqs_queue_url": OWN.format("places", "sqs_queue_url_is_where_events_come_from"),
    "sqs_fifo_queue_url": OWN.format("places", "sqs_fifo_queue_url_is_where_work_is_handed_out"),
    "s3_session_bucket": STORE,
    "session_store": STORE,
    "model": MODEL,
    "fallback_models": FALLBACK,
    "models_allowed": OWN.format("beginning", "models_allowed_may_be_chosen_in_a_command_and_others_not"),
    "model_regions": OWN.format("models", "model_regions_are_where_models_are_asked"),
    "max_iterations": ITERATIONS,
    "context_limit": CONTEXT,
    "max_inline_size": INLINE,
    "max_runs_per_mr": RUNS,
    "internal_notes": INTERNAL,
    "docs_url": LINKS,
    "dashboard_url": OWN.format("notes", "with_a_dashboard_the_transcript_is_linked_there"),
    "source_url": LINKS,
    "slack_url": LINKS,
    "slack_label": LINKS,
    "trigger_prefix": OWN.format("beginning", "trigger_prefix_is_what_a_command_begins_with"),
    "session_marker_prefix": OWN.format("beginning", "session_marker_prefix_is_how_our_notes_are_known"),
    "auto_trigger": TRIGGERS,
    "former_bot_ids": OWN.format("beginning", "former_bot_ids_make_old_notes_our_own"),
    "ca_bundle": OWN.format("trust", "ca_bundle_is_whom_a_connection_believes"),
    "settle_seconds": OWN.format("beginning", "settle_seconds_is_how_long_nothing_may_change"),
    "settle_cap_seconds": OWN.format("beginning", "settle_cap_seconds_is_how_long_what_runs_is_waited_for"),
    "config_poll_seconds": OWN.format("places", "config_poll_seconds_is_the_time_between_two_looks"),
    "models.*.context_tokens": OWN.format("chat", "context_limit_and_the_window_of_a_model_are_how_much_fits"),
    **{f"prices.*.{kind}": PRICES for kind in ("input", "output", "cache_read", "cache_write")},
}
SANDBOX = {
    "backend": OWN.format("sandboxes", "backend_is_the_kind_of_sandbox"),
    "image": OWN.format("sandboxes", "image_is_what_a_pod_runs"),
    "namespace": OWN.format("sandboxes", "namespace_is_where_a_pod_is_made"),
    "context": "app/test_effective_settings.py::test_a_configured_context_comes_with_the_configured_namespace",
    "active_deadline_seconds": LIVES,
    "linger_seconds": LIVES,
    "max_lingering_pods": OWN.format("sandboxes", "max_lingering_pods_wait_and_the_others_are_removed"),
    "exec_timeout_seconds": "app/test_effective_settings.py::test_exec_timeout_seconds_ends_a_command",
    **{f"metadata.{name}": POD for name in ("labels", "annotations")},
    **{
        f"resources.{kind}.{name}": POD
        for kind in ("requests", "limits")
        for name in ("cpu", "memory", "ephemeral-storage")
    },
}
WORKFLOW = {
    "trigger": TRIGGERS,
    "description": OWN.format("notes", "description_is_what_help_says_of_a_workflow"),
    "workflow_url": LINKS,
    "prompt": OWN.format("models", "prompt_is_what_the_model_is_told"),
    "action": ONLY,
    "model": MODEL,
    "fallback_models": FALLBACK,
    "max_iterations": ITERATIONS,
    "context_limit": CONTEXT,
    "max_inline_size": INLINE,
    "max_runs_per_mr": RUNS,
    "internal_notes": INTERNAL,
    "context": OWN.format("models", "context_says_what_a_full_context_leads_to"),
    "nothing_found": OWN.format("notes", "nothing_found_is_a_line_or_silence"),
    "citations": OWN.format("models", "citations_decide_what_becomes_of_an_invented_line"),
    "inline_findings": OWN.format("notes", "inline_findings_stand_on_lines_of_the_diff"),
    "ignore_users": IGNORED,
    "ignore_branches": IGNORED,
    "auto_resolve_on_push": OWN.format("notes", "auto_resolve_on_push_resolves_threads_about_older_commits"),
    "auto_resolve_on_success": OWN.format("notes", "auto_resolve_on_success_resolves_threads_when_all_is_green"),
    "projects.*.max_runs_per_mr": RUNS,
    "projects.*.internal_notes": INTERNAL,
    "projects.*.tokens.gitlab": GITLAB_TOKEN,
    "projects.*.tokens.testing_farm": FARM_TOKEN,
}
SOURCES = {
    "gitlab.token_env": GITLAB_TOKEN,
    "gitlab.projects": OWN.format("sources", "projects_of_gitlab_may_be_looked_at_besides_ones_own"),
    "konflux.cluster_url": OWN.format("sources", "cluster_url_is_the_tenant_that_is_asked"),
    "konflux.kubeconfig_env": KUBECONFIG,
    "konflux.context": KUBECONFIG,
    "konflux.kubearchive_url": OWN.format("sources", "kubearchive_url_is_where_older_runs_are_found"),
    "konflux.ui_url": OWN.format("sources", "ui_url_is_where_people_are_sent"),
    "testing_farm.token_env": FARM_TOKEN,
    "testing_farm.api_url": OWN.format("sources", "api_url_is_where_testing_farm_is_asked"),
    "testing_farm.artifacts": OWN.format("sources", "artifacts_are_read_below_what_is_declared"),
    "gitlab.storage": OWN.format("sources", "storage_of_gitlab_may_be_in_plain_text"),
    "testing_farm.private_addresses": OWN.format("sources", "private_addresses_are_read_only_where_that_is_said"),
}
RULE = OWN.format("chat", "permissions_decide_what_becomes_of_a_call")
NAMED = OWN.format("chat", "reason_and_name_of_a_rule_are_what_the_model_and_the_journal_read")
STARTED = OWN.format("chat", "mcp_servers_with_a_command_are_started_as_they_are_described")
FAR = OWN.format("chat", "mcp_servers_with_a_url_are_asked_there_with_their_headers")
KEPT = OWN.format("chat", "memory_limits_are_how_much_is_kept")
CHAT = {
    "model": OWN.format("chat", "model_is_the_one_that_answers"),
    "max_turns": OWN.format("chat", "max_turns_ends_a_run"),
    "context_limit": OWN.format("chat", "context_limit_and_the_window_of_a_model_are_how_much_fits"),
    "context": OWN.format("chat", "context_is_the_engine_that_makes_room"),
    "delegation.max_iterations": OWN.format("chat", "delegation_max_iterations_ends_a_sub_agent"),
    "delegation.max_concurrent": OWN.format("chat", "delegation_max_concurrent_is_how_many_work_at_a_time"),
    "compression.threshold": OWN.format("chat", "compression_threshold_is_when_the_middle_is_summarised"),
    "compression.protect_last_n": OWN.format("chat", "compression_protect_last_n_is_what_stays"),
    "bell": "app/test_chat_start.py::test_the_bell_can_be_turned_off",
    "titles": "app/test_partner_sessions.py::test_a_short_message_is_a_title_and_titles_can_be_off",
    "fallback_providers": OWN.format("chat", "fallback_providers_take_over"),
    "auxiliary.*.model": OWN.format("chat", "auxiliary_model_writes_the_summary"),
    "auxiliary.*.fallback_providers": OWN.format("chat", "auxiliary_fallback_providers_take_over_in_the_side_task"),
    "memory.memory_char_limit": KEPT,
    "memory.user_char_limit": KEPT,
    "toolsets": OWN.format("chat", "toolsets_are_what_is_offered"),
    **{f"permissions[].{key}": RULE for key in ("action", "tool", "argument", "pattern", "effects")},
    **{f"permissions[].{key}": NAMED for key in ("reason", "name")},
    **{f"mcp_servers.*.{key}": STARTED for key in ("command", "args", "env", "tools", "read_tools")},
    **{f"mcp_servers.*.{key}": FAR for key in ("url", "headers_env")},
}
SPENT = {
    "usd_per_run": BUDGETS,
    "usd_per_day": BUDGETS,
    "seconds_per_run": "app/test_effective_settings.py::test_seconds_per_run_bring_a_run_to_its_end",
}

EFFECTS: Mapping[str, str] = MappingProxyType(
    {
        f"{section}.{key}": test
        for section, keys in (
            ("settings", SETTINGS),
            ("settings.sandbox", SANDBOX),
            ("budgets", SPENT),
            ("workflows.*", WORKFLOW),
            ("workflows.*.data_sources", SOURCES),
            ("chat", CHAT),
        )
        for key, test in keys.items()
    }
)
