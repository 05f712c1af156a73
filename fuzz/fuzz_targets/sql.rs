//! Any text as a query of a small run: an answer within its limits, or an error.

#![no_main]

use std::sync::OnceLock;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use session::{Session, SqlLimits};

mod pool;

const PROFILE: &[u8] =
    include_bytes!("../../testdata/synthetic/two_hosts/plugins/profile/run/host0.xplane.pb");

const LIMITS: SqlLimits = SqlLimits { time: Duration::from_secs(1), rows: 100, bytes: 1 << 20 };

static SESSION: OnceLock<Session> = OnceLock::new();

fuzz_target!(init: pool::on_this_thread(), |query: &str| {
    let session = SESSION.get_or_init(|| {
        Session::from_bytes("host.xplane.pb", PROFILE.to_vec()).expect("it is a profile")
    });
    if let Ok(answer) = session.sql(query, &LIMITS) {
        assert!(answer.rows.len() <= LIMITS.rows);
        assert!(answer.rows.iter().all(|it| it.len() == answer.columns.len()));
    }
});
