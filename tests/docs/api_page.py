"""docs/reference/api.md, made of the source of what `from hummingbird import …` offers."""

import ast
import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import ModuleType

import hummingbird

HEAD = """\
# The library's names

Made of the source by `make docs`. These names are public: `from hummingbird import Agent`. Every other module and name
is private and may change. [In Python](../library.md) shows how to use them, [ten examples](../examples.md) for what.
"""


def page() -> str:
    return "\n".join([HEAD, *(part for name in hummingbird.__all__ if name[0] != "_" for part in _describe(name))])


def _describe(name: str) -> Iterator[str]:
    module = import_module(getattr(hummingbird, name).__module__)
    node = _find(module, name)
    yield f"## {name}\n"
    if isinstance(node, ast.ClassDef):
        yield from _describe_class(node)
    else:
        yield from _describe_function(node)


def _find(module: ModuleType, name: str) -> ast.ClassDef | ast.FunctionDef:
    tree = ast.parse(Path(inspect.getfile(module)).read_text(encoding="utf-8"))
    found = [one for one in tree.body if isinstance(one, ast.ClassDef | ast.FunctionDef) and one.name == name]
    return found[-1]  # the overloads of a function stand before it


def _describe_class(node: ast.ClassDef) -> Iterator[str]:
    yield _docstring(node)
    fields = [
        ast.unparse(one)
        for one in node.body
        if isinstance(one, ast.AnnAssign | ast.Assign) and not ast.unparse(one).startswith("_")
    ]
    if fields:
        yield "```text\n" + "\n".join(fields) + "\n```\n"
    methods = {one.name: one for one in node.body if isinstance(one, ast.FunctionDef | ast.AsyncFunctionDef)}
    for name, method in methods.items():
        if name == "__init__" or name[0] != "_":
            yield from _describe_function(method, f"{node.name}." if name != "__init__" else "")


def _describe_function(node: ast.FunctionDef | ast.AsyncFunctionDef, owner: str = "") -> Iterator[str]:
    is_property = any(ast.unparse(one) == "property" for one in node.decorator_list)
    start = "async def" if isinstance(node, ast.AsyncFunctionDef) else "property" if is_property else "def"
    given = "" if is_property else f"({_arguments(node.args)})"
    back = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    yield f"```text\n{start} {owner}{node.name}{given}{back}\n```\n"
    yield _docstring(node)


def _arguments(arguments: ast.arguments) -> str:
    return ast.unparse(arguments).removeprefix("self, ").removeprefix("self")


def _docstring(node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    """The first paragraph as text, and what follows as it is written."""
    first, _, rest = (ast.get_docstring(node) or "").partition("\n\n")
    return "\n\n".join(filter(None, [first.replace("\n", " "), rest and f"```text\n{rest}\n```"])) + "\n"
