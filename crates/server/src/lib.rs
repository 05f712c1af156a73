//! The web page around opened runs, and the API behind it (`docs/api.md`).
//!
//! ```text
//! browser ──▶ connections ──▶ guard: Host, Origin, token ─┬▶ page: files built from `web/`
//!             so many, in time                            └▶ api ──▶ runs ──▶ session
//! ```
//!
//! Loopback unless told otherwise, and with a token there, too: other users of this machine reach
//! loopback as well. Everything is read-only, nothing is asked of any other server. The only
//! crate that knows the page's wire format.

mod api;
mod connections;
pub mod export;
mod guard;
mod limits;
mod page;
mod runs;

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use tokio::net::TcpListener;

pub use api::QueryTurns;
use guard::Guard;
pub use limits::Limits;
pub use runs::Runs;

/// Listens, but answers nobody before [`Server::serve`].
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    token: String,
    runs: Arc<Runs>,
    limits: Limits,
    turns: Arc<QueryTurns>,
}

impl Server {
    pub async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
        TcpListener::bind(address).await
    }

    /// Requests need a token, which is part of [`Server::url`].
    pub fn new(listener: TcpListener, runs: Runs) -> io::Result<Server> {
        Server::with_limits(listener, runs, Limits::default())
    }

    pub fn with_limits(listener: TcpListener, runs: Runs, limits: Limits) -> io::Result<Server> {
        let address = listener.local_addr()?;
        let token = guard::new_token()?;
        let runs = Arc::new(runs.with_limits(limits));
        let turns = Arc::new(QueryTurns::new(&limits));
        Ok(Server { listener, address, token, runs, limits, turns })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the user opens. Bound to all addresses, it names the one that always works here.
    pub fn url(&self) -> String {
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(match address {
                SocketAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
                SocketAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
            });
        }
        format!("http://{address}/?token={}", self.token)
    }

    /// How many queries run.
    pub fn query_turns(&self) -> Arc<QueryTurns> {
        Arc::clone(&self.turns)
    }

    /// Answers until `stop` is over.
    pub async fn serve(self, stop: impl Future<Output = ()> + Send) -> io::Result<()> {
        let guard = Guard::new(self.address, self.token);
        let routes = api::routes(self.runs, self.turns).fallback(page::file);
        connections::serve(self.listener, guard::around(guard, routes), self.limits, stop).await;
        Ok(())
    }
}

/// Whose work the page is made of: names, licences and their texts.
///
/// The test `licences` of the crate `strobe` writes it, and fails where it is old.
pub const PAGE_NOTICES: &str = include_str!("../notices.txt");

/// Whether this program carries its page; without Node at build time it does not.
pub fn has_page() -> bool {
    page::is_built()
}
