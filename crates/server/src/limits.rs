//! How much the server does at once, and how long it waits for whom.

use std::time::Duration;

/// Bounds of everything that clients could make grow.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Connections at once; more wait until one ends.
    pub connections: usize,
    /// From the end of an answer, or the beginning of a connection, to the end of the next
    /// request's head. So an idle connection is closed after it, too.
    pub head_time: Duration,
    /// For the body of a request to arrive.
    pub body_time: Duration,
    /// How far a client may fall behind in reading an answer.
    pub stall_time: Duration,
    /// SQL queries at once; the others wait their turn.
    pub queries: usize,
    pub query_time: Duration,
    /// Runs kept open. A comparison needs two; one more, so that going back does not read again.
    pub runs: usize,
    /// Memory of all runs kept open; the one that was asked for last stays in any case.
    pub run_bytes: u64,
    /// Folders are searched for new runs at most this often.
    pub search_every: Duration,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 256,
            head_time: Duration::from_secs(15),
            body_time: Duration::from_secs(15),
            stall_time: Duration::from_secs(30),
            queries: 4,
            query_time: Duration::from_secs(20),
            runs: 3,
            run_bytes: 4 << 30,
            search_every: Duration::from_secs(2),
        }
    }
}
