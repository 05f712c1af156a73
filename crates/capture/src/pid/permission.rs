//! Whether a process may be read, and if not, the command that mends it.
//!
//! Reads `/proc`; where that is missing, nothing is said before trying.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::PidError;

/// Fails where the system would not let us read the memory of `pid`.
pub fn check(pid: u32) -> Result<(), PidError> {
    if !Path::new("/proc/self/mem").exists() {
        return Ok(());
    }
    // Opening this file is allowed exactly where reading the memory is.
    match fs::File::open(of(pid, "mem")).map_err(|it| it.kind()) {
        Ok(_) => Ok(()),
        Err(ErrorKind::NotFound) => Err(PidError::NoProcess { pid }),
        Err(_) => {
            let read = |path: &str| fs::read_to_string(path).ok();
            let number = |text: String| text.trim().parse().ok();
            let (why, fix) = reason(&Facts {
                pid,
                our_user: user(&read("/proc/self/status").unwrap_or_default()),
                its_user: user(&fs::read_to_string(of(pid, "status")).unwrap_or_default()),
                ptrace_scope: read("/proc/sys/kernel/yama/ptrace_scope").and_then(number),
            });
            Err(PidError::Denied { pid, why, fix })
        }
    }
}

/// Whether a process is of the user that we are.
pub fn is_own(pid: u32) -> bool {
    let user_of = |path: PathBuf| user(&fs::read_to_string(path).ok()?);
    let ours = user_of(PathBuf::from("/proc/self/status"));
    ours.is_some() && ours == user_of(of(pid, "status"))
}

/// What decides whether a process may be read.
struct Facts {
    pid: u32,
    our_user: Option<u32>,
    its_user: Option<u32>,
    /// What Yama allows, where the kernel has it: 0 the own processes, 1 the own children, 2 only
    /// root, 3 nobody.
    ptrace_scope: Option<u32>,
}

fn reason(facts: &Facts) -> (String, String) {
    let Facts { pid, our_user, its_user, ptrace_scope } = *facts;
    let as_root = format!("sudo strobe attach {pid}");
    let scope = "kernel.yama.ptrace_scope";
    match ptrace_scope {
        Some(3..) => (
            format!("{scope} is 3, which holds until the next boot"),
            format!(
                "echo {scope}=1 | sudo tee /etc/sysctl.d/10-ptrace.conf, reboot, then {as_root}"
            ),
        ),
        _ if our_user == Some(0) => (
            "this container lacks the capability SYS_PTRACE".to_owned(),
            "start it with docker run --cap-add=SYS_PTRACE, or in Kubernetes with \
             securityContext: {capabilities: {add: [SYS_PTRACE]}}"
                .to_owned(),
        ),
        _ if its_user.is_some() && its_user != our_user => {
            ("it belongs to another user".to_owned(), as_root)
        }
        Some(level @ 1..) => {
            let for_all = format!(", or for all until the next boot: sudo sysctl {scope}=0");
            (format!("{scope} is {level}"), as_root + &for_all)
        }
        _ => (
            "it runs with other privileges, or a security profile forbids it".to_owned(),
            format!("{as_root}; in a container, start it with docker run --cap-add=SYS_PTRACE"),
        ),
    }
}

fn of(pid: u32, file: &str) -> PathBuf {
    Path::new("/proc").join(pid.to_string()).join(file)
}

/// The user whose rights count, from `/proc/PID/status`.
fn user(status: &str) -> Option<u32> {
    let line = status.lines().find_map(|it| it.strip_prefix("Uid:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// The name of a process, for people.
pub fn name(pid: u32) -> String {
    let name = fs::read_to_string(of(pid, "comm")).unwrap_or_default();
    match name.trim() {
        "" => "unknown".to_owned(),
        name => name.chars().map(|it| if it.is_control() { ' ' } else { it }).collect(),
    }
}

/// Processes that `pid` started, at most a handful.
pub fn children(pid: u32) -> Vec<u32> {
    let children = of(pid, &format!("task/{pid}/children"));
    let children = fs::read_to_string(children).unwrap_or_default();
    children.split_whitespace().filter_map(|it| it.parse().ok()).take(8).collect()
}

/// Whether the process has ended, waited for or not.
pub fn is_gone(pid: u32) -> bool {
    match fs::read_to_string(of(pid, "stat")) {
        // The name before the state may hold anything, brackets too.
        Ok(stat) => {
            let state = stat.rsplit_once(')').map(|it| it.1.trim_start());
            state.is_some_and(|it| it.starts_with(['Z', 'X']))
        }
        Err(_) => Path::new("/proc/self/stat").exists(),
    }
}

/// What this machine is called.
pub fn host() -> String {
    let name = fs::read_to_string("/proc/sys/kernel/hostname").ok();
    let name = name.or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_default();
    if name.trim().is_empty() { "localhost".to_owned() } else { name.trim().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::{Facts, PidError, check, is_gone, reason, user};

    #[test]
    fn each_reason_has_its_command() {
        let fix = |our_user, its_user, ptrace_scope| {
            reason(&Facts { pid: 7, our_user, its_user, ptrace_scope }).1
        };
        let (me, other) = (Some(1000), Some(1001));
        assert_eq!(fix(me, other, Some(0)), "sudo strobe attach 7");
        assert!(fix(me, me, Some(1)).contains("sudo sysctl kernel.yama.ptrace_scope=0"));
        assert!(fix(Some(0), me, Some(1)).contains("--cap-add=SYS_PTRACE"));
        assert!(fix(Some(0), Some(0), Some(3)).contains("reboot"));
        assert!(fix(me, me, None).contains("sudo strobe attach 7"));
    }

    #[test]
    fn processes_are_told_apart() {
        let me = std::process::id();
        assert!(!is_gone(me));
        assert_eq!(user("Name:\tx\nUid:\t1000\t1001\t1000\t1000\n"), Some(1001));
        if cfg!(target_os = "linux") {
            assert!(check(me).is_ok());
            // Above the largest that Linux gives out.
            assert!(matches!(check(5_000_000), Err(PidError::NoProcess { .. })));
            assert!(is_gone(5_000_000));
        }
    }
}
