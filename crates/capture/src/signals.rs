//! Signals that reach us reach the command, once, as they would without us.
//!
//! ```text
//! kill PID, timers, a hang-up of our own terminal    we alone got it        passed on
//! Ctrl-C, Ctrl-Z, a resized window                   the command got it too not passed on
//! ignored since before we began (`nohup`)            ignored by both        not passed on
//! ```
//!
//! When the command stops, as by Ctrl-Z, we stop as well, so that a shell sees what it would see
//! without us.

use std::fs;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, getpid, getsid, kill_process, waitid};
use signal_hook::consts::signal::*;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::iterator::{Handle, SignalsInfo};
use signal_hook::low_level::siginfo::{Cause, Origin};

/// Not ours to catch: the kernel's last words on a process, what a terminal says to whoever reads
/// it in the background, and what our own children and pipes say.
const NEVER: [i32; 10] =
    [SIGKILL, SIGSTOP, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGCHLD, SIGTTIN, SIGTTOU, SIGPIPE];
/// What a terminal sends to all in its foreground, the command included.
const OF_TERMINAL: [i32; 5] = [SIGINT, SIGQUIT, SIGTSTP, SIGCONT, SIGWINCH];
/// Limits on a process: the kernel means us alone.
const OF_LIMITS: [i32; 2] = [SIGXCPU, SIGXFSZ];
/// The last one that Linux has; a library keeps some of those before 34 for itself.
const LAST: i32 = 64;
const KEPT_BY_LIBRARY: std::ops::Range<i32> = 32..34;

/// Signals that reach us, kept from ending us.
pub struct Signals {
    info: SignalsInfo<WithOrigin>,
    /// From then on they do what they do to any program.
    is_over: Arc<AtomicBool>,
}

impl Signals {
    pub fn listen() -> Option<Signals> {
        let ignored = ignored();
        let is_ours = |signal: &i32| {
            !NEVER.contains(signal)
                && !KEPT_BY_LIBRARY.contains(signal)
                // A handler would make the command forget that it is to be ignored.
                && (ignored >> (signal - 1)) & 1 == 0
        };
        let last = if cfg!(target_os = "linux") { LAST } else { SIGUSR2 };
        let all: Vec<i32> = (1..=last).filter(is_ours).collect();
        let is_over = Arc::new(AtomicBool::new(false));
        let info = SignalsInfo::<WithOrigin>::new(&all).ok()?;
        for signal in [SIGHUP, SIGINT, SIGQUIT, SIGTERM].iter().filter(|it| all.contains(it)) {
            let _ = signal_hook::flag::register_conditional_default(*signal, is_over.clone());
        }
        Some(Signals { info, is_over })
    }

    pub fn forward_to(mut self, child: u32) -> Forwarding {
        let handle = self.info.handle();
        let is_over = self.is_over.clone();
        let pid = pid_of(child);
        let thread = std::thread::spawn(move || {
            let leads = leads_session();
            for origin in &mut self.info {
                if let Some(pid) = pid.filter(|_| is_for_command(&origin, leads)) {
                    let _ = kill_process(pid, named(origin.signal));
                }
            }
        });
        Forwarding { handle, thread, is_over }
    }
}

/// Whether a terminal that goes away tells us. Where the session began outside of our container its
/// number is 0, which rustix takes for impossible: so we ask the kernel's own table.
fn leads_session() -> bool {
    if cfg!(target_os = "linux") {
        let Ok(stat) = fs::read_to_string("/proc/self/stat") else { return false };
        let Some((own, rest)) = stat.split_once(' ') else { return false };
        let after_name = rest.rsplit_once(')').map_or("", |it| it.1);
        // State, parent, group, session.
        after_name.split_whitespace().nth(3) == Some(own)
    } else {
        getsid(None).is_ok_and(|it| it == getpid())
    }
}

/// Whether the command has not got it already.
fn is_for_command(origin: &Origin, leads: bool) -> bool {
    let is_sent = matches!(origin.cause, Cause::Sent(_));
    let is_own = origin.process.as_ref().is_some_and(|it| it.pid == getpid().as_raw_pid());
    match origin.signal {
        // A limit on us looks as if we had sent it.
        _ if is_own => false,
        _ if is_sent => true,
        // A terminal that goes away tells the leader of its session alone.
        SIGHUP => leads,
        it => !OF_TERMINAL.contains(&it) && !OF_LIMITS.contains(&it),
    }
}

#[expect(unsafe_code, reason = "real-time signals have no names, and so no safe constructor")]
fn named(signal: i32) -> Signal {
    // SAFETY: a valid number, as we just got it, and none that the library keeps for itself:
    // those are not listened to.
    Signal::from_named_raw(signal).unwrap_or_else(|| unsafe { Signal::from_raw_unchecked(signal) })
}

fn pid_of(child: u32) -> Option<Pid> {
    i32::try_from(child).ok().and_then(Pid::from_raw)
}

/// From now on a file that may not grow further is an error to whoever writes it, not our end. The
/// command starts with what it would have without us.
pub fn outlive_file_limits() {
    if (ignored() >> (SIGXFSZ - 1)) & 1 == 0 {
        let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
    }
}

/// Signals that are ignored, one bit for each, the first for number 1. Unknown: none.
fn ignored() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|it| it.strip_prefix("SigIgn:"));
    mask.and_then(|it| u64::from_str_radix(it.trim(), 16).ok()).unwrap_or(0)
}

pub struct Forwarding {
    handle: Handle,
    thread: JoinHandle<()>,
    is_over: Arc<AtomicBool>,
}

impl Forwarding {
    pub fn stop(self) {
        self.handle.close();
        let _ = self.thread.join();
        self.is_over.store(true, Ordering::SeqCst);
    }
}

/// Waits until the command has ended, without taking its end: its number stays its own.
pub fn wait_for(child: u32) -> io::Result<()> {
    let Some(pid) = pid_of(child) else { return Ok(()) };
    let both = WaitIdOptions::EXITED | WaitIdOptions::STOPPED | WaitIdOptions::NOWAIT;
    loop {
        let status = match waitid(WaitId::Pid(pid), both) {
            Err(rustix::io::Errno::INTR) | Ok(None) => continue,
            Err(error) => return Err(error.into()),
            Ok(Some(status)) => status,
        };
        let Some(signal) = status.stopping_signal() else { return Ok(()) };
        // Taken, or it would be told again at once.
        let stopped = waitid(WaitId::Pid(pid), WaitIdOptions::STOPPED | WaitIdOptions::NOHANG);
        // Only what a shell's job control does. Other tools stop and continue the command alone
        // (as `cpulimit` does), and would leave us standing.
        let is_job_control = [SIGTSTP, SIGTTIN, SIGTTOU].contains(&signal);
        if is_job_control && matches!(stopped, Ok(Some(_))) {
            let _ = kill_process(getpid(), Signal::STOP);
        }
    }
}
