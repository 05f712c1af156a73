//! The timeline loses nothing, at any zoom; and answers what is asked about it.

#![expect(clippy::unwrap_used, reason = "helpers of tests are tests")]

mod model;
mod profiles;
mod questions;
mod random;
mod wire;

use std::sync::Arc;

use analyses::Tables;
use session::timeline::Timeline;
use trace::Trace;

fn timeline_of(trace: Trace) -> (Arc<Tables>, Timeline) {
    let tables = Arc::new(Tables::new(Arc::new(trace)));
    (tables.clone(), Timeline::new(tables))
}
