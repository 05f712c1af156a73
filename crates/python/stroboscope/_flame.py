"""A flame graph for notebooks: sampled Python stacks, or ops by their name scopes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from html import escape
from typing import TYPE_CHECKING, Any

from stroboscope import _format, _html

if TYPE_CHECKING:
    from stroboscope._run import Run

_LINE = 20
# Of the whole width: narrower ones nobody could read or point at.
_NARROWEST = 0.002
_NAMED = 0.02
_DEEPEST = 40


@dataclass
class _Node:
    name: str
    place: str = ""
    colour: str = "idle"
    ps: int = 0
    self_ps: int = 0
    start: int = 0
    key: str = ""
    children: list[_Node] = field(default_factory=list)
    known: dict[str, _Node] = field(default_factory=dict)


class Flame:
    """A flame graph, made by :meth:`Run.flame`. In a notebook it shows itself.

    Callers are above what they call, each as wide as its time.
    """

    __slots__ = ("_root", "_title")

    def __init__(self, root: _Node, title: str) -> None:
        """Made by :meth:`Run.flame`."""
        self._root = root
        self._title = title

    @property
    def total_ms(self) -> float:
        """How much time it shows."""
        return self._root.ps / 1e9

    def __repr__(self) -> str:
        """Show what takes a hundredth or more, as an indented list."""
        lines = [self._title]

        def add(node: _Node, depth: int) -> None:
            for it in node.children:
                if it.ps * 100 >= self._root.ps:
                    share = _format.percent(it.ps / self._root.ps)
                    place = f"  {it.place}" if it.place else ""
                    lines.append(f"{'  ' * depth}{share:>5}  {it.name}{place}")
                    add(it, depth + 1)

        add(self._root, 0)
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        if self._root.ps == 0:
            return _html.document(_html.p(self._title))
        bars: list[str] = []
        levels = self._bars(self._root, 0.0, 0, bars)
        label = escape(self._title)
        return _html.document(
            wide=True,
            body=f"{_html.p(self._title, 'verdict')}"
            f'<div class="flame" role="img" aria-label="{label}" '
            f'style="height:{levels * _LINE}px">{"".join(bars)}</div>',
        )

    def _bars(self, node: _Node, left: float, level: int, bars: list[str]) -> int:
        """Draw what is inside a node; say how many levels that takes."""
        levels = level
        if level >= _DEEPEST:
            return levels
        for it in node.children:
            share = it.ps / self._root.ps
            if share >= _NARROWEST:
                time = _format.time(it.ps / 1e9)
                title = f"{it.name}\n{it.place}\n{time}, {_format.percent(share)}"
                title += f"; self {_format.time(it.self_ps / 1e9)}"
                # Where there is no room for a name, the edge alone says that something is there.
                name, padding = (it.name, "") if share >= _NAMED else ("", "padding:0;")
                bars.append(
                    f'<span title="{escape(title)}" style="left:{left * 100:.3f}%;{padding}'
                    f"width:calc({share * 100:.3f}% - 1px);top:{level * _LINE}px;"
                    f'border-color:{_html.colour(it.colour)}">{escape(name)}</span>'
                )
                levels = max(levels, self._bars(it, left, level + 1, bars), level + 1)
            left += share
        return levels


def flame(
    run: Run, of: str, *, order: str, step: int | None, thread: int | None, side: str | None
) -> Flame:
    """Make one of the tables ``python_stack`` or ``scope_step``."""
    if of not in ("python", "scopes"):
        raise ValueError(f"of must be 'python' or 'scopes', not {of!r}")
    if order not in ("left-heavy", "time"):
        raise ValueError(f"order must be 'left-heavy' or 'time', not {order!r}")
    if of == "python":
        return _of_python(run, order, step, thread)
    return _of_scopes(run, order, step, side)


def _of_python(run: Run, order: str, step: int | None, thread: int | None) -> Flame:
    rows = run["python_stack"].to_dicts()
    if not rows:
        title = "This run has no sampled Python stacks: strobe run takes them while it captures."
        return Flame(_Node("all"), title)
    if thread is None:
        lane = (rows[0]["pid"], rows[0]["lane"])
        rows = [it for it in rows if (it["pid"], it["lane"]) == lane]
        who = "driving thread" if rows[0]["role"] == "driving" else f"thread {rows[0]['thread']}"
    else:
        rows = [it for it in rows if it["thread"] == thread]
        who = f"thread {thread}"
    rows = _of_steps(rows, step)
    items = (
        _Item(
            id=it["call"],
            parent=it["parent"],
            key=f"{it['file']}\n{it['function']}",
            name=it["function"],
            place=it["file"] if it["line"] is None else f"{it['file']}:{it['line']}",
            colour="runtime" if not it["own"] else "input" if it["role"] == "input" else "python",
            ps=it["dur_ps"],
            self_ps=it["self_ps"],
            start=it["start_ps"],
        )
        for it in rows
    )
    root = _tree(items, order)
    return Flame(root, f"Python of the {who}: {_sampled(root)}{_in_step(step)}")


def _of_steps(rows: list[dict[str, Any]], step: int | None) -> list[dict[str, Any]]:
    """One step, or all; what is outside of steps only where none are known, as on the page."""
    if step is not None:
        return [it for it in rows if it["step"] == step]
    return [it for it in rows if it["step"] is not None] or rows


def _sampled(root: _Node) -> str:
    return f"{_format.time(root.ps / 1e9)} sampled" if root.ps else "nothing was sampled"


def _in_step(step: int | None) -> str:
    return "" if step is None else f" in step {step}"


def _of_scopes(run: Run, order: str, step: int | None, side: str | None) -> Flame:
    rows = run["scope_step"].to_dicts()
    sides = {it["side"] for it in rows}
    if not rows:
        return Flame(_Node("all"), "No op of this run has name scopes.")
    side = side or ("device" if "device" in sides else "host")
    if side not in ("host", "device"):
        raise ValueError(f"side must be 'host' or 'device', not {side!r}")
    rows = _of_steps([it for it in rows if it["side"] == side], step)
    rows.sort(key=lambda it: (it["start_ps"], it["depth"]))

    def ident(it: dict[str, Any], scope: str) -> tuple[Any, ...]:
        return (it["host"], it["step"], scope)

    items = (
        _Item(
            id=ident(it, it["scope"]),
            # What has no scope lies beside the outermost scopes.
            parent=None if it["depth"] < 2 else ident(it, it["parent"]),
            key=it["scope"],
            name="without a scope" if it["scope"] == "/" else it["scope"].rsplit("/", 1)[-1],
            place="" if it["scope"] == "/" else it["scope"],
            colour="compute",
            ps=it["self_ps"] if it["scope"] == "/" else it["total_ps"],
            self_ps=it["self_ps"],
            start=it["start_ps"],
        )
        for it in rows
    )
    root = _tree((it for it in items if it.ps > 0), order)
    return Flame(root, f"{_format.time(root.ps / 1e9)} of ops on the {side}{_in_step(step)}")


@dataclass(frozen=True)
class _Item:
    id: Any
    parent: Any
    key: str
    name: str
    place: str
    colour: str
    ps: int
    self_ps: int
    start: int


def _tree(items: Iterable[_Item], order: str) -> _Node:
    """Join what is of one key inside the same: neighbours in order of time, else all of it."""
    root = _Node("all")
    of: dict[Any, _Node] = {}
    for it in items:
        around = root if it.parent is None else of.get(it.parent)
        if around is None:
            continue
        if order == "time":
            last = around.children[-1] if around.children else None
            node = last if last is not None and last.key == it.key else None
        else:
            node = around.known.get(it.key)
        if node is None:
            node = _Node(it.name, it.place, it.colour, start=it.start, key=it.key)
            around.children.append(node)
            around.known[it.key] = node
        elif node.place != it.place:
            # Several lines of one function: only its file is common to all.
            node.place = it.key.split("\n", 1)[0]
        node.ps += it.ps
        node.self_ps += it.self_ps
        of[it.id] = node
        if around is root:
            root.ps += it.ps
    if order != "time":
        _sort(root)
    return root


def _sort(node: _Node) -> None:
    node.children.sort(key=lambda it: -it.ps)
    for it in node.children:
        _sort(it)
