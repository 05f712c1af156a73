"""Questions in SQL."""

from __future__ import annotations

import pytest
from conftest import ROOT, strobe, strobe_json

import stroboscope

KERAS = ROOT / "testdata/captured/keras_fit"
QUERIES = [
    "SELECT name, kind, start_ps, dur_ps, parent, op FROM event ORDER BY id LIMIT 500",
    "SELECT kind, count(*) AS n, avg(dur_ps) AS mean FROM event GROUP BY 1 ORDER BY 1",
    "SELECT * FROM op_time WHERE op_type IS NULL",
    "SELECT * FROM what_if",
    "SELECT 1 WHERE 0",
    "VALUES (1, NULL), (NULL, 'a')",
]


@pytest.mark.parametrize("query", QUERIES)
def test_answers_are_those_of_the_command_line(keras, query):
    assert keras.sql(query).to_dicts() == strobe_json("sql", KERAS, query)


def test_values_keep_their_kind(keras):
    row = keras.sql("SELECT 9007199254740993 AS i, 0.5 AS f, 'é' AS t, x'00ff' AS b, NULL AS n")
    assert row.to_dicts() == [
        {"i": 9007199254740993, "f": 0.5, "t": "é", "b": b"\x00\xff", "n": None}
    ]


def test_a_column_holds_one_kind_of_value(keras):
    table = keras.sql("SELECT * FROM (VALUES (1, 1, NULL), (2.5, 'x', NULL), (NULL, NULL, NULL))")
    cells = [tuple(it.values()) for it in table.to_dicts()]
    assert cells == [(1.0, "1", None), (2.5, "x", None), (None, None, None)]
    assert isinstance(cells[0][0], float)


def test_columns_of_one_name_are_told_apart(keras):
    table = keras.sql("SELECT 1 AS id, 2 AS id, 3 AS id_1, 4 AS id")
    assert table.columns == ["id", "id_2", "id_1", "id_3"]
    assert list(table.to_dicts()[0].values()) == [1, 2, 3, 4]


def test_cut_off_results_say_so(keras):
    with pytest.warns(UserWarning, match="cut off at 3 rows"):
        table = keras.sql("SELECT id FROM event", max_rows=3)
    assert table.truncated
    assert len(table) == 3
    assert "cut off" in repr(table)
    everything = keras.sql("SELECT id FROM event", max_rows=None)
    assert not everything.truncated
    assert len(everything) == keras.report()["run"]["events"]


@pytest.mark.parametrize(
    "query", ["", "DROP TABLE event", "SELECT nope FROM event", "SELECT * FROM nope", "SELEC 1"]
)
def test_errors_are_those_of_the_command_line(keras, query):
    with pytest.raises(stroboscope.Error) as raised:
        keras.sql(query)
    assert f"error: {raised.value}\n" == strobe("sql", KERAS, query).stderr


def test_endless_queries_are_stopped(keras):
    endless = (
        "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"
    )
    with pytest.raises(stroboscope.Error, match=r"longer than 0\.1 s"):
        keras.sql(endless, max_seconds=0.1)


def test_senseless_limits_are_refused(keras):
    for wrong in ({"max_seconds": 0}, {"max_rows": -1}):
        with pytest.raises(ValueError, match="max_seconds"):
            keras.sql("SELECT 1", **wrong)
