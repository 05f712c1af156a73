"""Tables go into data frames as they are: nulls, empty ones, every kind of column."""

from __future__ import annotations

import gc
import math

import pytest

import stroboscope

ODD = "SELECT 9007199254740993 AS i, 0.5 AS f, 'é' AS t, x'00ff' AS b, NULL AS n UNION ALL "
ODD += "SELECT NULL, NULL, NULL, NULL, NULL"


def tables(path):
    run = stroboscope.load(path)
    return [run[name] for name in run] + [run.sql(ODD), run.sql("SELECT id, name FROM event")]


def test_there_are_empty_tables_and_nulls_to_test_with(one_of_few):
    every = tables(one_of_few)
    assert any(len(it) == 0 for it in every)
    assert any(None in row.values() for it in every for row in it.to_dicts(limit=100))


def test_arrow(one_of_few):
    pyarrow = pytest.importorskip("pyarrow")
    for table in tables(one_of_few):
        for arrow in (pyarrow.table(table), table.to_arrow()):
            arrow.validate(full=True)
            assert arrow.to_pylist() == table.to_dicts()
        schema = pyarrow.schema(table)
        assert schema.equals(arrow.schema, check_metadata=True)
        assert schema.names == table.columns
        docs = {it.name: it.metadata[b"doc"].decode() for it in schema if it.metadata}
        assert docs == table.docs


def test_polars(one_of_few):
    polars = pytest.importorskip("polars")
    for table in tables(one_of_few):
        for frame in (polars.DataFrame(table), table.to_polars()):
            assert frame.columns == table.columns
            assert frame.to_dicts() == table.to_dicts()


@pytest.mark.parametrize("dtype_backend", ["pyarrow", "numpy_nullable"])
def test_pandas(one_of_few, dtype_backend):
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    for table in tables(one_of_few):
        frame = table.to_pandas(dtype_backend=dtype_backend)
        assert list(frame.columns) == table.columns
        rows = [
            {name: None if it is None or it is pandas.NA else it for name, it in row.items()}
            for row in frame.astype(object).where(frame.notna(), None).to_dict("records")
        ]
        assert rows == table.to_dicts()
        assert not any(
            isinstance(it, float) and math.isnan(it) for row in rows for it in row.values()
        )


def test_pandas_takes_the_capsule_itself(keras):
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    if not hasattr(pandas.DataFrame, "from_arrow"):
        pytest.skip("pandas has no DataFrame.from_arrow before 3.0")
    table = keras["step_time"]
    frame = pandas.DataFrame.from_arrow(table)
    assert frame["dur_ps"].tolist() == [it["dur_ps"] for it in table.to_dicts()]


def test_pandas_refuses_a_backend_it_does_not_know(keras):
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    with pytest.raises(ValueError, match="numpy_nullable"):
        keras["step_time"].to_pandas(dtype_backend="numpy")


def test_columns_are_not_copied(keras):
    pyarrow = pytest.importorskip("pyarrow")
    table = keras["op_time"]

    def addresses():
        columns = pyarrow.table(table).columns
        chunks = [chunk for column in columns for chunk in column.chunks]
        return [it.address for chunk in chunks for it in chunk.buffers() if it is not None]

    first = addresses()
    assert len(first) > 15
    assert first == addresses()


def test_frames_outlive_the_run():
    pyarrow = pytest.importorskip("pyarrow")
    from conftest import ROOT

    run = stroboscope.load(ROOT / "testdata/captured/keras_fit")
    table = run["op_time"]
    rows, arrow = table.to_dicts(), pyarrow.table(table)
    del run, table
    gc.collect()
    assert arrow.to_pylist() == rows


def test_a_capsule_is_taken_once_and_may_be_left(keras):
    pyarrow = pytest.importorskip("pyarrow")
    table = keras["op_time"]
    capsule = table.__arrow_c_stream__()

    class Holder:
        def __arrow_c_stream__(self, requested_schema=None):
            return capsule

    assert pyarrow.table(Holder()).num_rows == len(table)
    with pytest.raises(Exception):  # noqa: B017
        pyarrow.table(Holder())
    for _ in range(100):
        table.__arrow_c_stream__()
        table.__arrow_c_schema__()


def test_another_schema_is_a_wish(keras):
    pyarrow = pytest.importorskip("pyarrow")
    table = keras["step_time"]
    wish = pyarrow.schema([pyarrow.field("nothing", pyarrow.int8())]).__arrow_c_schema__()
    reader = pyarrow.RecordBatchReader._import_from_c_capsule(table.__arrow_c_stream__(wish))
    assert reader.schema.names == table.columns
