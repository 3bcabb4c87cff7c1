"""Write permission rules in one line: `terminal(git diff *)`, `file_edit(docs/*)`, `mcp_time_now`.

The pattern in parentheses is a glob for the command of a terminal, for the path of a file tool, and for all arguments
of any other tool. A pattern that ends in " *" also covers the text without anything behind it: `git diff *` covers
`git diff`. Names that other agents use for the same tools (Bash, Edit, Read) are understood.
"""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from hummingbird.core.errors import UsageError
from hummingbird.core.permissions import PermissionAction, PermissionRule
from hummingbird.core.text import shorten_line
from hummingbird.core.tool_spec import ToolSpec

_TEXT = re.compile(r"\s*([A-Za-z0-9_.*-]+)\s*(?:\((.*)\))?\s*\Z", re.DOTALL)
_ALIASES = {
    "bash": "terminal", "shell": "terminal", "edit": "file_edit", "write": "file_edit",
    "read": "file_read", "grep": "file_search", "glob": "file_search",
}  # fmt: skip
_ARGUMENTS = {"terminal": "command", "file_edit": "path", "file_read": "path", "file_search": "path"}
_SYNTAX = "write it like 'terminal(git diff *)', 'file_edit(docs/*)' or a tool's name"

# Programs that run other programs or code that they are given: a rule for all their arguments would allow everything.
_RUNNERS = frozenset(
    (
        *("awk", "bash", "busybox", "chroot", "command", "csh", "curl", "dash", "dd", "doas", "docker", "env", "eval"),
        *("exec", "expect", "fd", "find", "fish", "flock", "gawk", "gdb", "ionice", "ksh", "lua", "make", "mawk", "nc"),
        *("ncat", "nice", "node", "nohup", "nsenter", "parallel", "perl", "php", "pkexec", "podman", "powershell"),
        *(
            "pwsh",
            "python",
            "python3",
            "rm",
            "rsync",
            "ruby",
            "script",
            "sed",
            "setsid",
            "sh",
            "socat",
            "source",
            "ssh",
        ),
        *("stdbuf", "strace", "su", "sudo", "systemd-run", "tar", "tclsh", "tee", "time", "timeout"),
        *("tmux", "unshare", "vi", "vim", "watch", "wget", "xargs", "zsh"),
    )
)
# Programs whose second word says what they do.
_WITH_SUBCOMMANDS = frozenset(
    (
        *("apt", "apt-get", "brew", "cargo", "dnf", "gem", "gh", "git", "glab", "go", "gradle", "helm", "kubectl"),
        *("mvn", "npm", "oc", "pip", "pip3", "pnpm", "poetry", "rustup", "systemctl", "terraform", "tox", "uv", "yarn"),
    )
)
_RUNNING_SUBCOMMANDS = frozenset(["exec", "run", "x", "dlx", "tool", "config", "alias", "-c"])
_SUBCOMMAND = re.compile(r"[a-z][a-z0-9-]*")
_PLAIN_COMMAND = re.compile(r"[A-Za-z0-9 _./:=@%+,'\"\[\]{}~^-]+")


def rules_from_text(action: PermissionAction, text: str) -> tuple[PermissionRule, ...]:
    """Return the rules that a line stands for: two where " *" may also be nothing.

    Raises UsageError for what is no rule, saying how to write one.
    """
    found = _TEXT.match(text)
    if found is None:
        raise UsageError(f"{shorten_line(text, 80)!r} is no rule: {_SYNTAX}.")
    tool, pattern = _ALIASES.get(found[1].lower(), found[1]), found[2]
    if pattern is None or not pattern.strip():
        return (PermissionRule(action, tool, name=text.strip()),)
    pattern = pattern.strip()
    if pattern.endswith(":*"):
        pattern = f"{pattern[:-2].rstrip()} *"
    texts = [pattern, pattern[:-2].rstrip()] if pattern.endswith(" *") and pattern[:-2].strip() else [pattern]
    argument = _ARGUMENTS.get(tool, "")
    return tuple(PermissionRule(action, tool, argument, each, name=text.strip()) for each in texts)


def suggest_rule(spec: ToolSpec, arguments: Mapping[str, Any]) -> str:
    """Return a rule that covers this call and others like it; empty if no such rule is safe to offer."""
    if spec.name == "terminal":
        pattern = _suggest_command_pattern(str(arguments.get("command", "")))
        return f"terminal({pattern})" if pattern else ""
    return spec.name if spec.toolset not in {"terminal", "workspace"} else ""


def _suggest_command_pattern(command: str) -> str:
    if not _PLAIN_COMMAND.fullmatch(command) or ".." in command:
        return ""
    try:
        words = shlex.split(command)
    except ValueError:
        return ""
    if not words or words[0] in _RUNNERS or not re.fullmatch(r"[A-Za-z0-9_-]+", words[0]):
        return ""
    if words[0] not in _WITH_SUBCOMMANDS:
        return f"{words[0]} *"
    if len(words) < 2 or not _SUBCOMMAND.fullmatch(words[1]) or words[1] in _RUNNING_SUBCOMMANDS:
        return ""
    return f"{words[0]} {words[1]} *"
