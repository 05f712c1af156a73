//! The web page around opened runs, and the API behind it (`docs/api.md`).
//!
//! ```text
//! browser ──▶ guard: Host, Origin, token ─┬▶ page: files built from `web/`, part of the binary
//!                                         └▶ api ──▶ runs: opened when first asked for ──▶ session
//! ```
//!
//! Loopback unless told otherwise; elsewhere only with a token. Everything is read-only, nothing
//! is asked of any other server. The only crate that knows the page's wire format.

mod api;
pub mod export;
mod guard;
mod page;
mod runs;

use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::net::TcpListener;

use guard::Guard;
pub use runs::Runs;

/// Listens, but answers nobody before [`Server::serve`].
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    token: Option<String>,
    runs: Arc<Runs>,
}

/// How long a stopped server waits for answers that are on their way.
const GRACE: Duration = Duration::from_millis(500);

impl Server {
    pub async fn listen(address: SocketAddr) -> io::Result<TcpListener> {
        TcpListener::bind(address).await
    }

    /// On any address but loopback, requests need a token, which is part of [`Server::url`].
    pub fn new(listener: TcpListener, runs: Runs) -> io::Result<Server> {
        let address = listener.local_addr()?;
        let token = if address.ip().is_loopback() { None } else { Some(guard::new_token()?) };
        Ok(Server { listener, address, token, runs: Arc::new(runs) })
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
        match &self.token {
            Some(token) => format!("http://{address}/?token={token}"),
            None => format!("http://{address}/"),
        }
    }

    /// Answers until `stop` is over.
    pub async fn serve(self, stop: impl Future<Output = ()> + Send + 'static) -> io::Result<()> {
        let guard = Guard::new(self.address, self.token);
        let service = guard::around(guard, api::routes(self.runs).fallback(page::file));
        let (stopped, mut is_stopped) = tokio::sync::watch::channel(false);
        let graceful = axum::serve(self.listener, service).with_graceful_shutdown(async move {
            stop.await;
            let _ = stopped.send(true);
        });
        // A client that neither reads nor leaves must not keep the program.
        let patience = async {
            let _ = is_stopped.wait_for(|it| *it).await;
            tokio::time::sleep(GRACE).await;
        };
        tokio::select! {
            done = graceful.into_future() => done,
            () = patience => Ok(()),
        }
    }
}

/// Whether this program carries its page; without Node at build time it does not.
pub fn has_page() -> bool {
    page::is_built()
}
