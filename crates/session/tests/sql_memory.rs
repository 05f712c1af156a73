//! SQLite counts the memory of all queries of a process together: a process of its own.

use std::path::Path;

use session::{Session, SqlError, SqlLimits, SqlValue};

#[test]
fn sorting_stays_in_memory_and_memory_has_a_limit() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata");
    let session = Session::open(&root.join("synthetic/two_hosts")).unwrap();
    let rows = |n: usize| {
        format!(
            "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c LIMIT {n}), \
             d(y) AS (SELECT hex(zeroblob(4000000)) || x AS y FROM c ORDER BY y) \
             SELECT count(*) FROM (SELECT y FROM d LIMIT 1000000)"
        )
    };
    let few = session.sql(&rows(20), &SqlLimits::default()).unwrap();
    assert_eq!(few.rows, [[SqlValue::Int(20)]]);
    let error = session.sql(&rows(200), &SqlLimits::default()).unwrap_err();
    assert_eq!(error, SqlError::MemoryLimit);
    assert!(error.to_string().contains("hint: "), "{error}");
    // It is free again for the next.
    session.sql(&rows(20), &SqlLimits::default()).unwrap();
}
