//! Servers to capture from: a profiler service by another implementation of gRPC, and worse.

use std::convert::Infallible;
use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use capture::remote::Server;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tonic::codegen::Service;
use tonic::codegen::tokio_stream::{self, Stream};
use tonic::transport::server::TcpIncoming;

/// The fields of the request that are looked at, written down apart from the client's.
#[derive(Clone, PartialEq, prost::Message)]
pub struct ProfileRequest {
    #[prost(uint64, tag = "1")]
    pub duration_ms: u64,
    #[prost(message, optional, tag = "4")]
    pub opts: Option<ProfileOptions>,
    #[prost(bool, tag = "9")]
    pub emit_xspace: bool,
}

#[derive(Clone, Copy, PartialEq, prost::Message)]
pub struct ProfileOptions {
    #[prost(uint32, tag = "2")]
    pub host_tracer_level: u32,
    #[prost(uint32, tag = "3")]
    pub device_tracer_level: u32,
    #[prost(uint32, tag = "4")]
    pub python_tracer_level: u32,
    #[prost(uint32, tag = "5")]
    pub version: u32,
    #[prost(uint64, tag = "8")]
    pub start_timestamp_ns: u64,
    #[prost(uint64, tag = "9")]
    pub duration_ms: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub struct ProfileResponse {
    #[prost(bool, tag = "7")]
    pub empty_trace: bool,
    #[prost(bytes = "vec", tag = "8")]
    pub xspace: Vec<u8>,
}

/// How a profiler answers.
pub enum Reply {
    Profile(Vec<u8>),
    Empty { empty_trace: bool },
    Status(tonic::Status),
    Endless,
}

impl Reply {
    pub fn profile(bytes: Vec<u8>) -> Reply {
        Reply::Profile(bytes)
    }

    pub fn status(code: tonic::Code, message: &str) -> Reply {
        Reply::Status(tonic::Status::new(code, message))
    }
}

pub fn real_profile() -> Vec<u8> {
    let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/captured");
    std::fs::read(testdata.join("custom_loop/plugins/profile/run/host.xplane.pb")).unwrap()
}

type Asked = Arc<Mutex<Vec<ProfileRequest>>>;

/// The service, as generated code would have it.
#[derive(Clone)]
struct Profiler {
    reply: Arc<dyn Fn(usize) -> Reply + Send + Sync>,
    attempts: Arc<AtomicUsize>,
    asked: Asked,
}

impl tonic::server::NamedService for Profiler {
    const NAME: &'static str = "tensorflow.ProfilerService";
}

impl Service<http::Request<tonic::body::Body>> for Profiler {
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<tonic::body::Body>) -> Self::Future {
        let this = self.clone();
        assert_eq!(request.uri().path(), "/tensorflow.ProfilerService/Profile");
        Box::pin(async move {
            let codec = tonic_prost::ProstCodec::<ProfileResponse, ProfileRequest>::default();
            Ok(tonic::server::Grpc::new(codec).server_streaming(this, request).await)
        })
    }
}

type Responses = Pin<Box<dyn Stream<Item = Result<ProfileResponse, tonic::Status>> + Send>>;

impl tonic::server::ServerStreamingService<ProfileRequest> for Profiler {
    type Response = ProfileResponse;
    type ResponseStream = Responses;
    type Future =
        Pin<Box<dyn Future<Output = Result<tonic::Response<Responses>, tonic::Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<ProfileRequest>) -> Self::Future {
        self.asked.lock().unwrap().push(request.into_inner());
        let attempt = self.attempts.fetch_add(1, Ordering::SeqCst);
        let once = |it| -> Responses { Box::pin(tokio_stream::once(Ok(it))) };
        let responses: Result<Responses, tonic::Status> = match (self.reply)(attempt) {
            Reply::Profile(xspace) => Ok(once(ProfileResponse { xspace, empty_trace: false })),
            Reply::Empty { empty_trace } => {
                Ok(once(ProfileResponse { xspace: Vec::new(), empty_trace }))
            }
            Reply::Status(status) => Err(status),
            Reply::Endless => {
                let part = ProfileResponse { xspace: vec![7; 1 << 20], empty_trace: false };
                Ok(Box::pin(tokio_stream::iter(std::iter::repeat_with(move || Ok(part.clone())))))
            }
        };
        Box::pin(async { responses.map(tonic::Response::new) })
    }
}

/// Runs a server in a thread of its own until the tests end.
fn serve<F: Future<Output = ()>>(
    delay: Duration,
    serve: impl FnOnce(TcpListener) -> F + Send + 'static,
) -> Server {
    // Reserves the port, so that the server can begin later.
    let reserved = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = reserved.local_addr().unwrap();
    let listener = (delay == Duration::ZERO).then_some(reserved);
    std::thread::spawn(move || {
        std::thread::sleep(delay);
        let listener = listener.unwrap_or_else(|| std::net::TcpListener::bind(address).unwrap());
        listener.set_nonblocking(true).unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async { serve(TcpListener::from_std(listener).unwrap()).await });
    });
    at(address)
}

fn at(address: SocketAddr) -> Server {
    address.to_string().parse().unwrap()
}

fn profiler_from(
    delay: Duration,
    reply: impl Fn(usize) -> Reply + Send + Sync + 'static,
) -> (Server, Asked) {
    let asked = Asked::default();
    let attempts = Arc::new(AtomicUsize::new(0));
    let service = Profiler { reply: Arc::new(reply), attempts, asked: asked.clone() };
    let server = serve(delay, |listener| async {
        let server = tonic::transport::Server::builder().add_service(service);
        server.serve_with_incoming(TcpIncoming::from(listener)).await.unwrap();
    });
    (server, asked)
}

/// A profiler that answers by the number of times it was asked, and what it was asked.
pub fn profiler(reply: impl Fn(usize) -> Reply + Send + Sync + 'static) -> (Server, Asked) {
    profiler_from(Duration::ZERO, reply)
}

/// One that is not there at first.
pub fn profiler_after(delay: Duration) -> (Server, Asked) {
    profiler_from(delay, |_| Reply::profile(real_profile()))
}

/// Nobody listens here.
pub fn dead_port() -> Server {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    at(listener.local_addr().unwrap())
}

/// A gRPC server that knows no profiler.
pub fn other_service() -> Server {
    serve(Duration::ZERO, |listener| async {
        let server = tonic::transport::Server::builder().add_service(Other);
        server.serve_with_incoming(TcpIncoming::from(listener)).await.unwrap();
    })
}

#[derive(Clone)]
struct Other;

impl tonic::server::NamedService for Other {
    const NAME: &'static str = "somebody.Else";
}

impl Service<http::Request<tonic::body::Body>> for Other {
    type Response = http::Response<tonic::body::Body>;
    type Error = Infallible;
    type Future = std::future::Ready<Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: http::Request<tonic::body::Body>) -> Self::Future {
        std::future::ready(Ok(tonic::Status::unimplemented("not here").into_http()))
    }
}

/// Handles each connection by itself.
fn each<F: Future<Output = ()> + Send + 'static>(
    handle: impl Fn(TcpStream) -> F + Send + 'static,
) -> Server {
    serve(Duration::ZERO, |listener| async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(handle(stream));
        }
    })
}

/// Answers every request of HTTP/2 by hand.
fn http2<F: Future<Output = ()> + Send + 'static>(
    answer: impl Fn(h2::server::SendResponse<Bytes>) -> F + Send + Sync + Clone + 'static,
) -> Server {
    each(move |stream| {
        let answer = answer.clone();
        async move {
            let mut connection = h2::server::handshake(stream).await.unwrap();
            while let Some(Ok((_, respond))) = connection.accept().await {
                tokio::spawn(answer(respond));
            }
        }
    })
}

fn grpc_headers() -> http::Response<()> {
    http::Response::builder().header("content-type", "application/grpc").body(()).unwrap()
}

/// Sends these bytes as the one message of a call that ends well.
pub fn raw_grpc(message: Vec<u8>) -> Server {
    http2(move |mut respond| {
        let message = message.clone();
        async move {
            let mut body = respond.send_response(grpc_headers(), false).unwrap();
            let length = u32::try_from(message.len()).unwrap().to_be_bytes();
            let framed = [&[0], length.as_slice(), &message].concat();
            body.send_data(framed.into(), false).unwrap();
            let mut trailers = http::HeaderMap::new();
            trailers.insert("grpc-status", "0".parse().unwrap());
            body.send_trailers(trailers).unwrap();
        }
    })
}

/// Promises a profile of 100 MB and sends it byte by byte.
pub fn drips() -> Server {
    http2(|mut respond| async move {
        let mut body = respond.send_response(grpc_headers(), false).unwrap();
        let message = 100_000_000_u32.to_be_bytes();
        body.send_data([&[0], message.as_slice()].concat().into(), false).unwrap();
        body.send_data(Bytes::from_static(&[0x42, 0xE0, 0xC1, 0xD7, 0x2F]), false).unwrap();
        while body.send_data(Bytes::from_static(&[0]), false).is_ok() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
}

/// A web server of our days.
pub fn http2_without_grpc() -> Server {
    http2(|mut respond| async move {
        let response = http::Response::builder().status(404).body(()).unwrap();
        let mut body = respond.send_response(response, false).unwrap();
        let _ = body.send_data(Bytes::from_static(b"not found"), true);
    })
}

/// A web server of former days: no HTTP/2 at all.
pub fn talks_http1() -> Server {
    each(|mut stream| async move {
        let mut request = [0; 24];
        let _ = stream.read_exact(&mut request).await;
        let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n").await;
        tokio::time::sleep(Duration::from_secs(60)).await;
    })
}

/// Accepts, and never says a word.
pub fn talks_nothing() -> Server {
    each(|stream| async move {
        let _open = stream;
        std::future::pending::<()>().await;
    })
}
