"""The text of a place in a program: the statement around it, and the call in short.

Taken apart beside the program's loop, and only where something new was noted.
"""

from __future__ import annotations

import ast
import linecache
import os
import re
import tokenize
from bisect import bisect_right
from typing import NamedTuple, Optional

# Longer files are not taken apart: that would hold Python's lock for too long.
LONGEST_SOURCE = 1 << 20
LONGEST_TEXT = 2000
LONGEST_CALL = 72

# A secret that somebody wrote into a program stays there, as `crates/redact` does it: given under a
# name that says so, or of a known shape.
_SECRET = re.compile(
    r"""(secret|passw|passphrase|pwd|api_?key|credential|auth|token|signature|_key|_pass)\w*["']?\s*"""
    r"""[=:]\s*\w{0,2}["']"""
    r"""|\b(AKIA|ASIA|AIza|eyJ|gh[opsur]_|github_pat_|glpat-|hf_|sk-|xox[a-z]-|npm_|nvapi-)[\w.-]{12,}"""
    r"""|://[^\s"'/]+@|[?&](sig|signature|x-amz-\w+|token|key)=|-----BEGIN""",
    re.IGNORECASE,
)


class Position(NamedTuple):
    """Where a call stands, and where it ends; Python before 3.11 knows only its line."""

    line: int
    end_line: Optional[int]
    end_col: Optional[int]


class Loop(NamedTuple):
    """A `for` or `while`: its first line, the last one of its body, and the text of its head."""

    line: int
    end_line: int
    text: str


class Source:
    """A file of the program, taken apart."""

    def __init__(self, text: str) -> None:
        self._lines = text.splitlines()
        self._statements: list[ast.stmt] = []
        try:
            self._statements = ast.parse(text).body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            # A notebook's cell with magic commands, as a rule: its lines are still worth having.
            pass
        self._firsts = [_whole(it)[0] for it in self._statements]

    @staticmethod
    def read(file: str) -> Optional[Source]:
        try:
            if os.path.isfile(file):
                if os.path.getsize(file) > LONGEST_SOURCE:
                    return None
                with tokenize.open(file) as source:
                    return Source(source.read())
            # A notebook's cells are known to Python's tracebacks alone.
            lines = linecache.getlines(file)
            return Source("".join(lines)) if lines else None
        except (OSError, SyntaxError, UnicodeError):
            return None

    def around(self, position: Position, kind: str) -> tuple[str, int, Position, Optional[str]]:
        """The statement's text, its first line, the call's exact place and its short form."""
        first, last, call = position.line, position.end_line or position.line, None
        at = bisect_right(self._firsts, position.line)
        if at > 0:
            last_line = position.end_line or position.line
            statement, nodes = _statement(self._statements[at - 1], position.line, last_line)
            if statement is not None:
                first, last = _extent(statement, position.line)
            node = _call_at(nodes, position, kind)
            if node is not None:
                call = _short(node)
                if position.end_col is None:
                    position = Position(position.line, node.end_lineno, node.end_col_offset)
        text = "\n".join(self._lines[first - 1 : last])
        if _SECRET.search(text):
            return "", position.line, position, None
        return text[:LONGEST_TEXT], first, position, call

    def loop_around(self, position: Position, function: str, first_line: int) -> Optional[Loop]:
        """The innermost loop of a function in which this is done again and again."""
        line = position.line
        at = bisect_right(self._firsts, line)
        if at == 0:
            return None
        loop: Optional[ast.stmt] = None
        # Of the module itself everything counts up to a function, of a function what is below it.
        is_inside = function == "<module>"
        nodes: list[ast.AST] = [self._statements[at - 1]]
        while nodes:
            node = nodes.pop()
            if isinstance(node, ast.stmt):
                first, last = _whole(node)
                if not first <= line <= last:
                    continue
                if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                    is_inside = node.name == function and first == first_line
                    loop = None
                elif isinstance(node, (ast.For, ast.AsyncFor, ast.While)) and is_inside:
                    if not any(_whole(it)[0] <= line <= _whole(it)[1] for it in node.orelse):
                        loop = node
            elif isinstance(node, _COMPREHENSIONS) and _holds(node, position):
                return None
            nodes.extend(ast.iter_child_nodes(node))
        if loop is None or not is_inside:
            return None
        first, last = _extent(loop, loop.lineno)
        text = "\n".join(self._lines[first - 1 : last])
        if _SECRET.search(text) or len(text) > LONGEST_TEXT:
            text = ""
        body: list[ast.stmt] = getattr(loop, "body", [])
        return Loop(first, _whole(body[-1])[1], text)


_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def _holds(node: ast.expr, position: Position) -> bool:
    """Whether a comprehension is around a call, by where the call ends."""
    end = position.end_line or position.line, position.end_col or 0
    if position.end_col is None:
        return node.lineno <= position.line <= (node.end_lineno or 0)
    begin = node.lineno, node.col_offset
    return begin < end <= (node.end_lineno or 0, node.end_col_offset or 0)


_COMPOUND = tuple(
    getattr(ast, it)
    for it in (
        *("FunctionDef", "AsyncFunctionDef", "ClassDef", "For", "AsyncFor", "While", "If", "With"),
        *("AsyncWith", "Try", "TryStar", "Match"),
    )
    if hasattr(ast, it)
)


def _statement(
    tree: ast.AST, line: int, end_line: int
) -> tuple[Optional[ast.stmt], list[ast.Call]]:
    """The innermost statement around these lines, and the calls that end in it."""
    innermost, calls, at = None, [], [tree]
    while at:
        node = at.pop()
        if isinstance(node, ast.stmt):
            first, last = _whole(node)
            if not first <= line <= end_line <= last:
                continue
            innermost = node
        elif (
            isinstance(node, ast.Call)
            and line <= (node.end_lineno or 0)
            and node.lineno <= end_line
        ):
            calls.append(node)
        at.extend(ast.iter_child_nodes(node))
    return innermost, calls


def _whole(node: ast.stmt) -> tuple[int, int]:
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    first = min([node.lineno, *(it.lineno for it in decorators)])
    return first, node.end_lineno or node.lineno


def _extent(node: ast.stmt, line: int) -> tuple[int, int]:
    """The statement's lines; of one that has others inside, those of its head."""
    first, last = _whole(node)
    body: list[ast.stmt] = getattr(node, "body", [])
    if isinstance(node, _COMPOUND) and body and isinstance(body[0], ast.stmt):
        begins = _whole(body[0])[0]
        last = max(first, begins - 1) if begins > first else first
        # Up to the end of what the head says, not to the comments below it.
        heads = [it for it in ast.iter_child_nodes(node) if not isinstance(it, ast.stmt)]
        ends = [getattr(it, "end_lineno", None) or 0 for it in heads]
        last = min(last, max([*ends, node.lineno, line]))
    return first, last


def _call_at(calls: list[ast.Call], position: Position, kind: str) -> Optional[ast.Call]:
    if position.end_col is not None:
        wanted = position.end_line, position.end_col
        ends = [it for it in calls if (it.end_lineno, it.end_col_offset) == wanted]
        return ends[0] if len(ends) == 1 else None
    # Older Pythons know the line only: enough where one call of that name is there.
    named = [it for it in calls if _callee(it).rsplit(".", 1)[-1] == kind.rsplit(".", 1)[-1]]
    named = [it for it in named if it.lineno <= position.line <= (it.end_lineno or 0)]
    return named[0] if len(named) == 1 else None


def _callee(call: ast.Call) -> str:
    """`ds.map`, `tf.data.Dataset.range`; of a call's result `.map`."""
    names, it = [], call.func
    while isinstance(it, ast.Attribute):
        names.append(it.attr)
        it = it.value
    names.append(it.id if isinstance(it, ast.Name) else "")
    return ".".join(reversed(names))


def _short(call: ast.Call) -> str:
    """`ds.map(augment)`: what is long is left out."""
    arguments = []
    for it in (*call.args, *call.keywords):
        value = ast.unparse(it)
        arguments.append(value if len(value) <= 32 and "\n" not in value else "…")
    callee = _callee(call)
    short = "%s(%s)" % (callee, ", ".join(arguments))
    return short if len(short) <= LONGEST_CALL else "%s(%s)" % (callee, "…")
