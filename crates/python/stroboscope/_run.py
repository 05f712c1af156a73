"""An opened run: its headline, its findings, its tables."""

from __future__ import annotations

import json
import os
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Callable, TypeVar, cast

from stroboscope import _flame, _format, _html, _native
from stroboscope._table import Table

# As much as a frame in a notebook carries, and far more than a person reads.
_MOST_ROWS = 1_000_000
_MOST_BYTES = 1 << 30

_Kind = TypeVar("_Kind")


@dataclass(frozen=True)
class Evidence:
    """Something seen that supports a finding."""

    text: str
    #: The table that shows it, and which of its rows.
    table: str | None = None
    rows: tuple[int, ...] = ()
    #: Events that show it: ``id`` in the SQL table ``event``.
    events: tuple[int, ...] = ()


@dataclass(frozen=True)
class Fix:
    """Advice, and the edit itself where it can be written down."""

    text: str
    edit: str | None = None
    #: Stable name of the change, such as ``parallel-map``.
    change: str = ""
    #: The predicted gain in words; ``None`` where it cannot be told, and ``why``.
    gain: str | None = None
    speedup_if_fixed: float | None = None
    speedup_low: float | None = None
    speedup_high: float | None = None
    #: The row of the table ``what_if`` that the gain comes from.
    what_if: str | None = None
    #: The step after it: ``low``, ``likely`` and ``high``.
    step_after_ms: dict[str, float] | None = None
    #: What bounds the step after it.
    then_limited_by: str | None = None
    why: str | None = None
    #: File and line to edit, where they are known.
    file: str | None = None
    line: int | None = None
    #: The edit as a diff of that file for ``git apply``, where it is certain.
    diff: str | None = None


@dataclass(frozen=True)
class Finding:
    """A problem: what it costs, how it shows, what to change, what that gives."""

    #: The rule that found it; ``strobe explain RULE`` says what it looks for.
    rule: str
    #: ``low``, ``medium`` or ``high``.
    severity: str
    #: One sentence, with the user's own names.
    title: str
    #: Time of a mean step that the problem takes.
    takes_ms_per_step: float
    #: Time of a mean step that the best edit saves; without a gain, the time the problem takes.
    cost_ms_per_step: float
    #: The figures in words, as in ``496 → about 13 ms (12–15): 34–41× faster``.
    gain: str
    #: Old step time over the predicted new one; ``None`` where no model can say.
    speedup_if_fixed: float | None
    speedup_low: float | None
    speedup_high: float | None
    #: The step after the best edit: ``low``, ``likely`` and ``high``.
    step_after_ms: dict[str, float] | None
    #: How sure, 0 to 1.
    confidence: float
    evidence: tuple[Evidence, ...] = field(repr=False)
    #: The most worthwhile first.
    fix: tuple[Fix, ...] = field(repr=False)
    #: Other rules that saw the same problem.
    symptoms: tuple[Finding, ...] = field(default=(), repr=False)

    def _repr_html_(self) -> str:
        return _html.document(_html.finding(None, self))


@dataclass(frozen=True)
class Steps:
    """The steps that statistics rest on. Without steps, ``count`` is 0 and times are ``None``."""

    count: int
    #: ``markers``, ``calls``, ``period`` or ``none``.
    found_by: str
    confidence: float
    #: What was taken for a step.
    marker: str | None = None
    warmup_skipped: int = 0
    #: Cut off by the end of the capture.
    partial: int = 0
    mean_ms: float | None = None
    median_ms: float | None = None
    p95_ms: float | None = None
    stdev_ms: float | None = None


@dataclass(frozen=True)
class Share:
    """A category's part of the step."""

    category: str
    ms_per_step: float
    #: Of the step, 0 to 1; all shares add to 1.
    share: float


@dataclass(frozen=True)
class NotChecked:
    """A rule that this profile could not answer, and what it lacks."""

    rule: str
    why: str


@dataclass(frozen=True)
class Note:
    """Damage, or something the reader had to guess."""

    kind: str
    count: int
    first: str


class Run:
    """One profiled run, opened by :func:`load`.

    >>> import stroboscope
    >>> run = stroboscope.load("testdata/captured/keras_fit")
    >>> run.findings[0].rule
    'input-serial-map'
    >>> run.sql("SELECT count(*) AS n FROM step").to_dicts()
    [{'n': 8}]

    In a notebook, a run shows itself. All of it may be used from several threads at once.
    """

    __slots__ = ("_report", "_session")

    def __init__(self, session: _native.Session) -> None:
        """Made by :func:`load`."""
        self._session = session
        self._report: dict[str, Any] | None = None

    @property
    def path(self) -> Path:
        """What was opened."""
        return Path(self._session.path)

    @property
    def name(self) -> str:
        """The file or folder that was taken."""
        return self._session.name

    @property
    def others(self) -> list[Path]:
        """Runs below :attr:`path` that were not taken, newest first."""
        return [Path(it) for it in self._session.others]

    @property
    def tables(self) -> list[str]:
        """The names of all tables; the docs of each are at :attr:`Table.docs`."""
        return _native.table_names()

    def table(self, name: str) -> Table:
        """Return a table, as ``strobe table PATH NAME`` prints it; ``run[name]`` is the same.

        >>> import stroboscope
        >>> run = stroboscope.load("testdata/captured/keras_fit")
        >>> run["step_time"].columns[:3]
        ['host', 'step', 'device']
        """
        return Table(self._session.table(name), name)

    __getitem__ = table

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names of the tables."""
        return iter(self.tables)

    def __contains__(self, name: object) -> bool:
        """Whether there is a table of that name."""
        return name in self.tables

    def _ipython_key_completions_(self) -> list[str]:
        return self.tables

    def sql(
        self, query: str, *, max_rows: int | None = _MOST_ROWS, max_seconds: float = 60.0
    ) -> Table:
        """Answer a query in SQLite's SQL, over all tables and the events themselves.

        What is there is listed by ``strobe explain``. A column has the narrowest type that holds
        its values; where two columns have one name, the second is called ``name_1``. A result cut
        off at ``max_rows`` (or a gigabyte) says so by a warning and by :attr:`Table.truncated`.

        >>> import stroboscope
        >>> run = stroboscope.load("testdata/captured/keras_fit")
        >>> top = run.sql("SELECT name, sum(dur_ps) AS ps FROM event GROUP BY 1 ORDER BY 2 DESC")
        >>> top.columns
        ['name', 'ps']
        """
        if max_seconds <= 0 or (max_rows is not None and max_rows < 0):
            raise ValueError("max_seconds must be above 0, and max_rows not below")
        rows = 2**62 if max_rows is None else max_rows
        native = self._session.sql(query, rows, _MOST_BYTES, max_seconds)
        if native.truncated:
            warnings.warn(
                f"the result was cut off at {len(native)} rows; see max_rows", stacklevel=2
            )
        return Table(native)

    def flame(
        self,
        of: str = "python",
        *,
        order: str = "left-heavy",
        step: int | None = None,
        thread: int | None = None,
        side: str | None = None,
    ) -> _flame.Flame:
        """Draw a flame graph: of the sampled Python stacks, or of ops by their name scopes.

        ``of`` is ``"python"`` or ``"scopes"``; ``order`` is ``"left-heavy"`` (calls of one function
        together, longest first) or ``"time"``. ``step`` shows one step instead of all. Python is
        that of the driving thread, unless ``thread`` is another's number; scopes are those of the
        device, where there is one, unless ``side`` says ``"host"``. The figures are those of the
        tables ``python_stack`` and ``scope_step``.

        >>> import stroboscope
        >>> run = stroboscope.load("testdata/captured/keras_fit")
        >>> run.flame("scopes", step=3).total_ms > 1
        True
        """
        return _flame.flame(self, of, order=order, step=step, thread=thread, side=side)

    def report(self) -> dict[str, Any]:
        """Return what ``strobe report PATH --format json`` prints, as a dict of your own."""
        report: dict[str, Any] = json.loads(self._session.report_json())
        return report

    def _known(self) -> dict[str, Any]:
        # Two threads may both make it: it is the same, and never changed.
        if self._report is None:
            self._report = self.report()
        return self._report

    @property
    def headline(self) -> str:
        """One sentence: how long a step takes, and what takes most of it."""
        return str(self._known()["headline"])

    @property
    def findings(self) -> list[Finding]:
        """What slows the run, the most expensive first."""
        return [_finding(it) for it in self._known()["findings"]]

    @property
    def steps(self) -> Steps:
        """How many steps there are and how long they take."""
        return _only_known(Steps, self._known()["steps"])

    @property
    def breakdown(self) -> list[Share]:
        """Where a mean step goes; empty without steps."""
        return [_only_known(Share, it) for it in self._known()["breakdown"]]

    @property
    def not_checked(self) -> list[NotChecked]:
        """Rules that this profile could not answer."""
        return [_only_known(NotChecked, it) for it in self._known()["not_checked"]]

    @property
    def notes(self) -> list[Note]:
        """What was damaged, or had to be guessed."""
        return [_only_known(Note, it) for it in self._known()["notes"]]

    def __repr__(self) -> str:
        """Show the headline and the findings."""
        lines = [f"Run({os.fspath(self.path)!r})", *textwrap.wrap(self.headline, 100)]
        for at, it in enumerate(self.findings, 1):
            lines.append(f"{at:2}  {it.rule}  {it.gain}")
            lines += textwrap.wrap(_format.sentence(it.title), 96, **_INDENT)
        if self.others:
            lines.append(f"The newest of {len(self.others) + 1} runs here; see .others")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return _html.run(self)


_INDENT: dict[str, Any] = {"initial_indent": "    ", "subsequent_indent": "    "}


def load(path: str | os.PathLike[str]) -> Run:
    """Open a profile, a run folder or a log folder; of several runs, the newest.

    It opens whatever ``strobe report`` does, and other threads run on meanwhile. Nothing is
    written beside the file, nothing is sent anywhere.

    >>> import stroboscope
    >>> stroboscope.load("nowhere")
    Traceback (most recent call last):
        ...
    stroboscope.NotFoundError: there is no such file or folder
      path: nowhere
    """
    return Run(_native.Session.open(path))


def _only_known(kind: Callable[..., _Kind], values: dict[str, Any]) -> _Kind:
    """Leave out what a later version of the report may have and this class has not."""
    known = {it.name for it in fields(cast("Any", kind))}
    return kind(**{name: it for name, it in values.items() if name in known})


def _fix(values: dict[str, Any]) -> Fix:
    where = values.get("where") or {}
    place = {"file": where.get("file"), "line": where.get("line")}
    return _only_known(Fix, {**values, **place})


def _finding(values: dict[str, Any]) -> Finding:
    evidence = (
        Evidence(it["text"], it["table"], tuple(it["rows"]), tuple(it["events"]))
        for it in values["evidence"]
    )
    parts = {
        "evidence": tuple(evidence),
        "fix": tuple(_fix(it) for it in values["fix"]),
        "symptoms": tuple(_finding(it) for it in values.get("symptoms", ())),
    }
    return _only_known(Finding, {**values, **parts})
