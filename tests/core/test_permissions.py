"""Rules, grants and what is judged by them."""

from collections.abc import Mapping
from itertools import permutations
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.errors import UsageError
from hummingbird.core.journal import Delegated, JournalEntry, RunStarted, ToolDecided, dump_entry, load_entry
from hummingbird.core.limits import JUDGED_CHARS
from hummingbird.core.masking import Secrets
from hummingbird.core.permissions import (
    ALLOWED,
    DENIED,
    GrantScope,
    PermissionAction,
    PermissionDecision,
    PermissionRule,
    ProposedCall,
    find_session_grants,
    judge_call,
)
from hummingbird.core.tool_spec import ToolEffect, ToolSpec

ALLOW, ASK, DENY = PermissionAction.ALLOW, PermissionAction.ASK, PermissionAction.DENY
READ, WRITE, EXEC, SEND = ToolEffect.READ, ToolEffect.WRITE, ToolEffect.EXEC, ToolEffect.SEND

json = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**40), 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
arguments = st.dictionaries(st.text(max_size=3), json, max_size=3)


def tool(name: str = "terminal", *effects: ToolEffect) -> ToolSpec:
    return ToolSpec(name, "A tool.", {"type": "object"}, effects=frozenset(effects or {EXEC}))


def judged(
    *rules: PermissionRule, spec: ToolSpec | None = None, grants: Mapping[str, GrantScope] = {}, **given: Any
) -> PermissionDecision:
    return judge_call(rules, grants, spec or tool(), given)


def command(name: str, given: Mapping[str, Any]) -> ProposedCall:
    made = ProposedCall.from_arguments(tool(name), given)
    assert made is not None
    return made


RULES = (
    PermissionRule(ALLOW, "terminal"),
    PermissionRule(ASK, effects=frozenset({EXEC})),
    PermissionRule(DENY, "terminal", "command", "git push*", reason="pushing is for people", name="no pushes"),
    PermissionRule(ALLOW),
)


@pytest.mark.parametrize("order", list(permutations(range(4))))
def test_a_deny_rule_is_absolute_wherever_it_stands_and_whatever_was_granted(order: tuple[int, ...]) -> None:
    key = command("terminal", {"command": "git push"}).key
    for scope in GrantScope:
        decision = judged(*(RULES[n] for n in order), grants={key: scope}, command="git push")
        assert (decision.action, decision.absolute) == (DENY, True)
        assert (decision.by, decision.reason) == ("the rule 'no pushes'", "pushing is for people")


def test_a_grant_beats_asking_and_the_first_rule_that_speaks_decides() -> None:
    asks, allows = PermissionRule(ASK, name="asks"), PermissionRule(ALLOW, name="allows")
    key = command("terminal", {"command": "ls"}).key
    assert judged(asks, allows, command="ls").by == "the rule 'asks'"
    assert judged(allows, asks, command="ls").action is ALLOW
    granted = judged(asks, grants={key: GrantScope.SESSION}, command="ls")
    assert (granted.action, granted.by) == (ALLOW, "a grant (session)")
    assert judged(asks, grants={key: GrantScope.SESSION}, command="ls ").action is ASK


@pytest.mark.parametrize(
    ("effects", "action"),
    [((READ,), ALLOW), ((WRITE,), ASK), ((EXEC,), ASK), ((SEND,), ASK), ((READ, WRITE), ASK), ((READ, SEND), ASK)],
)
def test_without_a_rule_only_reading_is_allowed(effects: tuple[ToolEffect, ...], action: PermissionAction) -> None:
    decision = judge_call((), {}, tool("it", *effects), {})
    assert (decision.action, decision.by, decision.absolute) == (action, "the default", False)


def test_the_default_is_the_callers_and_the_strictest_effect_counts() -> None:
    """A service has nobody to ask."""
    default = {READ: ALLOW, EXEC: ALLOW, SEND: DENY}
    for effects, action in (((READ, EXEC), ALLOW), ((READ, WRITE), ASK), ((WRITE, SEND), DENY)):
        assert judge_call((), {}, tool("it", *effects), {}, default).action is action
    key = command("it", {}).key
    assert judge_call((), {key: GrantScope.ALWAYS}, tool("it", SEND), {}, default).action is ALLOW  # not absolute


@pytest.mark.parametrize("written", ["sandbox_exec", "Sandbox-Exec", "SANDBOXEXEC", "sandbox*", "*", "s*_*c"])
def test_a_rule_that_restricts_finds_its_tool_however_it_is_written(written: str) -> None:
    """The toolbox, too, reads names that way."""
    assert judged(PermissionRule(DENY, written), spec=tool("sandbox_exec", READ)).action is DENY
    assert judged(PermissionRule(ASK, written), spec=tool("sandbox_exec", READ)).action is ASK


def test_a_rule_that_permits_takes_its_tools_name_to_the_letter() -> None:
    """Two tools may differ in case alone."""
    for written, action in (("look", ALLOW), ("l*", ALLOW), ("Look", ASK), ("lo", ASK)):
        assert judged(PermissionRule(ALLOW, written), spec=tool("look", WRITE)).action is action


def test_a_rule_by_effect_restricts_any_of_them_and_permits_only_all() -> None:
    both = tool("it", READ, WRITE)
    assert judged(PermissionRule(DENY, effects=frozenset({WRITE, SEND})), spec=both).action is DENY
    assert judged(PermissionRule(DENY, effects=frozenset({SEND})), spec=both).action is ASK
    assert judged(PermissionRule(ALLOW, effects=frozenset({WRITE})), spec=both).by == "the default"
    assert judged(PermissionRule(ALLOW, effects=frozenset({WRITE, READ})), spec=both).action is ALLOW


def test_one_rule_makes_a_session_read_only_and_nothing_talks_it_out_of_that() -> None:
    """A plan mode."""
    plan = PermissionRule(DENY, effects=frozenset({WRITE, EXEC, SEND}), name="plan")
    for effects in ((WRITE,), (READ, EXEC), (SEND,)):
        key = command("it", {}).key
        assert (
            judge_call((PermissionRule(ALLOW), plan), {key: GrantScope.ALWAYS}, tool("it", *effects), {}).action is DENY
        )
    assert judge_call((PermissionRule(ALLOW), plan), {}, tool("it", READ), {}).action is ALLOW


def test_a_pattern_is_for_one_argument_or_for_all_of_it() -> None:
    named = PermissionRule(DENY, "*", "path", "/etc/*")
    assert judged(named, path="/etc/passwd").action is DENY
    assert judged(named, other="/etc/passwd").action is ASK
    anywhere = PermissionRule(DENY, pattern="*/etc/*")
    assert judged(anywhere, a=[{"b": "x /etc/passwd"}]).action is DENY
    assert judge_call((anywhere,), {}, tool(), {"x/etc/y": 1}).action is DENY
    assert judged(anywhere, a="/home").action is ASK


def test_a_restricting_pattern_finds_a_string_inside_a_list_and_behind_escapes() -> None:
    """What JSON makes of quotes and line breaks is no disguise either."""
    assert judged(PermissionRule(DENY, "*", "argv", "rm"), argv=["rm", "-rf"]).action is DENY
    assert judged(PermissionRule(DENY, pattern='*echo "x"*'), command='echo "x"').action is DENY
    assert judged(PermissionRule(DENY, pattern="*rm -rf*"), command="rm\n-rf").action is DENY
    assert judged(PermissionRule(DENY, "*", "count", "10*"), count=1000).action is DENY


@pytest.mark.parametrize(
    "written",
    [
        "git 'push' --dry-run",
        'git "push"',
        'git pu""sh',
        "git p{ush,}",
        r"git p\ush",
        "git $'push'",
        "x=push; git $x",
        "git $(echo push)",
        "true && g'it'  push",
        "bash -c 'git pu\"\"sh'",
        "sudo -u joe git 'push'",
        "xargs git 'push' < branches",
    ],
)
@pytest.mark.parametrize("argument", ["command", ""])
def test_what_restricts_looks_past_the_quotes_of_a_shell(written: str, argument: str) -> None:
    """A deny rule is absolute, and a shell runs the same command however its words are spelled."""
    allowed, denied = PermissionRule(ALLOW, "terminal"), PermissionRule(DENY, "terminal", argument, "*git push*")
    assert judged(allowed, denied, command=written).action is DENY
    assert judged(allowed, PermissionRule(DENY, "terminal", argument, "git push*"), command=written).action is DENY
    assert judged(allowed, denied, command="git log --grep push").action is ALLOW
    assert judged(allowed, denied, path=written).action is ALLOW  # no shell is given that


def test_what_no_reader_of_shells_gets_through_is_restricted() -> None:
    nested = "$(" * 200 + "x" + ")" * 200
    assert (
        judged(PermissionRule(ALLOW), PermissionRule(DENY, "terminal", "command", "*git push*"), command=nested).action
        is DENY
    )
    assert (
        judged(PermissionRule(ALLOW), PermissionRule(DENY, "terminal", "path", "*git push*"), command=nested).action
        is ALLOW
    )


@pytest.mark.parametrize(
    "written",
    ["echo $x a", "/bin/e?ho a", "git -c core.pager=less log", "git --config-env=a=B log", "e*ho a"],
)
def test_a_star_permits_nothing_that_only_running_tells(written: str) -> None:
    stars = PermissionRule(
        ALLOW, "terminal", "command", written.replace("a", "*", 1) if "$" in written else f"{written[:5]}*"
    )
    assert judged(stars, command=written).action is ASK
    assert (
        judged(PermissionRule(ALLOW, "terminal", "command", written.replace("*", r"\*")), command=written).action
        is ALLOW
    )


def test_a_doubtful_call_is_asked_about_and_a_grant_holds() -> None:
    rules = (
        PermissionRule(ALLOW, "terminal"),
        PermissionRule(DENY, "terminal", "command", "*git push*", name="no pushes"),
    )
    decision = judged(*rules, command="git $verb")
    assert (decision.action, decision.absolute, decision.by) == (ASK, False, "the rule 'no pushes'")
    assert "write it out" in decision.reason
    key = command("terminal", {"command": "git $verb"}).key
    assert judged(*rules, grants={key: GrantScope.SESSION}, command="git $verb").action is ALLOW
    assert judged(*rules, path="git $verb").action is ALLOW  # no shell is given that


def test_a_doubtful_ask_rule_counts_where_it_stands() -> None:
    allow, ask = PermissionRule(ALLOW, "terminal"), PermissionRule(ASK, "terminal", "command", "*git push*")
    assert judged(ask, allow, command="git $verb").action is ASK
    assert judged(allow, ask, command="git $verb").action is ALLOW


def test_a_denying_default_stays_a_denial_where_a_rule_is_doubtful() -> None:
    rule = PermissionRule(DENY, "terminal", "command", "*git push*")
    assert judge_call((rule,), {}, tool(), {"command": "git $verb"}, {EXEC: DENY}).action is DENY


@pytest.mark.parametrize(
    ("pattern", "written", "action"),
    [
        ("git push*", "git $x", ASK),
        ("git push*", "/usr/bin/git -C . push", DENY),
        ("*git*push*", "git checkout $x", ASK),
        ("*git*push*", "ls $x", ALLOW),
        ("*rm -rf*", "rm $x", ASK),
        ("*rm -rf*", "rm *.pyc", ALLOW),
        ("*rm -rf*", "rm -r $x", ALLOW),
        ("*kubectl delete*", "kubectl -n prod delete pod x", DENY),
        ("*kubectl delete*", "kubectl --context $c delete pod x", DENY),
        ("*kubectl delete*", "kubectl -n $ns get pods", ALLOW),
        ("*curl*", "wget $x", ALLOW),
        ("*curl*", "$x example.com", ASK),
    ],
)
def test_a_rule_is_doubtful_where_its_first_word_is_there(pattern: str, written: str, action: PermissionAction) -> None:
    assert (
        judged(PermissionRule(ALLOW), PermissionRule(DENY, "terminal", "command", pattern), command=written).action
        is action
    )


def test_a_permitting_pattern_for_the_whole_leaves_no_room_for_another_argument() -> None:
    """One for a named argument says nothing about the others."""
    whole = PermissionRule(ALLOW, pattern='{"command":"git log*"}')
    assert judged(whole, command="git log -p").action is ALLOW
    assert judged(whole, command="git log", env={"PAGER": "sh"}).action is ASK
    assert judged(whole, command="git log", pager="sh").action is ASK
    assert judged(whole, command='git log "', x="").action is ASK
    assert judged(whole, command="git log\nrm x").action is ASK
    named = PermissionRule(ALLOW, "*", "command", "git log*")
    assert judged(named, command="git log", env={"PAGER": "sh"}).action is ALLOW
    assert judged(named, other="git log").action is ASK


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"tool": ""}, "cannot be a tool's name"),
        ({"tool": "a b"}, "cannot be a tool's name"),
        ({"tool": "_"}, "cannot be a tool's name"),
        ({"tool": "ｔerminal"}, "cannot be a tool's name"),
        ({"argument": "path"}, "no pattern"),
        ({"pattern": r"\d+"}, "backslash"),
        ({"pattern": "x" * 5000}, "characters"),
        ({"effects": frozenset({"fly"})}, "fly"),
        ({"action": "maybe"}, "maybe"),
    ],
)
def test_a_rule_that_means_nothing_is_said_with_its_name(given: dict[str, Any], said: str) -> None:
    """Where it is made, not where it would have been needed."""
    with pytest.raises(UsageError, match=r"The permission rule 'mine' is broken: .*" + said):
        PermissionRule(**{"action": DENY, "name": "mine", **given})


def test_a_rule_out_of_a_file_is_the_same_rule() -> None:
    """Plain words in, values out."""
    read: Any = {"action": "deny", "effects": ["write"], "tool": "a*"}
    rule = PermissionRule(**read)
    assert rule == PermissionRule(DENY, "a*", effects=frozenset({WRITE}))
    assert judged(rule, spec=tool("abc", WRITE)).by == "the rule 'deny a* with write'"


def test_arguments_too_long_to_be_looked_over_are_restricted_and_not_permitted() -> None:
    """A pattern is no reason to read a book; without one there is nothing to look over."""
    long = "x" * JUDGED_CHARS
    denied = judged(PermissionRule(DENY, "*", "command", "rm *"), command=long)
    assert denied.action is DENY
    assert "split them" in denied.reason
    assert judged(PermissionRule(ALLOW, "*", "command", "x*"), command=long).action is ASK
    assert judged(PermissionRule(ALLOW), command=long).action is ALLOW


@given(arguments)
def test_the_same_arguments_are_the_same_command_however_they_are_laid_out(given: dict[str, Any]) -> None:
    other = dict(reversed(list(msgspec.json.decode(msgspec.json.encode(given)).items())))
    assert command("a", given).key == command("a", other).key


@pytest.mark.thorough
@given(arguments, arguments)
def test_two_commands_have_one_key_only_if_they_are_one(one: dict[str, Any], other: dict[str, Any]) -> None:
    """Repr knows 1 from True and 1.0, which == does not."""
    same = _exact(one) == _exact(other)
    assert (command("a", one).key == command("a", other).key) == same


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"c": "rm x"}, {"c": "rm  x"}),
        ({"c": "rm x"}, {"c": "rm x "}),
        ({"c": "é"}, {"c": "e\u0301"}),
        ({"c": "a"}, {"c": "A"}),
        ({"c": "ﬁ"}, {"c": "fi"}),
        ({"c": 1}, {"c": True}),
        ({"c": 1}, {"c": 1.0}),
        ({"c": 1}, {"c": "1"}),
        ({"c": None}, {}),
        ({"c": "a\u200b"}, {"c": "a"}),
    ],
)
def test_what_differs_at_all_is_another_command(one: dict[str, Any], other: dict[str, Any]) -> None:
    assert command("a", one).key != command("a", other).key
    assert judged(PermissionRule(ASK), grants={command("terminal", one).key: GrantScope.ALWAYS}, **other).action is ASK


def test_the_tool_is_part_of_the_command() -> None:
    assert command("a", {}).key != command("b", {}).key


@pytest.mark.parametrize("odd", [float("nan"), float("inf"), b"bytes", (1, 2), {1}, object(), {1: 2}])
def test_arguments_that_json_cannot_tell_from_others_are_denied(odd: object) -> None:
    """A hook may have made them; nan would read as null, bytes as their base64."""
    decision = judge_call((PermissionRule(ALLOW),), {}, tool(), {"c": odd})
    assert (decision.action, decision.absolute) == (DENY, True)


def test_arguments_of_any_depth_are_judged_or_denied() -> None:
    """Never an exception."""
    for depth in (10, 100, 500, 900, 990, 1000, 5000):
        deep: Any = "x"
        for _ in range(depth):
            deep = [deep]
        decision = judge_call((PermissionRule(ASK, "*", "c", "y"), PermissionRule(ALLOW)), {}, tool(), {"c": deep})
        assert decision.action in {ALLOW, DENY}
        assert decision.action is ALLOW or depth > 100


def test_what_a_person_is_shown_hides_credentials_and_nothing_else() -> None:
    """However JSON writes them; and no character that a screen would not show."""
    secrets = Secrets(['se"cret\\value', "other-secret"])
    shown = command("run", {"c": 'x se"cret\\value', "other-secret": ["a\u202eb\x1b[0m\u00a0"]}).describe(secrets.mask)
    assert shown == r'run {"c":"x [masked]","[masked]":["a\u202eb\u001b[0m\xa0"]}'
    assert shown.isprintable()


def test_a_session_has_the_grants_that_its_journal_says() -> None:
    """Yes, for the session, and for something."""
    entry = ToolDecided(call_id="a", name="it", by="Ada", decision=ALLOWED, key="k", scope="session")
    others: list[JournalEntry] = [
        msgspec.structs.replace(entry, key="denied", decision=DENIED),
        msgspec.structs.replace(entry, key="once", scope="once"),
        msgspec.structs.replace(entry, key="always", scope="always"),
        msgspec.structs.replace(entry, key="rule", scope=""),
        msgspec.structs.replace(entry, key=""),
        RunStarted(run_id="r", model="m"),
    ]
    assert find_session_grants([*others, entry, *others]) == {"k": GrantScope.SESSION}
    assert load_entry(dump_entry(entry), 1) == entry


def test_a_yes_for_a_session_holds_where_it_was_given() -> None:
    """The same command does another thing in another folder."""
    entry = ToolDecided(call_id="a", name="it", by="Ada", decision=ALLOWED, key="k", scope="session", where="/here")
    assert load_entry(dump_entry(entry), 1) == entry
    assert find_session_grants([entry], "/here") == {"k": GrantScope.SESSION}
    assert find_session_grants([entry], "/there") == {}


def test_a_yes_to_a_sub_agent_is_one_to_the_session() -> None:
    entry = ToolDecided(call_id="a", name="it", by="Ada", decision=ALLOWED, key="k", scope="session")
    once = msgspec.structs.replace(entry, key="once", scope="once")
    below = [Delegated(call_id="p", task=1001, entry=each) for each in (entry, once)]
    assert find_session_grants(below) == {"k": GrantScope.SESSION}


def test_a_journal_from_before_there_were_grants_still_loads() -> None:
    line = b'{"kind":"tool_decided","call_id":"a","name":"it","by":"hook","decision":"denied"}\n'
    assert load_entry(line, 1) == ToolDecided(call_id="a", name="it", by="hook", decision=DENIED)
    assert find_session_grants([load_entry(line, 1)]) == {}


def _exact(value: Any) -> Any:
    if isinstance(value, dict):
        return sorted((name, _exact(item)) for name, item in value.items())
    return repr([_exact(item) for item in value]) if isinstance(value, list) else repr(value)
