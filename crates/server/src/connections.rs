//! Accepts connections, so many at a time, and drops those whose other end does not keep up.
//!
//! ```text
//! accept ─▶ seat ─▶ hyper: head in time, one request after another ─▶ routes
//!                     └─ Paced: answers are read, or the connection ends
//! ```

use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::time::{Instant, Sleep};

use crate::limits::Limits;

/// How long a stopped server waits for answers that are on their way.
const GRACE: Duration = Duration::from_millis(500);
/// Before the next try where the system has no more sockets to give.
const PAUSE: Duration = Duration::from_millis(100);

/// Answers until `stop` is over.
pub(crate) async fn serve(
    listener: TcpListener,
    routes: Router,
    limits: Limits,
    stop: impl Future<Output = ()>,
) {
    let seats = Arc::new(Semaphore::new(limits.connections));
    let connections = GracefulShutdown::new();
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(limits.head_time);
    let mut stop = pin!(stop);
    loop {
        let next = async {
            let seat = Arc::clone(&seats).acquire_owned().await;
            (listener.accept().await, seat)
        };
        let (accepted, seat) = tokio::select! {
            it = next => it,
            () = &mut stop => break,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let stream = TokioIo::new(Paced::new(stream, limits.stall_time));
        let service = TowerToHyperService::new(routes.clone());
        let connection = connections.watch(http.serve_connection(stream, service));
        tokio::spawn(async move {
            // A connection that broke concerns nobody but its client.
            let _ = connection.await;
            drop(seat);
        });
    }
    drop(listener);
    // A client that neither reads nor leaves must not keep the program.
    let _ = tokio::time::timeout(GRACE, connections.shutdown()).await;
}

/// Slower than the slowest tunnel that anybody looks at a page through.
const SLOWEST_BYTES_PER_SECOND: f64 = 4096.0;

/// A stream whose client has to read what is written.
///
/// Time in which nothing can be written adds to the lag, what is written takes off it. So neither
/// a client that stops reading nor one that reads a byte now and then stays for long.
struct Paced {
    stream: TcpStream,
    patience: Duration,
    lag: Duration,
    blocked_since: Option<Instant>,
    alarm: Pin<Box<Sleep>>,
}

impl Paced {
    fn new(stream: TcpStream, patience: Duration) -> Paced {
        let alarm = Box::pin(tokio::time::sleep(patience));
        Paced { stream, patience, lag: Duration::ZERO, blocked_since: None, alarm }
    }

    fn written(&mut self, n_bytes: usize) {
        if let Some(since) = self.blocked_since.take() {
            self.lag += since.elapsed();
        }
        let paid = Duration::from_secs_f64(n_bytes as f64 / SLOWEST_BYTES_PER_SECOND);
        self.lag = self.lag.saturating_sub(paid);
    }

    fn wait<T>(&mut self, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        let since = *self.blocked_since.get_or_insert_with(Instant::now);
        self.alarm.as_mut().reset(since + self.patience.saturating_sub(self.lag));
        ready!(self.alarm.as_mut().poll(context));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncRead for Paced {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Paced {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let Poll::Ready(done) = Pin::new(&mut self.stream).poll_write(context, bytes) else {
            return self.wait(context);
        };
        self.written(*done.as_ref().unwrap_or(&0));
        Poll::Ready(done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let stream = Pin::new(&mut self.stream);
        let Poll::Ready(done) = stream.poll_write_vectored(context, parts) else {
            return self.wait(context);
        };
        self.written(*done.as_ref().unwrap_or(&0));
        Poll::Ready(done)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
