//! Takes profiles from running profiler servers, of TensorFlow and of JAX, over gRPC.
//!
//! ```text
//! connect to all ──▶ one start for all ──▶ each records, then sends ──▶ run folder
//! ```
//!
//! Each host fails by itself: what the others sent is kept. All of them are asked to begin at one
//! Unix time (`start_timestamp_ns`), each by its own clock; one that had to be asked again begins
//! when it can. An answer goes straight to a file, so memory does not grow with it, and no server
//! can hold the capture up beyond its deadline or send more than the limit.

mod call;
mod message;
mod save;

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::mem::{Discriminant, discriminant};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::str::FromStr;
use std::task::Poll;
use std::time::{Duration, SystemTime};

use tokio::time::{Instant, sleep, timeout_at};

use self::call::{CallError, Connection, code};
use self::message::{Answer, AnswerError, ProfileOptions, ProfileRequest, Seen};
use self::save::Part;
use crate::folder::{time_name, unix_ns};

/// Where a profiler server listens.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Server {
    /// A name or an address, without the brackets of IPv6.
    pub host: String,
    pub port: u16,
}

impl fmt::Display for Server {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.host.contains(':') {
            true => write!(out, "[{}]:{}", self.host, self.port),
            false => write!(out, "{}:{}", self.host, self.port),
        }
    }
}

/// A text that names no server.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{text:?} is no HOST:PORT\n  hint: as in 10.0.0.7:6009, :6009 for this machine, [::1]:6009"
)]
pub struct NoServer {
    text: String,
}

impl FromStr for Server {
    type Err = NoServer;

    fn from_str(text: &str) -> Result<Server, NoServer> {
        let error = || NoServer { text: text.to_owned() };
        let (host, port) = text.trim_start_matches("grpc://").rsplit_once(':').ok_or_else(error)?;
        let port = port.parse().ok().filter(|it| *it != 0).ok_or_else(error)?;
        let bare = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        let host = match (host, bare) {
            ("", _) => "127.0.0.1",
            (_, Some(address)) if address.parse::<std::net::Ipv6Addr>().is_ok() => address,
            (name, None) => name,
            _ => return Err(error()),
        };
        // What may stand in a name; a zone (`%eth0`) belongs to IPv6 and would not survive a URI.
        let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_');
        if bare.is_none() && !host.chars().all(plain) {
            return Err(error());
        }
        Ok(Server { host: host.to_owned(), port })
    }
}

impl Server {
    /// As profilers name their files: `HOST_PORT`.
    fn file_name(&self) -> String {
        let host: String = self.host.chars().map(|it| if it == ':' { '_' } else { it }).collect();
        format!("{host}_{}", self.port)
    }
}

/// How to capture.
#[derive(Debug, Clone)]
pub struct Options {
    /// How long each host records.
    pub duration: Duration,
    /// How long to wait for servers that are not there yet, or busy.
    pub wait: Duration,
    /// How long a server may take, beyond the time it records, to hand over its profile.
    pub grace: Duration,
    /// The largest answer that is taken from one host.
    pub max_bytes: u64,
    /// Also record calls of Python functions, which slows the job down.
    pub python_calls: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            duration: Duration::from_secs(2),
            wait: Duration::from_secs(5),
            grace: Duration::from_secs(60),
            max_bytes: 1 << 30,
            python_calls: false,
        }
    }
}

impl Options {
    /// How long a server may take to accept a connection and to show that it speaks HTTP/2.
    fn patience(&self) -> Duration {
        self.wait.clamp(Duration::from_secs(1), Duration::from_secs(5))
    }
}

/// A profile that was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Captured {
    /// Below the run folder.
    pub file: PathBuf,
    pub bytes: u64,
    /// Times the server was asked.
    pub attempts: u32,
    /// When recording was to begin, if at one time with the other hosts.
    pub common_start_unix_ns: Option<u64>,
}

/// Why there is no profile of a host.
#[derive(Debug, thiserror::Error)]
pub enum RemoteError {
    #[error(
        "nothing listens there ({source})\n  hint: start a profiler server in the job: {SERVERS}"
    )]
    NotThere { source: io::Error },
    #[error(
        "something listens there but says nothing\n  hint: is this the port of the profiler server?"
    )]
    Silent,
    #[error(
        "not a profiler server: {why}\n  hint: start one in the job, on its own port: \
         {SERVERS}"
    )]
    NoProfiler { why: String },
    #[error(
        "another profiling session is active there, and a process has room for one\n  hint: stop \
         the other one (a TensorBoard callback, a profiler that was never stopped), or wait longer \
         for its end: --wait SECONDS"
    )]
    Busy,
    #[error("the server could not: {why}")]
    Refused { why: String },
    #[error("the connection broke while the profile was taken: {why}")]
    Broke { why: String },
    #[error(
        "no whole answer within {} s, {bytes} bytes have come\n  hint: allow more: --grace SECONDS; \
         is its clock right?",
        limit.as_secs()
    )]
    TooSlow { limit: Duration, bytes: u64 },
    #[error(
        "its profile is {bytes} bytes or more, the limit is {limit}\n  hint: capture a shorter \
         time, or allow more: --max-bytes {bytes}"
    )]
    TooLarge { bytes: u64, limit: u64 },
    #[error(
        "the server recorded nothing\n  hint: did the job run at that time? try a longer --duration"
    )]
    Empty,
    #[error(
        "the answer holds no profile: this server is older than the option to send it back, and \
         writes it to its own disk\n  hint: capture there with the framework's own client, and open \
         the *.xplane.pb it writes with strobe report"
    )]
    Elsewhere,
    #[error("the answer is damaged: {what}")]
    Garbage { what: String },
    #[error("the profile could not be written: {source}\n  path: {}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

/// One line of code each.
pub const SERVERS: &str =
    "tf.profiler.experimental.server.start(6009) or jax.profiler.start_server(6009)";

/// What happens meanwhile, for people.
#[derive(Debug, Clone, Copy)]
pub enum Said<'a> {
    /// It is not there yet, or cannot yet; it is asked again.
    Waiting(&'a RemoteError),
    Recording {
        common_start: bool,
    },
}

/// Time for all requests to arrive before any host begins.
const LEAD: Duration = Duration::from_millis(500);
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);
/// What TensorFlow's own client asks for.
const MAX_EVENTS: u64 = 1_000_000;
const PROFILE: &str = "/tensorflow.ProfilerService/Profile";

/// Captures from all `servers` at once into `folder`; one outcome for each, in their order.
pub fn capture(
    servers: &[Server],
    options: &Options,
    folder: &Path,
    say: &dyn Fn(&Server, Said<'_>),
) -> io::Result<Vec<Result<Captured, RemoteError>>> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let outcomes = runtime.block_on(async {
        let until = Instant::now() + options.wait;
        let connecting = servers.iter().map(|it| boxed(connect(it, options, until, say)));
        let connections = all(connecting.collect()).await;

        let now = SystemTime::now();
        let one_start = connections.iter().filter(|it| it.is_ok()).count() > 1;
        let take = Take {
            options,
            folder,
            say,
            run: time_name(now, '_'),
            common_start_unix_ns: one_start.then(|| unix_ns(now + LEAD)),
            // Waiting for the slowest must not cost the others their second chance.
            until: until.max(Instant::now() + options.wait),
        };
        let taking = servers.iter().zip(connections);
        all(taking.map(|(server, it)| boxed(take.from(server, it))).collect()).await
    });
    // A name that is still being looked up holds nobody up.
    runtime.shutdown_background();
    Ok(outcomes)
}

/// Connects, trying again while nothing listens there.
async fn connect(
    server: &Server,
    options: &Options,
    until: Instant,
    say: &dyn Fn(&Server, Said<'_>),
) -> Result<Connection, RemoteError> {
    let mut retry = Retry::new(until);
    loop {
        let error = match Connection::open(server, options.patience()).await {
            Ok(connection) => return Ok(connection),
            Err(error) => RemoteError::of_call(error),
        };
        retry.after(server, error, say).await?;
    }
}

/// Waits between attempts, longer each time; says once for each reason why.
struct Retry {
    until: Instant,
    pause: Duration,
    attempts: u32,
    said: Vec<Discriminant<RemoteError>>,
}

impl Retry {
    fn new(until: Instant) -> Retry {
        Retry { until, pause: FIRST_PAUSE, attempts: 1, said: Vec::new() }
    }

    /// Gives the error back where another attempt makes no sense, or comes too late.
    async fn after(
        &mut self,
        server: &Server,
        error: RemoteError,
        say: &dyn Fn(&Server, Said<'_>),
    ) -> Result<(), RemoteError> {
        let passing = matches!(
            error,
            RemoteError::NotThere { .. }
                | RemoteError::Busy
                | RemoteError::Empty
                | RemoteError::Broke { .. }
        );
        if !passing || Instant::now() + self.pause > self.until {
            return Err(error);
        }
        let reason = discriminant(&error);
        if !self.said.contains(&reason) {
            self.said.push(reason);
            say(server, Said::Waiting(&error));
        }
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(LONGEST_PAUSE);
        self.attempts += 1;
        Ok(())
    }
}

/// What taking a profile needs to know, the same for all hosts.
struct Take<'a> {
    options: &'a Options,
    folder: &'a Path,
    say: &'a dyn Fn(&Server, Said<'_>),
    /// The name of the run, as profilers name them.
    run: String,
    common_start_unix_ns: Option<u64>,
    until: Instant,
}

impl Take<'_> {
    async fn from(
        &self,
        server: &Server,
        connection: Result<Connection, RemoteError>,
    ) -> Result<Captured, RemoteError> {
        let mut connection = Some(connection?);
        let mut retry = Retry::new(self.until);
        loop {
            // Only the first request can be in time for the common start.
            let start = self.common_start_unix_ns.filter(|_| retry.attempts == 1);
            if retry.attempts == 1 {
                (self.say)(server, Said::Recording { common_start: start.is_some() });
            }
            let error = match self.once(server, connection.take(), start).await {
                Ok((file, bytes)) => {
                    let attempts = retry.attempts;
                    return Ok(Captured { file, bytes, attempts, common_start_unix_ns: start });
                }
                Err(error) => error,
            };
            retry.after(server, error, self.say).await?;
        }
    }

    async fn once(
        &self,
        server: &Server,
        connection: Option<Connection>,
        start: Option<u64>,
    ) -> Result<(PathBuf, u64), RemoteError> {
        let name = server.file_name();
        let file = Path::new("profile").join(&name).join("plugins/profile").join(&self.run);
        let file = file.join(format!("{name}.xplane.pb"));
        let path = self.folder.join(&file);
        let mut answer = Answer::new(Part::of(&path), self.options.max_bytes);

        let limit = LEAD + self.options.duration + self.options.grace;
        let call = async {
            let mut connection = match connection {
                Some(connection) => connection,
                None => Connection::open(server, self.options.patience()).await?,
            };
            let request = self.request(&name, start);
            connection.call(server, PROFILE, &request, limit, &mut answer).await
        };
        let done = timeout_at(Instant::now() + limit, call).await;
        let bytes = answer.seen.bytes;
        match done {
            Ok(Ok(())) => (),
            Ok(Err(CallError::Answer(error))) => return Err(self.of_answer(error, &path)),
            Ok(Err(error)) => return Err(RemoteError::of_call(error)),
            Err(_) => return Err(RemoteError::TooSlow { limit, bytes }),
        }
        let (part, seen) = answer.finish().map_err(|error| self.of_answer(error, &path))?;
        match seen {
            Seen { profile_bytes: 1.., .. } => (),
            Seen { empty_trace: true, .. } => return Err(RemoteError::Empty),
            _ => return Err(RemoteError::Elsewhere),
        }
        let write_error = |source| RemoteError::Write { path: path.clone(), source };
        if !part.is_plausible().map_err(write_error)? {
            let what = format!("its {} bytes are no profile", seen.profile_bytes);
            return Err(RemoteError::Garbage { what });
        }
        part.keep().map_err(write_error)?;
        Ok((file, seen.profile_bytes))
    }

    fn request(&self, host_name: &str, start: Option<u64>) -> ProfileRequest {
        // A server that is asked for no time at all takes its own default.
        let duration_ms =
            u64::try_from(self.options.duration.as_millis()).unwrap_or(u64::MAX).max(1);
        ProfileRequest {
            duration_ms,
            max_events: MAX_EVENTS,
            opts: Some(ProfileOptions {
                include_dataset_ops: false,
                // What the frameworks record by default.
                host_tracer_level: 2,
                device_tracer_level: 1,
                python_tracer_level: u32::from(self.options.python_calls),
                version: 1,
                enable_hlo_proto: true,
                start_timestamp_ns: start.unwrap_or(0),
                duration_ms,
            }),
            session_id: self.run.clone(),
            host_name: host_name.to_owned(),
            emit_xspace: true,
        }
    }

    fn of_answer(&self, error: AnswerError, path: &Path) -> RemoteError {
        match error {
            AnswerError::TooLarge { bytes } => {
                RemoteError::TooLarge { bytes, limit: self.options.max_bytes }
            }
            AnswerError::Malformed(what) => RemoteError::Garbage { what: what.to_owned() },
            AnswerError::Io(source) => RemoteError::Write { path: path.to_owned(), source },
        }
    }
}

impl RemoteError {
    fn of_call(error: CallError) -> RemoteError {
        match error {
            CallError::Unreachable(source) => RemoteError::NotThere { source },
            CallError::Silent => RemoteError::Silent,
            CallError::NotGrpc(why) => RemoteError::NoProfiler { why },
            CallError::Broke(error) => RemoteError::Broke { why: error.to_string() },
            CallError::Answer(error) => RemoteError::Garbage { what: error.to_string() },
            CallError::Refused { code, ref message } => match code {
                code::ALREADY_EXISTS => RemoteError::Busy,
                // Older TensorFlow calls that unavailable, in the same words.
                _ if message.contains("Another profil") => RemoteError::Busy,
                code::UNAVAILABLE => RemoteError::Broke { why: error.to_string() },
                code::UNIMPLEMENTED => {
                    RemoteError::NoProfiler { why: "it speaks gRPC, but cannot profile".to_owned() }
                }
                _ => RemoteError::Refused { why: error.to_string() },
            },
        }
    }
}

type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

fn boxed<'a, T>(future: impl Future<Output = T> + 'a) -> Boxed<'a, T> {
    Box::pin(future)
}

/// Drives all of them to their end; what they gave, in their order.
async fn all<T>(mut futures: Vec<Boxed<'_, T>>) -> Vec<T> {
    let mut done: Vec<Option<T>> = futures.iter().map(|_| None).collect();
    poll_fn(|context| {
        for (future, done) in futures.iter_mut().zip(&mut done) {
            if done.is_none()
                && let Poll::Ready(it) = future.as_mut().poll(context)
            {
                *done = Some(it);
            }
        }
        if done.iter().all(Option::is_some) { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    done.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::Server;

    #[test]
    fn servers_are_named_in_many_ways() {
        let read = |text: &str| text.parse::<Server>().map(|it| it.to_string());
        assert_eq!(read("10.0.0.7:6009").unwrap(), "10.0.0.7:6009");
        assert_eq!(read("grpc://worker-3.local:6009").unwrap(), "worker-3.local:6009");
        assert_eq!(read(":6009").unwrap(), "127.0.0.1:6009");
        assert_eq!(read("[::1]:6009").unwrap(), "[::1]:6009");
        for wrong in
            ["6009", "host:", "host:0", "host:70000", "::1:6009", "[x]:1", "a/b:1", "a b:1"]
        {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn no_host_leaves_its_folder() {
        let name = |text: &str| text.parse::<Server>().unwrap().file_name();
        assert_eq!(name("..:1"), ".._1");
        assert_eq!(name("[fe80::1]:6009"), "fe80__1_6009");
        assert_eq!(name("10.0.0.7:6009"), "10.0.0.7_6009");
    }
}
