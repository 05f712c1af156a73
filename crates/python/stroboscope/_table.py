"""A table that every data-frame library takes."""

from __future__ import annotations

import shutil
import textwrap
from typing import TYPE_CHECKING, Any, Callable

from stroboscope import _format, _html

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

    from stroboscope import _native

# What a person looks at; the rest is for data frames.
_SHOWN_ROWS = 10
_SHOWN_ROWS_HTML = 20
_WIDEST_TEXT = 28


class Table:
    """Columns of equal length, as Arrow keeps them. Unknown is null, never 0.

    Libraries that know Arrow's PyCapsule interface take a table without copying it:

    >>> import stroboscope, pyarrow
    >>> run = stroboscope.load("testdata/captured/keras_fit")
    >>> table = run.table("step_time")
    >>> pyarrow.table(table).num_rows == len(table)
    True

    Polars does (``polars.DataFrame(table)``), so do pandas 3 (``pandas.DataFrame.from_arrow``),
    DuckDB, Ray, Daft and others; :meth:`to_pandas`, :meth:`to_polars` and :meth:`to_arrow` say it
    shorter. Without any of them, :meth:`to_dicts` gives plain Python.
    """

    __slots__ = ("_name", "_native")

    def __init__(self, native: _native.Table, name: str | None = None) -> None:
        """Made by :meth:`Run.table` and :meth:`Run.sql`."""
        self._native = native
        self._name = name

    @property
    def name(self) -> str | None:
        """The table's name; ``None`` for the answer to a query."""
        return self._name

    @property
    def columns(self) -> list[str]:
        """The names of the columns; each carries its unit (``dur_ps``, ``self_share``)."""
        return self._native.columns

    @property
    def doc(self) -> str:
        """What the table is about; empty for the answer to a query."""
        return self._native.doc

    @property
    def docs(self) -> dict[str, str]:
        """What each column means; empty for the answer to a query.

        >>> import stroboscope
        >>> run = stroboscope.load("testdata/captured/keras_fit")
        >>> run["op_time"].docs["side"]
        'Where it ran: host or device.'
        """
        docs = self._native.docs
        return {it: docs[it] for it in self.columns if it in docs}

    @property
    def truncated(self) -> bool:
        """Whether a query had more rows than its limits let through."""
        return self._native.truncated

    def __len__(self) -> int:
        """Count the rows."""
        return len(self._native)

    def to_dicts(self, limit: int | None = None) -> list[dict[str, Any]]:
        """Return the rows, or the first ``limit``, as plain Python; unknown is ``None``.

        >>> import stroboscope
        >>> run = stroboscope.load("testdata/captured/keras_fit")
        >>> run.sql("SELECT 1 AS one, NULL AS unknown").to_dicts()
        [{'one': 1, 'unknown': None}]
        """
        columns = self.columns
        count = len(self) if limit is None else max(limit, 0)
        return [dict(zip(columns, row)) for row in self._native.head(count)]

    def to_arrow(self) -> pyarrow.Table:
        """Return a ``pyarrow.Table`` over the same memory. Needs pyarrow 14 or later."""
        import pyarrow

        return pyarrow.table(self)

    def to_polars(self) -> polars.DataFrame:
        """Return a ``polars.DataFrame``. Needs Polars 1.3 or later."""
        import polars

        return polars.DataFrame(self)

    def to_pandas(self, dtype_backend: str = "pyarrow") -> pandas.DataFrame:
        """Return a ``pandas.DataFrame``. Needs pandas 2 or later, and pyarrow.

        ``dtype_backend`` is what it is elsewhere in pandas: ``"pyarrow"`` keeps the columns where
        they are, ``"numpy_nullable"`` copies them into pandas' own. With both, whole numbers stay
        whole where some are unknown: picoseconds do not fit into a float.
        """
        import pandas

        return self.to_arrow().to_pandas(types_mapper=_types_mapper(pandas, dtype_backend))

    def __arrow_c_schema__(self) -> object:
        """Hand over the schema by Arrow's PyCapsule interface."""
        return self._native.__arrow_c_schema__()

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Hand over the columns by Arrow's PyCapsule interface."""
        return self._native.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        """Show the first rows, as wide as the terminal."""
        return "\n".join([self._headline(), *self._grid()])

    def _headline(self) -> str:
        rows, columns = len(self), len(self.columns)
        size = f"{_format.thousands(rows)} {'row' if rows == 1 else 'rows'}"
        size += f" × {columns} {'column' if columns == 1 else 'columns'}"
        return f"{self._name or 'query'}: {size}{', cut off' if self.truncated else ''}"

    def _grid(self) -> list[str]:
        width = shutil.get_terminal_size((100, 24)).columns
        shown = self._native.head(_SHOWN_ROWS)
        cells = [[_format.shorten(_cell(it), _WIDEST_TEXT) for it in row] for row in shown]
        lines = [""] * (len(cells) + 1)
        columns, left_out = self.columns, 0
        for at, (name, right) in enumerate(zip(columns, self._native.numeric)):
            column = [name, *(row[at] for row in cells)]
            widest = max(map(len, column))
            if at > 0 and len(lines[0]) + 2 + widest > width:
                left_out = len(columns) - at
                break
            gap = "  " if at else ""
            for row, text in enumerate(column):
                lines[row] += gap + (text.rjust(widest) if right else text.ljust(widest))
        more = []
        if len(self) > len(cells):
            more.append(f"{_format.thousands(len(self) - len(cells))} more rows")
        if left_out:
            more.append(f"{left_out} more columns: {', '.join(columns[-left_out:])}")
        tail = textwrap.wrap(f"… {'; '.join(more)}", width) if more else []
        return [it.rstrip() for it in lines] + tail

    def _repr_html_(self) -> str:
        rows = self._native.head(_SHOWN_ROWS_HTML)
        return _html.table(
            headline=self._headline(),
            doc=self.doc.split("\n", 1)[0],
            columns=self.columns,
            docs=self.docs,
            numeric=self._native.numeric,
            rows=[[_format.shorten(_cell(it), 2000) for it in row] for row in rows],
            n_more=len(self) - len(rows),
        )


def _cell(value: object) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, bytes):
        return f"{len(value)} bytes"
    return " ".join(str(value).split())


def _types_mapper(pandas: Any, dtype_backend: str) -> Callable[[Any], Any]:
    if dtype_backend == "pyarrow":
        mapper: Callable[[Any], Any] = pandas.ArrowDtype
        return mapper
    if dtype_backend != "numpy_nullable":
        raise ValueError(
            f'dtype_backend is {dtype_backend!r}; there are "pyarrow" and "numpy_nullable"'
        )
    own = {
        "int64": pandas.Int64Dtype(),
        "double": pandas.Float64Dtype(),
        "bool": pandas.BooleanDtype(),
        "string": pandas.StringDtype(),
    }
    return lambda arrow: own.get(str(arrow))
