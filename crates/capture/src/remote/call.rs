//! One call of gRPC over HTTP/2, whose answer is handed on as it comes.
//!
//! The usual client libraries hold an answer in memory before anybody sees it. A profile can be a
//! gigabyte, from each of a hundred hosts, so this speaks HTTP/2 itself: headers, one message,
//! the answer's bytes, trailers. That is all of gRPC that a single call needs.

use std::future::poll_fn;
use std::io::{self, Write};
use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use h2::client::SendRequest;
use h2::{Ping, RecvStream};
use http::{HeaderMap, Method, Request, StatusCode, Version};
use prost::Message;
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Server;
use super::message::{Answer, AnswerError};

/// Much less than any answer, enough that a window is never what limits a fast network.
const WINDOW_BYTES: u32 = 4 << 20;
/// More than any server's headers; what a hostile one sends beyond is not stored.
const MOST_HEADER_BYTES: u32 = 64 << 10;

/// Why a call failed.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    #[error("{0}")]
    Unreachable(io::Error),
    #[error("no sign of HTTP/2 from the other side")]
    Silent,
    #[error("{0}")]
    NotGrpc(String),
    /// The connection broke, or the server ended the call, before it was complete.
    #[error("the connection broke: {0}")]
    Broke(h2::Error),
    #[error("{}: {message}", code_name(*code))]
    Refused { code: u32, message: String },
    #[error(transparent)]
    Answer(#[from] AnswerError),
}

/// A connection over which a call can be made.
#[derive(Debug)]
pub struct Connection {
    requests: SendRequest<Bytes>,
    /// Moves bytes while a call waits.
    driver: JoinHandle<Result<(), h2::Error>>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.driver.abort();
    }
}

impl Connection {
    /// Connects, and waits for a sign that the other side speaks HTTP/2.
    pub async fn open(server: &Server, patience: Duration) -> Result<Connection, CallError> {
        let greeting = async {
            let stream = TcpStream::connect((server.host.as_str(), server.port))
                .await
                .map_err(CallError::Unreachable)?;
            let (requests, mut connection) = h2::client::Builder::new()
                .initial_window_size(WINDOW_BYTES)
                .initial_connection_window_size(WINDOW_BYTES)
                .max_header_list_size(MOST_HEADER_BYTES)
                .enable_push(false)
                .handshake::<_, Bytes>(stream)
                .await
                .map_err(not_http2)?;
            let ping = connection.ping_pong();
            let mut connection = Connection { requests, driver: tokio::spawn(connection) };
            if let Some(mut ping) = ping {
                ping.send_ping(Ping::opaque()).map_err(not_http2)?;
                if let Err(error) = poll_fn(|it| ping.poll_pong(it)).await {
                    // Why the connection ended, its driver knows.
                    let ended = (&mut connection.driver).await;
                    return Err(not_http2(ended.ok().and_then(Result::err).unwrap_or(error)));
                }
            }
            Ok(connection)
        };
        timeout(patience, greeting).await.unwrap_or(Err(CallError::Silent))
    }

    /// Calls `path` and feeds the answer to `answer`. `limit` is told to the server; keeping to
    /// it is up to the caller.
    pub async fn call<W: Write>(
        &mut self,
        server: &Server,
        path: &str,
        message: &impl Message,
        limit: Duration,
        answer: &mut Answer<W>,
    ) -> Result<(), CallError> {
        let request = Request::builder()
            .method(Method::POST)
            .version(Version::HTTP_2)
            .uri(format!("http://{server}{path}"))
            .header("te", "trailers")
            .header("content-type", "application/grpc")
            .header("grpc-timeout", grpc_timeout(limit))
            .header("user-agent", concat!("strobe/", env!("CARGO_PKG_VERSION")))
            .body(())
            .map_err(|error| CallError::NotGrpc(error.to_string()))?;
        let mut requests = self.requests.clone().ready().await.map_err(CallError::Broke)?;
        let (response, mut body) =
            requests.send_request(request, false).map_err(CallError::Broke)?;
        body.send_data(frame(message), true).map_err(CallError::Broke)?;

        let response = response.await.map_err(CallError::Broke)?;
        if response.status() != StatusCode::OK {
            let status = response.status();
            return Err(CallError::NotGrpc(format!(
                "the server answers with HTTP status {status}"
            )));
        }
        if !is_grpc(response.headers()) {
            return Err(CallError::NotGrpc("the server's answer is not one of gRPC".to_owned()));
        }
        // An answer without a message has its status among the headers.
        status(response.headers()).unwrap_or(Ok(()))?;
        let mut stream = response.into_body();
        while let Some(part) = next_part(&mut stream).await? {
            answer.feed(&part)?;
            stream.flow_control().release_capacity(part.len()).map_err(CallError::Broke)?;
        }
        let trailers = poll_fn(|it| stream.poll_trailers(it)).await.map_err(CallError::Broke)?;
        match trailers.as_ref().and_then(status) {
            Some(status) => status,
            None => Err(CallError::NotGrpc("the server's answer has no gRPC status".to_owned())),
        }
    }
}

async fn next_part(stream: &mut RecvStream) -> Result<Option<Bytes>, CallError> {
    poll_fn(|it| stream.poll_data(it)).await.transpose().map_err(CallError::Broke)
}

/// The first thing that came was no HTTP/2, unless nothing came at all.
fn not_http2(error: h2::Error) -> CallError {
    match error.get_io() {
        // Closed at once: what a server does that is just starting or going away.
        Some(_) => CallError::Broke(error),
        None => CallError::NotGrpc(format!("it does not speak HTTP/2 ({error})")),
    }
}

fn frame(message: &impl Message) -> Bytes {
    let length = message.encoded_len();
    let mut frame = BytesMut::with_capacity(length + 5);
    frame.put_u8(0);
    frame.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    // Cannot fail: a `BytesMut` grows.
    let _ = message.encode(&mut frame);
    frame.freeze()
}

fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get("content-type").map(|it| it.as_bytes()).unwrap_or_default();
    kind.starts_with(b"application/grpc")
}

/// gRPC allows eight digits.
fn grpc_timeout(limit: Duration) -> String {
    match limit.as_millis() {
        ms @ ..100_000_000 => format!("{ms}m"),
        _ => format!("{}S", limit.as_secs().min(99_999_999)),
    }
}

/// How the call ended, where these headers say so.
fn status(headers: &HeaderMap) -> Option<Result<(), CallError>> {
    let code = headers.get("grpc-status")?;
    // 2: what gRPC calls unknown.
    let code = code.to_str().ok().and_then(|it| it.parse().ok()).unwrap_or(2);
    if code == 0 {
        return Some(Ok(()));
    }
    let message = headers.get("grpc-message").map(|it| unescape(it.as_bytes())).unwrap_or_default();
    Some(Err(CallError::Refused { code, message }))
}

/// Percent-encoded UTF-8 to a text that a terminal may show.
fn unescape(bytes: &[u8]) -> String {
    let mut out = Vec::new();
    let mut rest = bytes;
    while let Some((&first, after)) = rest.split_first() {
        let hex = |at: usize| after.get(at).and_then(|it| char::from(*it).to_digit(16));
        match (first, hex(0), hex(1)) {
            (b'%', Some(high), Some(low)) => {
                out.push((high * 16 + low) as u8);
                rest = &after[2..];
            }
            _ => {
                out.push(first);
                rest = after;
            }
        }
    }
    let text = String::from_utf8_lossy(&out);
    // A stranger's words: no control characters, no novels.
    text.chars().map(|it| if it.is_control() { ' ' } else { it }).take(300).collect()
}

pub mod code {
    pub const ALREADY_EXISTS: u32 = 6;
    pub const UNIMPLEMENTED: u32 = 12;
    pub const UNAVAILABLE: u32 = 14;
}

fn code_name(code: u32) -> &'static str {
    const NAMES: [&str; 17] = [
        "OK",
        "CANCELLED",
        "UNKNOWN",
        "INVALID_ARGUMENT",
        "DEADLINE_EXCEEDED",
        "NOT_FOUND",
        "ALREADY_EXISTS",
        "PERMISSION_DENIED",
        "RESOURCE_EXHAUSTED",
        "FAILED_PRECONDITION",
        "ABORTED",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "INTERNAL",
        "UNAVAILABLE",
        "DATA_LOSS",
        "UNAUTHENTICATED",
    ];
    NAMES.get(code as usize).copied().unwrap_or("an unknown status")
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::{grpc_timeout, unescape};

    #[test]
    fn messages_are_unescaped_and_tamed() {
        assert_eq!(unescape(b"100%25 of caf%C3%A9"), "100% of café");
        assert_eq!(unescape(b"%1b[31m%zz%4"), " [31m%zz%4");
        assert_eq!(unescape(&[b'a'; 1000]).len(), 300);
    }

    #[test]
    fn limits_keep_to_eight_digits() {
        assert_eq!(grpc_timeout(Duration::from_millis(62_500)), "62500m");
        assert_eq!(grpc_timeout(Duration::from_secs(200_000)), "200000S");
        assert_eq!(grpc_timeout(Duration::from_secs(u64::MAX)), "99999999S");
    }
}
