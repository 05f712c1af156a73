//! SQL says what the tables and the trace say, looks up as it would have searched, and cannot
//! be made to write or to run for ever.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a failed helper is a failed test")]

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use analyses::Cell;
use analyses::step::Step;
use session::{QueryResult, Session, SqlError, SqlLimits, SqlValue, StopFlag, schema};
use trace::{EventId, FactValue};

fn open(name: &str) -> Session {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    Session::open(&root.join(name)).unwrap()
}

/// Every profile kept in the repository.
fn all() -> Vec<(String, Session)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let mut folders: Vec<PathBuf> = ["synthetic", "captured"]
        .iter()
        .flat_map(|it| std::fs::read_dir(root.join(it)).unwrap())
        .map(|it| it.unwrap().path())
        .filter(|it| it.is_dir() && !it.ends_with("scripts"))
        .collect();
    folders.sort();
    assert!(folders.len() > 20, "{folders:?}");
    folders.iter().map(|it| (it.display().to_string(), Session::open(it).unwrap())).collect()
}

const EVERYTHING: SqlLimits =
    SqlLimits { time: Duration::from_secs(60), rows: usize::MAX, bytes: usize::MAX };

fn ask(session: &Session, query: &str) -> QueryResult {
    session.sql(query, &EVERYTHING).unwrap_or_else(|it| panic!("{query}: {it}"))
}

fn ints(result: &QueryResult) -> Vec<i64> {
    let int = |row: &Vec<SqlValue>| match row[..] {
        [SqlValue::Int(it)] => it,
        _ => panic!("{row:?} is not one integer"),
    };
    result.rows.iter().map(int).collect()
}

fn int(session: &Session, query: &str) -> i64 {
    ints(&ask(session, query))[0]
}

fn error(session: &Session, query: &str) -> SqlError {
    match session.sql(query, &SqlLimits::default()) {
        Ok(it) => panic!("{query} was answered: {it:?}"),
        Err(it) => it,
    }
}

/// How SQLite means to answer, in words.
fn plan(session: &Session, query: &str) -> String {
    let result = ask(session, &format!("EXPLAIN QUERY PLAN {query}"));
    let line = |row: &Vec<SqlValue>| match row.last() {
        Some(SqlValue::Text(it)) => it.clone(),
        other => panic!("{other:?} is no plan"),
    };
    result.rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn value(cell: Cell<'_>) -> SqlValue {
    match cell {
        Cell::Null => SqlValue::Null,
        Cell::Int(it) => SqlValue::Int(it),
        Cell::Float(it) if it.is_nan() => SqlValue::Null,
        Cell::Float(it) => SqlValue::Float(it),
        Cell::Text(it) => SqlValue::Text(it.to_owned()),
        Cell::Bool(it) => SqlValue::Int(i64::from(it)),
    }
}

#[test]
fn every_cell_of_every_analysis_is_the_tables_own() {
    let mut n_cells = 0;
    for (path, session) in all() {
        for table in analyses::ALL {
            let rows = table.rows(session.tables());
            let expected: Vec<Vec<SqlValue>> = (0..rows.len())
                .map(|row| (0..table.columns().len()).map(|it| value(rows.cell(row, it))).collect())
                .collect();
            let names: Vec<&str> = table.columns().iter().map(|it| it.name).collect();
            let found = ask(&session, &format!("SELECT * FROM {}", table.name()));
            assert_eq!(found.columns, names, "{path} {}", table.name());
            assert_eq!(found.rows, expected, "{path} {}", table.name());
            n_cells += expected.iter().map(Vec::len).sum::<usize>();
        }
    }
    assert!(n_cells > 1_000, "{n_cells}");
}

#[test]
fn every_event_is_the_traces_own() {
    for (path, session) in all() {
        let trace = session.trace();
        let text = |id| SqlValue::Text(trace.text(id).to_owned());
        let or_null = |id: Option<_>| id.map_or(SqlValue::Null, text);
        let found = ask(
            &session,
            "SELECT id, track, name, name_id, kind, start_ps, dur_ps, end_ps, parent, op, hlo_op, \
             hlo_module, copy_bytes FROM event",
        );
        assert_eq!(found.rows.len(), trace.events.len(), "{path}");
        for (row, found) in found.rows.iter().enumerate() {
            let id = EventId(row as u32);
            let detail = trace.detail(id);
            let expected = [
                SqlValue::Int(row as i64),
                SqlValue::Int(i64::from(trace.track_of(id).0)),
                text(trace.events.name[row]),
                SqlValue::Int(i64::from(trace.events.name[row].0)),
                SqlValue::Text(trace.events.kind[row].name().to_owned()),
                SqlValue::Int(trace.events.start[row].0),
                SqlValue::Int(trace.events.dur[row].0),
                SqlValue::Int(trace.events.end(id).0),
                trace.events.parent(id).map_or(SqlValue::Null, |it| SqlValue::Int(it.0.into())),
                or_null(detail.op),
                or_null(detail.hlo_op),
                or_null(detail.hlo_module),
                detail.copy_bytes.map_or(SqlValue::Null, |it| SqlValue::Int(it as i64)),
            ];
            assert_eq!(found[..], expected, "{path} event {row}");
        }
    }
}

#[test]
fn tracks_edges_counters_and_notes_are_the_traces_own() {
    let (mut n_edges, mut n_counters, mut n_notes) = (0, 0, 0);
    for (path, session) in all() {
        let trace = session.trace();
        let n_events = trace.events.len() as i64;
        assert_eq!(int(&session, "SELECT sum(n_events) FROM track"), n_events, "{path}");
        let hosts = ask(&session, "SELECT name = host FROM track WHERE kind = 'host'");
        assert!(!hosts.rows.is_empty() && ints(&hosts).iter().all(|&it| it == 1), "{path}");

        let edges = ask(&session, "SELECT from_event, to_event FROM edge");
        let expected: Vec<Vec<SqlValue>> = (trace.edges.from.iter().zip(&trace.edges.to))
            .map(|(from, to)| vec![SqlValue::Int(from.0.into()), SqlValue::Int(to.0.into())])
            .collect();
        assert_eq!(edges.rows, expected, "{path}");

        let counters = ask(&session, "SELECT track, time_ps, value FROM counter");
        let expected: Vec<Vec<SqlValue>> = (trace.counters.iter())
            .map(|it| {
                let track = SqlValue::Int(it.track.0.into());
                vec![track, SqlValue::Int(it.time.0), SqlValue::Float(it.value)]
            })
            .collect();
        assert_eq!(counters.rows, expected, "{path}");

        let notes = ask(&session, "SELECT kind, count, first FROM note");
        let expected: Vec<Vec<SqlValue>> = (trace.notes.iter())
            .map(|it| {
                let kind = SqlValue::Text(it.kind.name().to_owned());
                vec![kind, SqlValue::Int(it.count as i64), SqlValue::Text(it.first.clone())]
            })
            .collect();
        assert_eq!(notes.rows, expected, "{path}");
        n_edges += edges.rows.len();
        n_counters += counters.rows.len();
        n_notes += notes.rows.len();
    }
    // Somewhere there was something to compare.
    assert!(n_edges > 0 && n_counters + n_notes > 0, "{n_edges} {n_counters} {n_notes}");
}

#[test]
fn events_join_the_steps_they_begin_in() {
    let session = open("synthetic/nccl_two_gpus");
    let steps = session.tables().get::<Step>();
    assert!(steps.len() > 2);
    let events = &session.trace().events;
    let expected: Vec<i64> = steps
        .iter()
        .map(|step| {
            let (start, end) = step.span();
            let during = |it: &usize| (start..end).contains(&events.start[*it].0);
            (0..events.len()).filter(during).map(|it| events.dur[it].0).sum()
        })
        .collect();
    let query = "SELECT sum(e.dur_ps) FROM step s JOIN event e \
                 ON e.start_ps >= s.start_ps AND e.start_ps < s.start_ps + s.dur_ps \
                 GROUP BY s.host, s.step";
    assert_eq!(ints(&ask(&session, query)), expected);
    let plan = plan(&session, query);
    assert!(plan.contains("start_ps>=? start_ps<?"), "{plan}");
    // Neither side needs SQLite's own sorting.
    assert!(!plan.contains("TEMP"), "{plan}");
}

#[test]
fn launches_join_their_kernels() {
    let session = open("synthetic/overlap_streams");
    let edges = &session.trace().edges;
    assert!(edges.len() > 20, "more than are looked up before an index is made");
    let query = "SELECT k.id FROM event l CROSS JOIN edge ON from_event = l.id \
                 CROSS JOIN event k ON k.id = to_event ORDER BY k.id";
    let expected: Vec<i64> = edges.to.iter().map(|it| i64::from(it.0)).collect();
    assert_eq!(ints(&ask(&session, query)), expected);
    assert!(plan(&session, query).contains("from_event=?"));
}

#[test]
fn arguments_are_decoded_for_one_event_for_joins_and_for_all() {
    let mut n_all = 0;
    for name in ["synthetic/overlap_streams", "captured/keras_fit", "captured/jax_steps"] {
        let session = open(name);
        let trace = session.trace();
        let of = |row: u32| -> Vec<Vec<SqlValue>> {
            let decoded = trace.args.of(EventId(row)).into_iter();
            decoded
                .map(|(key, value)| {
                    let value = match value {
                        FactValue::Int(it) => SqlValue::Int(it),
                        FactValue::Float(it) => SqlValue::Float(it),
                        FactValue::Text(it) => SqlValue::Text(it),
                    };
                    vec![SqlValue::Text(key), value]
                })
                .collect()
        };
        let n_events = trace.events.len() as u32;
        let expected: Vec<Vec<SqlValue>> = (0..n_events).flat_map(of).collect();
        assert_eq!(ask(&session, "SELECT * FROM args").rows, expected, "{name}");
        let joined = "SELECT a.key, a.value FROM event e, args(e.id) a ORDER BY e.id";
        assert_eq!(ask(&session, joined).rows, expected, "{name}");
        for row in (0..n_events).step_by(7) {
            let found = ask(&session, &format!("SELECT * FROM args({row})"));
            assert_eq!(found.rows, of(row), "{name} event {row}");
            let found = ask(&session, &format!("SELECT event_id FROM args({row})"));
            assert!(ints(&found).iter().all(|&it| it == i64::from(row)));
        }
        for nothing in ["-1", "NULL", "1e18", "0.5", &n_events.to_string()] {
            assert!(ask(&session, &format!("SELECT * FROM args({nothing})")).rows.is_empty());
        }
        n_all += expected.len();
    }
    assert!(n_all > 100, "{n_all}");
}

/// Numbers that look random and are the same every time.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, n: usize) -> usize {
        let next = self.0.wrapping_mul(6_364_136_223_846_793_005);
        self.0 = next.wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }

    fn one_of<'a, T: ?Sized>(&mut self, of: &[&'a T]) -> &'a T {
        of[self.roll(of.len())]
    }
}

fn literal(value: &SqlValue) -> String {
    match value {
        SqlValue::Null => "NULL".to_owned(),
        SqlValue::Int(it) => it.to_string(),
        SqlValue::Float(it) => format!("{it:?}"),
        SqlValue::Text(it) => format!("'{}'", it.replace('\'', "''")),
        SqlValue::Blob(_) => "x''".to_owned(),
    }
}

/// Each query asked twice: of the table, and of SQLite's own copy of it, where nothing of ours
/// is looked up or sorted.
fn check_lookups(session: &Session, table: &str, columns: &[&str], id: &str, n_queries: usize) {
    const ODD: &[&str] = &[
        "NULL",
        "-1",
        "0",
        "1",
        "0.5",
        "3.0",
        "'3'",
        "'x'",
        "''",
        "x'00'",
        "1e300",
        "-1e300",
        "9223372036854775807",
        "-9223372036854775808",
    ];
    let rows = ask(session, &format!("SELECT {} FROM {table}", columns.join(", "))).rows;
    assert!(rows.len() > 10, "{table}");
    let names: Vec<String> = columns.iter().map(|it| format!("{it} AS {it}")).collect();
    let copy = format!("WITH copy AS MATERIALIZED (SELECT {} FROM {table})", names.join(", "));
    let mut dice = Dice(7);
    let (mut n_found, mut n_looked_up, mut n_sorted) = (0, 0, 0);
    for _ in 0..n_queries {
        let mut tests = Vec::new();
        for _ in 0..=dice.roll(3) {
            let column = dice.roll(columns.len());
            let value = match dice.roll(4) {
                0 => dice.one_of(ODD).to_owned(),
                _ => literal(&rows[dice.roll(rows.len())][column]),
            };
            let op = dice.one_of(&["=", "=", "=", "<", "<=", ">", ">=", "IS", "<>"]);
            tests.push(match dice.roll(12) {
                0 => format!("{} IN ({value}, {})", columns[column], dice.one_of(ODD)),
                1 => format!("{} = {value} COLLATE NOCASE", columns[column]),
                _ => format!("{} {op} {value}", columns[column]),
            });
        }
        let mut order = Vec::new();
        for _ in 0..dice.roll(3) {
            let way = dice.one_of(&["", " DESC"]);
            order.push(format!("{}{way}", dice.one_of(columns)));
        }
        order.push(format!("{id}{}", dice.one_of(&["", " DESC"])));
        let test = tests.join(if dice.roll(8) == 0 { " OR " } else { " AND " });
        let grouped = dice.roll(3) == 0;
        let query = if grouped {
            let by = order[0].trim_end_matches(" DESC");
            format!("SELECT {by}, count(*), min({id}) FROM copy WHERE {test} GROUP BY {by}")
        } else {
            format!("SELECT {id} FROM copy WHERE {test} ORDER BY {}", order.join(", "))
        };
        let looked_up = query.replace("FROM copy", &format!("FROM {table}"));
        let searched = format!("{copy} {query}");
        assert!(plan(session, &searched).starts_with("MATERIALIZE"));
        let mut found = ask(session, &looked_up).rows;
        let mut expected = ask(session, &searched).rows;
        if grouped {
            // Groups come in any order.
            found.sort_by_key(|it| format!("{it:?}"));
            expected.sort_by_key(|it| format!("{it:?}"));
        }
        assert_eq!(found, expected, "{looked_up}");
        n_found += found.len();
        let plan = plan(session, &looked_up);
        n_looked_up += usize::from(plan.contains('?'));
        n_sorted += usize::from(plan.contains("by ") && !plan.contains("TEMP"));
    }
    // Otherwise nothing was compared.
    assert!(n_found > n_queries, "{n_found} rows found in {table}");
    assert!(n_looked_up > n_queries / 4, "{n_looked_up} of {n_queries} looked up in {table}");
    assert!(n_sorted > n_queries / 20, "{n_sorted} of {n_queries} sorted in {table}");
}

const EVENT_COLUMNS: &[&str] = &[
    "id", "rowid", "track", "name", "name_id", "kind", "start_ps", "dur_ps", "end_ps", "parent",
    "op", "hlo_op",
];

#[test]
fn events_are_looked_up_as_they_would_be_searched() {
    for name in ["synthetic/two_hosts", "synthetic/tpu", "captured/keras_fit"] {
        check_lookups(&open(name), "event", EVENT_COLUMNS, "id", 1_000);
    }
}

#[test]
fn rows_are_looked_up_as_they_would_be_searched() {
    let session = open("synthetic/two_hosts");
    let step = &["rowid", "host", "step", "number", "start_ps", "confidence", "complete", "track"];
    check_lookups(&session, "step", step, "rowid", 500);
    check_lookups(&session, "track", &["rowid", "id", "parent", "kind", "name"], "rowid", 500);
    check_lookups(&session, "edge", &["rowid", "from_event", "to_event", "kind"], "rowid", 500);
}

#[test]
fn joins_that_ask_often_find_what_a_search_finds() {
    // More lookups than are made before an index is built, by every kind of column.
    for (name, every) in [("synthetic/overlap_streams", 5), ("captured/jax_steps", 29)] {
        let session = open(name);
        for column in ["id", "track", "name", "name_id", "kind", "start_ps", "parent"] {
            let ask_with = |plus: &str| {
                let query = format!(
                    "SELECT a.id, count(b.id), sum(b.id) FROM event a CROSS JOIN event b \
                     ON {plus}b.{column} = a.{column} WHERE a.id % {every} = 0 GROUP BY a.id"
                );
                let looked_up = plan(&session, &query).contains(&format!("{column}=?"));
                assert_eq!(looked_up, plus.is_empty(), "{query}");
                ask(&session, &query).rows
            };
            let found = ask_with("");
            assert!(found.len() > 8, "{name} {column} {}", found.len());
            assert_eq!(found, ask_with("+"), "{name} {column}");
        }
    }
}

#[test]
fn grouping_events_needs_no_sorting_by_sqlite() {
    let session = open("synthetic/two_hosts");
    for query in [
        "SELECT name, sum(dur_ps) FROM event GROUP BY name",
        "SELECT name_id, sum(dur_ps) FROM event GROUP BY name_id",
        "SELECT kind, op, count(*) FROM event GROUP BY kind, op",
        "SELECT DISTINCT name FROM event",
        "SELECT id FROM event ORDER BY id DESC",
        "SELECT id FROM event WHERE track = 3 ORDER BY start_ps",
        "SELECT id FROM event ORDER BY track, start_ps, dur_ps DESC",
    ] {
        let plan = plan(&session, query);
        assert!(!plan.contains("TEMP"), "{query}: {plan}");
    }
    // What is for SQLite to sort it does sort.
    assert!(plan(&session, "SELECT id FROM event ORDER BY dur_ps").contains("TEMP"));
}

#[test]
fn nothing_can_be_written() {
    let session = open("synthetic/two_hosts");
    let n_events = int(&session, "SELECT count(*) FROM event");
    let file = std::env::temp_dir().join(format!("sql-{}.db", std::process::id()));
    let path = file.display();
    let vacuum = format!("VACUUM INTO '{path}'");
    let attach = format!("ATTACH '{path}' AS other");
    for statement in [
        "DELETE FROM event",
        "INSERT INTO step(step) VALUES (1)",
        "UPDATE event SET dur_ps = 0",
        "REPLACE INTO note(kind) VALUES ('x')",
        "WITH x(a) AS (VALUES (1)) INSERT INTO edge SELECT a, a, a FROM x",
        "EXPLAIN DELETE FROM event",
        "CREATE TABLE t(a)",
        "CREATE TEMP TABLE t AS SELECT * FROM step",
        "CREATE VIEW v AS SELECT 1",
        "CREATE VIRTUAL TABLE t USING fts5(a)",
        "DROP TABLE event",
        "ALTER TABLE event RENAME TO e",
        "INSERT INTO sqlite_schema(name) VALUES ('x')",
        &vacuum,
        "VACUUM",
        &attach,
        "DETACH main",
        "PRAGMA writable_schema = 1",
        "PRAGMA temp_store_directory = '/'",
        "PRAGMA journal_mode = wal",
        "SELECT * FROM pragma_database_list",
        "BEGIN",
        "COMMIT",
        "SAVEPOINT a",
        "ANALYZE",
        "REINDEX",
        "SELECT load_extension('x.so')",
        "SELECT LOAD_EXTENSION('x.so', 'init')",
        "SELECT fts3_tokenizer('simple')",
        "SELECT 1; DELETE FROM event",
        "SELECT 1; SELECT 2",
    ] {
        let error = error(&session, statement);
        assert!(matches!(error, SqlError::NotAQuery { .. }), "{statement}: {error}");
    }
    for function in ["readfile('/etc/passwd')", "writefile('x', 'y')", "edit('x')"] {
        let message = error(&session, &format!("SELECT {function}")).to_string();
        assert!(message.contains("no such function"), "{message}");
    }
    assert!(!file.exists());
    assert_eq!(int(&session, "SELECT count(*) FROM event"), n_events);
}

#[test]
fn queries_of_every_form_are_answered() {
    let session = open("synthetic/two_hosts");
    let n_events = session.trace().events.len() as i64;
    assert_eq!(int(&session, "VALUES (7)"), 7);
    assert_eq!(int(&session, "  -- said first\n SELECT 7 ; "), 7);
    assert_eq!(int(&session, "WITH e AS (SELECT * FROM event) SELECT count(*) FROM e"), n_events);
    assert!(!ask(&session, "EXPLAIN SELECT * FROM event").rows.is_empty());
    let info = ask(&session, "SELECT name FROM pragma_table_info('event')");
    assert_eq!(info.rows[0], [SqlValue::Text("id".to_owned())]);
    let kinds = "SELECT NULL, 1, 1.5, 'a', x'0102'";
    let expected = vec![
        SqlValue::Null,
        SqlValue::Int(1),
        SqlValue::Float(1.5),
        SqlValue::Text("a".to_owned()),
        SqlValue::Blob(vec![1, 2]),
    ];
    assert_eq!(ask(&session, kinds).rows, [expected]);
}

#[test]
fn a_query_without_end_is_stopped() {
    let session = open("captured/keras_fit");
    let limits = SqlLimits { time: Duration::from_millis(200), ..SqlLimits::default() };
    for query in [
        "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT count(*) FROM c",
        "SELECT count(*) FROM event a, event b, event c, event d WHERE a.dur_ps + b.dur_ps < d.id",
    ] {
        let begin = Instant::now();
        let error = session.sql(query, &limits).unwrap_err();
        assert_eq!(error, SqlError::TimeLimit { limit: limits.time }, "{query}");
        assert!(begin.elapsed() < Duration::from_secs(5), "{query}: {:?}", begin.elapsed());
        let message = error.to_string();
        assert!(message.starts_with("the query took longer than 0.2 s"), "{message}");
        assert!(message.contains("hint: narrow it down"), "{message}");
    }
}

#[test]
fn a_raised_flag_stops_a_query() {
    let session = open("synthetic/two_hosts");
    let endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) \
                   SELECT count(*) FROM c";
    let limits = SqlLimits { time: Duration::from_secs(3600), ..SqlLimits::default() };
    let stop = StopFlag::default();
    std::thread::scope(|scope| {
        let running = scope.spawn(|| session.sql_until(endless, &limits, &stop));
        std::thread::sleep(Duration::from_millis(50));
        stop.raise();
        assert_eq!(running.join().unwrap(), Err(SqlError::Stopped));
    });
    assert_eq!(session.sql_until("SELECT 1", &limits, &stop), Err(SqlError::Stopped));
}

#[test]
fn results_are_cut_at_rows_and_bytes() {
    let session = open("synthetic/two_hosts");
    let n_events = session.trace().events.len();
    let at = |rows, bytes, query: &str| {
        let result = session.sql(query, &SqlLimits { rows, bytes, ..SqlLimits::default() });
        result.map(|it| (it.rows.len(), it.truncated)).unwrap()
    };
    let all = "SELECT id FROM event";
    assert_eq!(at(n_events, usize::MAX, all), (n_events, false));
    assert_eq!(at(n_events - 1, usize::MAX, all), (n_events - 1, true));
    assert_eq!(at(0, usize::MAX, all), (0, true));
    let texts = "VALUES ('0123456789'), ('0123456789'), ('0123456789')";
    assert_eq!(at(9, 30, texts), (3, false));
    assert_eq!(at(9, 29, texts), (2, true));
    // By default, ten thousand rows.
    let many = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) SELECT x FROM c";
    let result = session.sql(many, &SqlLimits::default()).unwrap();
    assert_eq!((result.rows.len(), result.truncated), (10_000, true));
}

#[test]
fn queries_too_large_are_refused() {
    let session = open("synthetic/two_hosts");
    let deep = format!("SELECT {}1{}", "(1+".repeat(300), ")".repeat(300));
    let long = format!("SELECT '{}'", "a".repeat(2 << 20));
    for query in [deep.as_str(), &long, "SELECT length(zeroblob(1000000000))"] {
        let error = error(&session, query);
        let message = error.to_string();
        assert!(matches!(error, SqlError::Failed { .. }), "{message}");
        let said = ["too long", "too large", "too big", "too deep", "overflow", "maximum depth"];
        assert!(said.iter().any(|it| message.contains(it)), "{message}");
    }
}

#[test]
fn errors_say_what_would_have_worked() {
    let session = open("synthetic/two_hosts");
    let says = |query: &str, parts: &[&str]| {
        let message = error(&session, query).to_string();
        for part in parts {
            assert!(message.contains(part), "{query}: {message:?} lacks {part:?}");
        }
        assert!(!message.ends_with('.'), "{message}");
    };
    says("SELECT * FROM evnt", &["there is no table evnt\n  hint: there are event, args, track"]);
    says("SELECT * FROM evnt", &["step_time"]);
    says("SELECT foo FROM track", &["there is no column foo\n  hint: track has id, parent, kind"]);
    says(
        "SELECT s.x FROM step s JOIN edge ON 1",
        &["there is no column s.x", "step has host", "edge has from_event"],
    );
    // Only the tables that the query names.
    let message = error(&session, "SELECT foo FROM track").to_string();
    assert!(!message.contains("from_event"), "{message}");
    // A misspelt column in quotes is not taken for a text.
    says("SELECT \"foo\" FROM track", &["there is no column", "foo", "single-quotes"]);
    says("SELECT id FORM event", &["syntax error", "\n  at: "]);
    says("DELETE FROM event", &["only queries are answered", "hint: begin with SELECT"]);
    says("SELECT * FROM event WHERE id = ?", &["parameter"]);
    says(" ", &["only queries are answered, not an empty text"]);
    says(" -- nothing", &["only queries are answered"]);
}

#[test]
fn the_schema_is_what_queries_see() {
    let session = open("synthetic/two_hosts");
    let mut names: Vec<&str> = schema().iter().map(|it| it.name).collect();
    for table in schema() {
        assert!(!table.doc.trim().is_empty(), "{}", table.name);
        // Bare names: none of them is a word of SQL.
        let mut columns: Vec<&str> = table.columns.iter().map(|it| it.name).collect();
        let query = format!("SELECT * FROM {} LIMIT 1", table.name);
        assert_eq!(ask(&session, &query).columns, columns, "{}", table.name);
        columns.extend(table.parameter.iter().map(|it| it.name));
        let query = format!("SELECT {} FROM {} LIMIT 1", columns.join(", "), table.name);
        assert_eq!(ask(&session, &query).columns, columns, "{}", table.name);
        for column in table.columns.iter().chain(&table.parameter) {
            assert!(!column.doc.trim().is_empty(), "{}.{}", table.name, column.name);
        }
    }
    assert!(names.contains(&"event") && names.contains(&"args") && names.contains(&"step_time"));
    names.sort_unstable();
    let n_names = names.len();
    names.dedup();
    assert_eq!(names.len(), n_names, "an analysis and a part of the trace have the same name");
}

#[test]
fn threads_ask_at_the_same_time() {
    let session = open("captured/keras_fit");
    let query = "SELECT sum(dur_ps) FROM step_time";
    let expected = {
        let rows = session.tables().get::<analyses::step_time::StepTime>();
        rows.iter().map(|it| it.dur_ps).sum::<i64>()
    };
    assert!(expected > 0);
    let fresh = open("captured/keras_fit");
    std::thread::scope(|scope| {
        let asked: Vec<_> = (0..4).map(|_| scope.spawn(|| int(&fresh, query))).collect();
        for it in asked {
            assert_eq!(it.join().unwrap(), expected);
        }
    });
}
