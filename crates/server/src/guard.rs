//! Who may ask: whoever was given the token, from our own page or from no page at all.
//!
//! Every user of this machine reaches 127.0.0.1, and so does any web page. The token keeps out
//! the users. Three things more keep out the pages, should one of them learn it: on loopback the
//! `Host` must be ours (a name that was pointed here does not match), an `Origin` must be our own,
//! and what browsers mark as cross-site is refused. The page's own files hold nothing of the
//! user's and need no token.
//!
//! The token comes in a header, not in a cookie: browsers send cookies of 127.0.0.1 to every
//! port of it, also to other users' servers.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::SizeAbove;

use crate::api::Refusal;

/// Nothing from elsewhere, nothing inline; `style` is set by scripts only, which this allows.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                      connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[derive(Debug)]
pub(crate) struct Guard {
    address: SocketAddr,
    token: String,
}

impl Guard {
    pub(crate) fn new(address: SocketAddr, token: String) -> Guard {
        Guard { address, token }
    }

    fn refuses(&self, path: &str, query: Option<&str>, headers: &HeaderMap) -> Option<Refusal> {
        let Some(host) = text(headers, header::HOST) else {
            return Some(Refusal::forbidden("the request names no Host"));
        };
        if self.address.ip().is_loopback() && !self.is_own_name(host) {
            return Some(
                Refusal::forbidden("the request is for another Host")
                    .hint("open the address that `strobe serve` printed"),
            );
        }
        if let Some(origin) = text(headers, header::ORIGIN)
            && origin.strip_prefix("http://") != Some(host)
        {
            return Some(Refusal::forbidden("another site's page may not ask"));
        }
        if !path.starts_with("/api") {
            return None;
        }
        let site = HeaderName::from_static("sec-fetch-site");
        if let Some("cross-site" | "same-site") = text(headers, site) {
            return Some(Refusal::forbidden("another site's page may not ask"));
        }
        let bearer = text(headers, header::AUTHORIZATION).and_then(|it| it.strip_prefix("Bearer "));
        let in_query = query.and_then(|it| it.split('&').find_map(|it| it.strip_prefix("token=")));
        match bearer.or(in_query) {
            Some(it) if is_equal(it, &self.token) => None,
            _ => Some(
                Refusal::forbidden("the token is missing or wrong")
                    .hint("open the whole address that `strobe serve` printed"),
            ),
        }
    }

    /// `localhost:7878`, `127.0.0.1`, `[::1]:7878`, with any port: tunnels change it.
    fn is_own_name(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or(""),
            None => host.split(':').next().unwrap_or(""),
        };
        match name.parse::<IpAddr>() {
            Ok(it) => it.is_loopback() || it == self.address.ip(),
            Err(_) => name.eq_ignore_ascii_case("localhost"),
        }
    }
}

fn text(headers: &HeaderMap, name: HeaderName) -> Option<&str> {
    headers.get(name)?.to_str().ok()
}

/// Takes as long for a wrong token as for a right one.
fn is_equal(a: &str, b: &str) -> bool {
    let differs = a.bytes().zip(b.bytes()).fold(0, |sum, (a, b)| sum | (a ^ b));
    a.len() == b.len() && differs == 0
}

/// 128 random bits: nobody guesses them.
pub(crate) fn new_token() -> std::io::Result<String> {
    let mut bytes = [0u8; 16];
    getrandom::fill(&mut bytes).map_err(|it| std::io::Error::other(it.to_string()))?;
    Ok(bytes.iter().map(|it| format!("{it:02x}")).collect())
}

/// Checks every request, and puts what browsers need to know on every answer.
pub(crate) fn around(guard: Guard, routes: Router) -> Router {
    routes
        .layer(CompressionLayer::new().compress_when(SizeAbove::new(1024)))
        .layer(middleware::from_fn_with_state(Arc::new(guard), check))
}

async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let uri = request.uri();
    let mut response = match guard.refuses(uri.path(), uri.query(), request.headers()) {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    };
    if response.status() == StatusCode::METHOD_NOT_ALLOWED {
        let allowed = response.headers_mut().remove(header::ALLOW);
        response = Refusal::new(StatusCode::METHOD_NOT_ALLOWED, "this is not how it is asked")
            .hint("see docs/api.md")
            .into_response();
        response.headers_mut().extend(allowed.map(|it| (header::ALLOW, it)));
    }
    let headers = response.headers_mut();
    for (name, value) in [
        ("content-security-policy", POLICY),
        ("x-content-type-options", "nosniff"),
        ("referrer-policy", "no-referrer"),
        ("cross-origin-resource-policy", "same-origin"),
        ("cross-origin-opener-policy", "same-origin"),
        ("x-frame-options", "DENY"),
    ] {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    // What was read of a profile is kept by no cache on disk.
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
