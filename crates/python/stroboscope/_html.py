"""Runs, findings and tables as HTML for notebooks.

No scripts and nothing from elsewhere. What came out of a profile is escaped. Text has the
notebook's own colours, so it reads on light and on dark ground.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import TYPE_CHECKING

from stroboscope import _format

if TYPE_CHECKING:
    from stroboscope._run import Finding, Run, Share

# Category, on light ground, on dark ground: the same in every outlet.
COLOURS = {
    "compute": ("#2A6FDB", "#6EA8FF"),
    "collective": ("#2F8F4E", "#62C585"),
    "transfer_in": ("#0E9AA0", "#4FD0D4"),
    "transfer_out": ("#79B8BC", "#9ADFE0"),
    "input": ("#E08A00", "#FFB547"),
    "python": ("#C23B75", "#F27BAE"),
    "compile": ("#7A52D6", "#B197FC"),
    "runtime": ("#64748B", "#94A3B8"),
    "output": ("#A98500", "#D9BC4A"),
    "idle": ("#D5DAE1", "#3A424E"),
}

# Where notebooks say that they are dark: JupyterLab, VS Code, Colab; else the system does.
_DARK = (
    '[data-jp-theme-light="false"] .strobe',
    ".vscode-dark .strobe",
    "html[theme=dark] .strobe",
)
_LIGHT = ('[data-jp-theme-light="true"] .strobe', ".vscode-light .strobe")


def _colours(column: int) -> str:
    return ";".join(f"--{name}:{both[column]}" for name, both in COLOURS.items())


_STYLE = f"""
.strobe{{{_colours(0)}}}
@media (prefers-color-scheme:dark){{.strobe{{{_colours(1)}}}}}
{",".join(_LIGHT)}{{{_colours(0)}}}
{",".join(_DARK)}{{{_colours(1)}}}
.strobe{{max-width:60em;font-size:13px;line-height:1.5;font-variant-numeric:tabular-nums}}
.strobe.wide{{max-width:none}}
.strobe p{{margin:2px 0}}
.strobe .faint{{opacity:.7}}
.strobe .verdict{{font-size:15px;font-weight:600;margin:4px 0}}
.strobe .bar{{display:flex;height:18px;margin:8px 0 4px;overflow:hidden}}
.strobe .bar span{{border-right:1px solid transparent;background-clip:padding-box}}
.strobe .legend span{{margin-right:1.2em;white-space:nowrap}}
.strobe .legend i{{display:inline-block;width:10px;height:10px;margin-right:5px}}
.strobe .finding{{border-top:1px solid rgba(128,128,128,.35);margin-top:10px;padding-top:6px}}
.strobe .head{{display:flex;justify-content:space-between;gap:2em}}
.strobe pre{{margin:2px 0 2px 1.5em;padding:4px 8px;background:rgba(128,128,128,.12);\
color:inherit;overflow-x:auto}}
.strobe .scroll{{overflow-x:auto}}
.strobe table{{border-collapse:collapse;border:0}}
.strobe th,.strobe td{{text-align:left;white-space:nowrap;padding:2px 10px 2px 0;\
background:none;border:0;border-bottom:1px solid rgba(128,128,128,.25)}}
.strobe .n{{text-align:right}}
.strobe .flame{{position:relative;overflow:hidden}}
.strobe .flame span{{position:absolute;height:19px;line-height:19px;padding:0 3px;\
box-sizing:border-box;overflow:hidden;white-space:nowrap;text-overflow:ellipsis;font-size:12px;\
border:0 solid;border-left-width:2px;background:rgba(128,128,128,.16)}}
"""


def document(body: str, *, wide: bool = False) -> str:
    """Wrap a piece, with the style it needs."""
    name = "strobe wide" if wide else "strobe"
    return f'<div class="{name}"><style>{_STYLE}</style>{body}</div>'


def run(it: Run) -> str:
    """The headline, the step as one bar, the findings, what was not checked."""
    facts = it.report()["run"]["facts"]
    line = [str(it.path), *facts]
    parts = [p(" · ".join(line), "faint"), p(it.headline, "verdict"), _bar(it.breakdown)]
    parts += [finding(at, found) for at, found in enumerate(it.findings, 1)]
    if it.others:
        others = ", ".join(str(other) for other in it.others[:5])
        parts.append(p(f"The newest of {len(it.others) + 1} runs here; others: {others}", "faint"))
    for note in it.notes:
        parts.append(p(f"Note: {_format.thousands(note.count)} {note.kind}: {note.first}"))
    not_checked = [f"{each.rule} ({each.why})" for each in it.not_checked]
    if not_checked:
        parts.append(
            f'<details class="faint"><summary>Not checked: {len(not_checked)} rules</summary>'
            f"{p('; '.join(not_checked))}</details>"
        )
    return document("".join(parts))


def _bar(breakdown: Iterable[Share]) -> str:
    shares = sorted((it for it in breakdown if it.share > 0), key=lambda it: -it.share)
    if not shares:
        return ""
    pieces, legend = [], []
    for it in shares:
        label = f"{it.category} {_format.percent(it.share)}"
        title = escape(f"{label}, {_format.time(it.ms_per_step)} a step")
        fill = _fill(it.category)
        pieces.append(f'<span title="{title}" style="width:{it.share * 100:.3f}%;{fill}"></span>')
        legend.append(f'<span title="{title}"><i style="{fill}"></i>{escape(label)}</span>')
    said = escape(", ".join(f"{it.category} {_format.percent(it.share)}" for it in shares))
    return (
        f'<div class="bar" role="img" aria-label="{said}">{"".join(pieces)}</div>'
        f'<div class="legend">{" ".join(legend)}</div>'
    )


def colour(category: str) -> str:
    """Give a category's colour, on whichever ground."""
    return f"var(--{category},{COLOURS[category][0]})"


def _fill(category: str) -> str:
    # A notebook that drops the style still shows the colours for light ground.
    if category in COLOURS and category != "idle":
        return f"background-color:{colour(category)}"
    # Unknown is drawn as unknown.
    hatch = "rgba(128,128,128,.55) 0 2px,transparent 2px 6px"
    return f"background:repeating-linear-gradient(135deg,{hatch}),{colour('idle')}"


def finding(at: int | None, it: Finding) -> str:
    """One finding: its gain at the right, its evidence, the edit as code."""
    number = "" if at is None else f"{at}&ensp;"
    head = f'<div class="head"><b>{number}{escape(it.rule)}</b><b>{escape(it.gain)}</b></div>'
    parts = [head, p(_format.sentence(it.title))]
    # What hardly matters gets a line, unless it is all there is to say.
    if at is None or at == 1 or it.severity != "low":
        parts += [p(_format.sentence(each.text), "faint") for each in it.evidence]
        for fix in it.fix:
            parts.append(p(f"→ {fix.text}{':' if fix.edit else ''}"))
            if fix.edit:
                parts.append(f"<pre>{escape(fix.edit)}</pre>")
        for also in it.symptoms:
            text = f"Also triggers: {also.rule}"
            parts.append(p(text, "faint"))
    return f'<div class="finding">{"".join(parts)}</div>'


def table(
    *,
    headline: str,
    doc: str,
    columns: Sequence[str],
    docs: dict[str, str],
    numeric: Sequence[bool],
    rows: Iterable[Sequence[str]],
    n_more: int,
) -> str:
    """The first rows; what a column means shows when the pointer is on its name."""
    marks = [' class="n"' if it else "" for it in numeric]
    head = "".join(
        f'<th{mark} title="{escape(docs.get(name, ""))}">{escape(name)}</th>'
        for name, mark in zip(columns, marks)
    )
    body = "".join(
        f"<tr>{''.join(_td(it, mark) for it, mark in zip(row, marks))}</tr>" for row in rows
    )
    more = p(f"… {_format.thousands(n_more)} more rows", "faint") if n_more > 0 else ""
    return document(
        wide=True,
        body=f"{p(headline, 'verdict')}{p(doc, 'faint') if doc else ''}"
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'
        f"</div>{more}",
    )


# Longer texts are there when the pointer is on them.
_WIDEST_TEXT = 48


def _td(text: str, mark: str) -> str:
    short = _format.shorten(text, _WIDEST_TEXT)
    title = f' title="{escape(text)}"' if short != text else ""
    return f"<td{mark}{title}>{escape(short)}</td>"


def p(text: str, name: str = "") -> str:
    """A text, escaped."""
    mark = f' class="{name}"' if name else ""
    return f"<p{mark}>{escape(text)}</p>"
