"""Faults in what locks a note to its evidence (I11, N6)."""

from tests.mutations.mutation import Mutation

_QUOTED = "tests/evidence/test_citations_quoted.py"
_NAMED = "tests/evidence/test_citations_named.py"

CITED = (
    Mutation(
        "I11",
        "Every line counts as fetched",
        "hummingbird/evidence/citations/judging.py",
        "if as_it_is.fetched:",
        "if as_it_is is not None:",
        (f"{_QUOTED}::test_a_quotation_with_nothing_in_it_is_one_sentence",),
    ),
    Mutation(
        "I11",
        "Any number may stand before a line that was fetched",
        "hummingbird/evidence/citations/judging.py",
        "if number in known:",
        "if number:",
        (f"{_QUOTED}::test_a_right_line_gets_its_right_number_and_none_where_there_are_several_or_nobody_knows",),
    ),
    Mutation(
        "I11",
        "What a command prints is a line of a log",
        "hummingbird/evidence/citations/results.py",
        "grade = Grade.PRINTED if own.name in COMMANDS else Grade.FETCHED",
        "grade = Grade.FETCHED",
        (f"{_QUOTED}::test_what_a_command_printed_is_told_as_that_and_never_as_a_line_of_a_log",),
    ),
    Mutation(
        "I11",
        "What a sub-agent or a note of its own says back to a model is evidence",
        "hummingbird/evidence/citations/results.py",
        "elif isinstance(own, ToolFinished) and own.name not in OWN_WORDS:",
        "elif isinstance(own, ToolFinished):",
        (f"{_QUOTED}::test_the_models_own_words_are_no_evidence_whoever_says_them_back",),
    ),
    Mutation(
        "I11",
        "Every place and job counts as told",
        "hummingbird/evidence/citations/mentions.py",
        "return any(all(numbers[word] in record.words for word in group) for group in mention.words)",
        "return True",
        (f"{_NAMED}::test_what_was_not_is_marked_where_it_stands",),
    ),
    Mutation(
        "I11",
        "Links lead anywhere",
        "hummingbird/evidence/citations/addresses.py",
        'if base.rstrip("/") not in self._bases and not self._made_of_ids(base):',
        "if not base:",
        (f"{_NAMED}::test_any_other_link_is_taken_out_and_its_words_stay",),
    ),
)
