"""No spelling, wrapping or feeding hides what is refused in every mode; any text gets an answer, and soon; what a
person is shown hides nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hummingbird.core.shell.evaluation import refusal_reason
from hummingbird.core.text import printable_command

DISGUISED = [
    # spelling
    "r''m -rf /",
    'r"m" -rf /',
    "r\\m -r\\f /",
    "'rm' '-rf' '/'",
    "rm$IFS-rf$IFS/",
    "rm${IFS}-rf${IFS}/",
    "rm \\\n -rf \\\n /",
    "$'\\x72\\x6d' -rf /",
    "$'rm' -rf $'\\057'",
    "ｒｍ -rf /",
    "rm -rf ／",
    "r\u200bm -rf /",
    "\x1b[31mrm\x1b[0m -rf /",
    "r\x00m -rf /",
    "rm -rf /\r\n",
    "rm\u00a0-rf\u00a0/",
    "/bin/rm -rf /",
    "{rm,-rf,/}",
    "rm -rf / # only a test",
    "rm -rf /;",
    "a=rm; $a -rf /",
    "x=/; rm -rf $x",
    "x='rm -rf /'; $x",
    "rm -rf ${X:-/}",
    "rm -rf $(echo /)",
    "`echo rm` -rf /",
    'for d in /tmp/x /; do rm -rf "$d"; done',
    # places
    "cd / && rm -rf *",
    "(cd / && rm -rf *)",
    "cd / && (ls; rm -rf *)",
    "cd ~; rm -rf .",
    "cd && rm -rf ./*",
    "cd /usr/lib && rm -rf ../../etc",
    # around it
    "true && rm -rf /",
    "false || rm -rf /",
    "ls; rm -rf /",
    "ls | rm -rf /",
    "ls & rm -rf /",
    "ls\nrm -rf /",
    "(rm -rf /)",
    "{ rm -rf /; }",
    "if true; then rm -rf /; fi",
    "while true; do reboot; done",
    "! rm -rf /",
    "f() { rm -rf /; }; f",
    "case x in x) rm -rf / ;; esac",
    "echo $(rm -rf /)",
    'echo "$(rm -rf /)"',
    "echo `rm -rf /`",
    'echo "a `reboot` b"',
    "cat <(rm -rf /)",
    "X=1 Y=2 rm -rf /",
    "cat <<EOF\n$(rm -rf /)\nEOF",
    "cat <<'EOF'\nx\nEOF\nrm -rf /",
    # in other commands
    "sudo rm -rf /",
    "sudo -n -u root rm -rf /",
    "sudo -nu root -- rm -rf /",
    "doas rm -rf /",
    "env rm -rf /",
    "env -i A=b -u C rm -rf /",
    "env -S 'rm -rf /'",
    "nohup rm -rf / &",
    "timeout -s KILL 5 rm -rf /",
    "timeout 5 rm -rf /",
    "nice -n 19 rm -rf /",
    "nice rm -rf /",
    "ionice -c 3 rm -rf /",
    "exec rm -rf /",
    "command rm -rf /",
    "builtin kill -9 -1",
    "time rm -rf /",
    "time -p rm -rf /",
    "function f { rm -rf /; }; f",
    "xargs rm -rf <<< /",
    "find / | xargs rm -rf",
    "setsid rm -rf /",
    "busybox rm -rf /",
    "stdbuf -o L rm -rf /",
    "echo / | xargs rm -rf",
    "ls | xargs -n 1 rm -rf /",
    "sudo env nice timeout 5 nohup rm -rf /",
    "sh -c 'rm -rf /'",
    "bash -lc 'rm -rf /'",
    "bash -o pipefail -ec 'rm -rf /'",
    "bash -c 'rm -rf \"$1\"' _ /",
    "sh -c \"sh -c 'rm -rf /'\"",
    "sudo bash -c 'reboot'",
    "su -c 'rm -rf /'",
    "su root -c 'rm -rf /'",
    "eval rm -rf /",
    "eval 'rm -rf' /",
    "echo 'rm -rf /' | sh",
    "printf '%s' 'rm -rf /' | sudo bash",
    "bash <<< 'rm -rf /'",
    "bash <<EOF\nrm -rf /\nEOF",
    "cat <<EOF | sh\nrm -rf /\nEOF",
    "trap 'rm -rf /' EXIT",
    "alias x='rm -rf /'",
    "watch -n 1 reboot",
    "find . -name x -exec sh -c 'rm -rf /' \\;",
    "flock /tmp/lock rm -rf /",
    # fed to other commands
    "xargs rm -rf <<< ~",
    "xargs rm -rf <<< ~/",
    'xargs rm -rf <<< "$HOME"',
    "x='/tmp/x /'; xargs rm -rf <<< $x",
    "xargs rm -rf <<EOF\n/\nEOF",
    "xargs -I{} rm -rf {} <<< ~",
    "xargs -I % sh -c 'rm -rf %' <<< ~",
    "echo ~ | xargs -i sh -c 'rm -rf {}'",
    "echo ~ | xargs --replace rm -rf {}",
    "echo ~ | xargs --replace=X rm -rf X",
    "echo ~ | xargs rm -rf",
    "printf '%s\\n' /tmp/x ~ | xargs -n 1 rm -rf",
    "bash <<< 'rm -rf ~'",
    "parallel rm -rf ::: ~",
    "parallel rm -rf ::: /tmp/x /*",
    "parallel rm -rf {} ::: /tmp/x /",
    "parallel 'rm -rf {}' ::: ~",
    "parallel -j 4 --halt now,fail=1 'cd /tmp; rm -rf {2}' ::: a ::: /etc",
    "parallel chmod -R 777 :::+ /",
    "parallel ::: ls 'rm -rf /'",
    "parallel 'cd {} && rm -rf *' ::: /tmp/x /",
    "parallel reboot ::: 1 2",
    "echo ~ | parallel rm -rf",
    "parallel rm -rf <<< /",
    "echo 'rm -rf /' | parallel",
    "sudo nice parallel -kj4 rm -rf ::: /",
    "parallel rm -rf -- /",
]

FED = [
    "xargs rm -rf <<< '~'",
    "xargs echo <<< ~",
    "xargs rm -rf <<< ~/.cache/pip",
    "xargs ls <<< /",
    "xargs -I{} cp {} /tmp/x <<< ~/notes",
    "echo / | xargs -I{} sh -c 'ls {}'",
    "echo reboot | xargs man",
    "find . -name x | parallel rm -rf",
    "parallel gzip ::: *.log",
    "parallel rm -rf ::: build dist",
    "parallel rm -rf {}/build ::: ~ ~/src",
    "parallel man ::: reboot shutdown",
    "parallel -j 4 'echo {}; sleep 1' ::: 1 2",
    "parallel cp {1} {2} ::: /etc/passwd ::: /tmp/x",
    "parallel ls {} ::: / ~",
    "parallel 'cd {}; ls' ::: /; rm -rf *",
    "parallel rm -rf :::: /",
    "parallel rm -rf ::: '~' 'a b'",
    "echo '~' | parallel rm -rf",
    "ls ::: /",
    "parallel",
    "parallel :::",
]


def test_spelling_and_wrapping_hide_nothing() -> None:
    assert [command for command in DISGUISED if not refusal_reason(command)] == []


def test_what_is_fed_to_a_harmless_command_or_is_small_is_not_refused() -> None:
    assert [command for command in FED if refusal_reason(command)] == []


HUGE = [
    "echo " + "a " * 500_000,
    "echo '" + "rm -rf / " * 110_000 + "'",
    "a" * 1_000_000,
    ";" * 1_000_000,
    "$(" * 500_000,
    "`" * 1_000_000,
    "((" * 500_000,
    '"$(' * 330_000,
    "<<a " * 250_000,
    "${" * 500_000,
    "{a,b}" * 200_000,
    "rm -rf /" + "*" * 1_000_000,
    "eval " * 200_000,
    "sudo " * 200_000,
    "f(){" * 250_000,
    "\u0300" * 1_000_000,
    "\x1b[" * 500_000,
    "$'" + "\\x72" * 250_000,
    "\\\n" * 500_000,
    "parallel " * 110_000,
    "parallel '" + "{}" * 250_000 + "' ::: " + "a" * 450_000,
    "parallel " + "{} " * 20_000 + "::: " + "a " * 20_000,
    "parallel a " + "::: a " * 160_000,
    "parallel a " + "::: a " * 3_000,
    "parallel {} ::: " + "a" * 90_000 + " a" * 5_000,
    "xargs -I a " + "a" * 500_000 + " <<< " + "b" * 450_000,
    "f0() { :; }; " + "".join(f"f{n}() {{ f{n - 1}; f{n - 1}; }}; " for n in range(1, 40)) + "f39",
    "f() { f; f; f; }; f " * 50_000,
    "f() { " * 160_000,
    "f() { cat <<a; " * 60_000,
    "alias a='a a;a'; " * 50_000 + "a",
    "a=x; " + "a=$a$a; " * 100_000,
    "for x in " + "a " * 2_000 + "; do echo " + "$x " * 300_000,
    "set -- " + "a " * 2_000 + "; echo " + '"$@" ' * 200_000,
    "a=(" * 300_000,
    "a=(" + "b " * 400_000 + ")",
    "${a//" * 200_000,
    "a=" + "b" * 4_000 + "; echo " + "${a//b/cccccccc} " * 60_000,
    "a=" + "b" * 250 + "; echo " + "${a%%*b*c} " * 90_000,
    "echo a > x; " + "cat x x x x x x x x > y; cat y y y y y y y y > x; " * 20_000,
    "echo '" + '"a" ' * 15_000 + "' > x; " + "xargs ls < x;" * 60_000,
    "$((" * 300_000,
    "((" + "(a)" * 300_000,
    "$((a" + "(" * 900_000,
    "git " + "-c alias.a=a " * 80_000 + "a",
    "git -c alias.a='!git a; git a' a; " * 30_000,
    "a=1 " * 250_000,
    "{1..99}{1..99}{1..99} " * 40_000,
    "x " + "-a " * 330_000,
]
QUICK = ("echo ", "$(", "<<a ", "parallel {}", "f0() ", "for x in", "set -- ", "echo a > x")  # one of each kind


@pytest.mark.parametrize(
    "command",
    [pytest.param(text, marks=() if text.startswith(QUICK) else pytest.mark.thorough) for text in HUGE],
    ids=lambda text: f"{text[:12]!r}",
)
def test_a_megabyte_is_looked_through_without_hanging(command: str) -> None:
    """Work that grows with the square of the command does not end within the test's timeout."""
    refusal_reason(command)


def test_what_is_too_involved_to_be_looked_through_is_refused_and_says_so() -> None:
    assert "several commands" in refusal_reason("$(" * 5_000 + "rm -rf /")
    assert refusal_reason("rm -rf /; " + "$(" * 5_000).startswith("It deletes /")


PIECES = st.sampled_from(
    [*"'\"\\$`(){}[]<>|&;#~*?!=/,\n \t", "$(", "${", "<<", "<<<", "$'", "rm", "-rf", "/", "sh -c", "eval", "find",
     "xargs", "-I", "parallel", ":::", "{}", "{2}",
     "EOF", "HOME", "IFS", ":-", "\u200b", "ｒ", "\x00", "\x1b[", "\ue001", "\ue010", "\ud800", "for", "in", "do",
     "[z-a]"]
)  # fmt: skip


@given(st.one_of(st.text(), st.lists(PIECES, max_size=60).map("".join)))
def test_any_text_at_all_gets_an_answer(text: str) -> None:
    reason = refusal_reason(text)
    assert reason == "" or reason.endswith(".")
    assert all(c.isprintable() or c == "\n" for c in printable_command(text))


@pytest.mark.thorough
@given(st.lists(st.sampled_from(["true", "ls -l", "echo 'a;b'", 'x="$y"', "cat <<< z", "# ;", "$(date)"]), max_size=6))
def test_nothing_harmless_before_it_hides_it(before: list[str]) -> None:
    assert refusal_reason("\n".join([*before, "rm -rf /"]))


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        ("ls -l", "ls -l"),
        ("r\u200bm x", "r\\u200bm x"),
        ("ｒｍ x", "\\uff52\\uff4d x"),
        ("a\x1b[31mb\x00\tc", "a\\x1b[31mb\\x00\\tc"),
        ("echo \u202eabc", "echo \\u202eabc"),
        ("ls \\\n -l", "ls  -l"),
        ("ls\n\n\n\n\nrm x", "ls\n\nrm x"),
        ("ls" + " " * 400 + "; rm x", "ls [400 spaces] ; rm x"),
        ("echo grüße", "echo grüße"),
        ("\udc80", "\\udc80"),
    ],
)
def test_what_a_person_is_shown_hides_nothing(command: str, shown: str) -> None:
    assert printable_command(command) == shown
