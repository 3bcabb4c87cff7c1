"""What users of agents like this one suffer from, and the tests that would turn red if ours did the same."""

import ast
from functools import cache
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
PAINS = {
    "a compaction loses or resurrects tasks": (
        "agent/test_retention.py::test_everything_that_was_named_before_a_compaction_is_found_after_it",
        "agent/test_retention.py::test_what_is_finished_is_never_open_and_what_was_taken_back_never_comes_back",
    ),
    "a summary that fails wipes the context": (
        "agent/test_compaction.py::test_when_the_summary_fails_nothing_is_dropped",
    ),
    "compaction comes too early, too late or at another share": (
        "agent/test_compaction.py::test_the_threshold_is_the_one_that_was_given",
        "agent/test_compaction.py::test_what_was_in_vain_is_not_tried_at_every_turn",
    ),
    "a session is empty when it is resumed": (
        "agent/test_retention.py::test_a_session_that_is_resumed_after_compactions_shows_everything",
    ),
    "calls without results brick a session": (
        "agent/test_compaction.py::test_a_call_and_its_results_are_never_separated",
        "core/test_compactions.py::test_nothing_is_lost_by_compacting_anywhere_in_any_journal",
    ),
    "empty answers poison a session": ("agent/test_retention.py::test_empty_answers_poison_no_session",),
    "the bill is wrong": (
        "agent/test_bill.py::test_every_attempt_is_a_line_also_failed_and_retried_ones",
        "agent/test_compaction.py::test_a_summary_is_on_the_bill_and_no_turn",
        "app/test_sub_agents.py::test_what_sub_agents_paid_is_on_the_bill_however_they_end",
    ),
    "nothing caps what is spent": (
        "agent/test_budgets.py::test_each_budget_warns_once_at_eighty_percent_and_ends_with_a_final_call",
        "app/test_sub_agents.py::test_money_is_drawn_from_what_the_parent_has_left",
    ),
    "most of each call is overhead": ("app/test_prompt_size.py::test_the_default_chat_weighs_at_most_16_000_bytes",),
    "caches miss": (
        "agent/test_prefix.py::test_prompt_and_tools_are_byte_identical_across_resumes_in_another_process",
        "app/test_partner.py::test_the_prompt_that_a_chat_began_with_stays_while_memory_changes",
    ),
    "loops of calls are not stopped": (
        "agent/test_repeated_calls.py::test_at_five_the_run_ends_as_no_progress_with_a_final_text_turn",
        "agent/test_repeated_calls.py::test_a_repeating_cycle_is_noticed_at_three_and_ends_at_five",
    ),
    "done is said and not true": (
        "app/test_sub_agents.py::test_nothing_found_is_not_told_as_if_something_were",
        "app/test_sub_agents.py::test_only_files_that_are_there_are_artefacts",
    ),
    "delegation freezes the parent or vanishes": (
        "app/test_sub_agents.py::test_what_was_found_before_the_time_was_up_is_not_lost",
        "app/test_sub_agents.py::test_one_is_cancelled_by_its_number_and_the_others_go_on",
        "app/test_sub_agents.py::test_an_interrupt_does_not_wait_for_sub_agents",
    ),
    "approvals are passed by": (
        "app/test_chat_permissions.py::test_catastrophes_are_refused_before_anybody_is_asked",
        "app/test_sub_agents.py::test_plan_mode_and_the_list_of_catastrophes_hold_below",
    ),
    "a yes means more than was asked": (
        "app/test_chat_permissions.py::test_a_rule_that_denies_is_absolute_and_a_grant_is_for_one_call",
        "config/effects/test_chat.py::test_rules_for_paths_hold_for_every_way_to_a_file",
    ),
    "who may be asked leaks through the process": (
        "app/test_chat_permissions.py::test_where_nobody_can_be_asked_and_nothing_kept_there_is_no_place_for_it",
    ),
    "secrets are in the environment of commands": (
        "security/test_chat_canaries.py::test_no_credential_is_anywhere_after_a_conversation_that_is_full_of_them",
        "sandboxes/host/test_hidden_environment.py::test_a_command_of_the_same_user_cannot_read_our_environment",
    ),
    "what was read gives orders": (
        "agent/test_compaction.py::test_what_a_summariser_writes_is_fenced_as_anybody_s_words",
        "security/test_chat_doors.py::test_the_configuration_of_a_folder_is_read_only_if_it_is_named",
    ),
    "the database is corrupt": (
        "storage/test_index_damage.py::test_what_is_damaged_while_it_is_used_is_begun_anew",
        "journeys/chat/test_bad_circumstances.py::test_a_damaged_index_is_made_anew",
    ),
    "an interrupt is ignored, or eats the next message": (
        "journeys/chat/test_interrupts.py::test_the_model_is_interrupted_while_it_streams_is_silent_or_rests",
        "app/test_partner.py::test_an_interrupt_counts_also_before_the_message_was_sent",
    ),
    "processes are left behind": (
        "sandboxes/host/test_terminal_leftovers.py::test_nothing_outlives_us_however_we_end",
        "sandboxes/host/test_terminal.py::test_what_a_command_leaves_running_holds_nobody_up_and_gets_a_number",
    ),
    "fallbacks hang, or stick": (
        "agent/test_fallback.py::test_the_primary_is_tried_again_at_the_next_user_message_after_sixty_seconds",
        "app/test_partner.py::test_a_chosen_model_is_taken_also_right_after_a_fallback",
    ),
    "one question exits with 0 whatever happened": (
        "journeys/chat/test_one_question.py"
        "::test_a_refused_credential_and_an_empty_account_end_with_1_and_say_what_to_do",
    ),
    "what was lost on the way is done twice": (
        "core/test_conversation.py"
        "::test_a_call_that_had_started_is_of_unknown_outcome_and_one_that_had_not_was_not_run",
    ),
    "memory is polluted": (
        "agent/test_memory_tool.py::test_what_may_not_be_kept_is_refused_with_a_sentence_and_nothing_changes",
    ),
    "nobody can say who allowed what": (
        "config/effects/test_chat.py::test_reason_and_name_of_a_rule_are_what_the_model_and_the_journal_read",
    ),
    "plan mode is a wish": (
        "app/test_chat_permissions.py::test_in_plan_mode_every_tool_that_changes_or_sends_is_denied_whatever_else_holds",
        "journeys/chat/test_working.py::test_plan_mode_changes_nothing_although_the_configuration_allows_everything",
    ),
}


@pytest.mark.parametrize("pain", PAINS)
def test_each_pain_has_a_test(pain: str) -> None:
    for test in PAINS[pain]:
        file, _, name = test.partition("::")
        assert name in functions(file), test


@cache
def functions(file: str) -> frozenset[str]:
    tree = ast.parse((TESTS / file).read_text(encoding="utf-8"))
    return frozenset(one.name for one in tree.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef))
