"""Faults in what locks a note to its evidence."""

from tests.mutations.mutation import Mutation

_QUOTED = "tests/evidence/test_citations_quoted.py"
_NAMED = "tests/evidence/test_citations_named.py"

CITED = (
    Mutation(
        "citations",
        "Every line counts as fetched",
        "hummingbird/evidence/citations/quote_checks.py",
        "if as_it_is.fetched:",
        "if as_it_is is not None:",
        (f"{_QUOTED}::test_a_quotation_with_nothing_in_it_is_one_sentence",),
    ),
    Mutation(
        "citations",
        "Any number may stand before a line that was fetched",
        "hummingbird/evidence/citations/quote_checks.py",
        "if number in known:",
        "if number:",
        (f"{_QUOTED}::test_a_right_line_gets_its_right_number_and_none_where_there_are_several_or_nobody_knows",),
    ),
    Mutation(
        "citations",
        "What a command prints is a line of a log",
        "hummingbird/evidence/citations/source_record.py",
        "grade = EvidenceGrade.PRINTED if own.name in COMMAND_TOOLS else EvidenceGrade.FETCHED",
        "grade = EvidenceGrade.FETCHED",
        (f"{_QUOTED}::test_what_a_command_printed_is_told_as_that_and_never_as_a_line_of_a_log",),
    ),
    Mutation(
        "citations",
        "What a sub-agent or a note of its own says back to a model is evidence",
        "hummingbird/evidence/citations/source_record.py",
        "elif isinstance(own, ToolFinished) and own.name not in OWN_WORDS_TOOLS:",
        "elif isinstance(own, ToolFinished):",
        (f"{_QUOTED}::test_the_models_own_words_are_no_evidence_whoever_says_them_back",),
    ),
    Mutation(
        "citations",
        "Every place and job counts as told",
        "hummingbird/evidence/citations/references.py",
        "return any(all(numbers[word] in record.found_patterns for word in group) for group in mention.patterns)",
        "return True",
        (f"{_NAMED}::test_what_was_not_is_marked_where_it_stands",),
    ),
    Mutation(
        "citations",
        "Links lead anywhere",
        "hummingbird/evidence/citations/references.py",
        'if base.rstrip("/") not in self._bases and not self._is_made_of_known_ids(base):',
        "if not base:",
        (f"{_NAMED}::test_any_other_link_is_taken_out_and_its_words_stay",),
    ),
)
