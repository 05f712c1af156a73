//! The commit that a run is of, and whether files differ from it.
//!
//! Asked only once the command runs, beside it, and not for long: a repository can be on a disk
//! that hangs, and its configuration can name programs that git would run (a file system monitor,
//! hooks, filters). None of them is.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// All questions together.
const LONGEST: Duration = Duration::from_secs(10);
/// After the end of a short command.
const LONGEST_WAIT: Duration = Duration::from_millis(500);
const LOOK_EVERY: Duration = Duration::from_millis(5);
/// More is cut off: nobody has so many filters, and one changed file is enough.
const MOST_BYTES: u64 = 64 << 10;

/// What was asked of git; the answer comes when it comes.
#[derive(Debug)]
pub struct GitState(Receiver<Value>);

impl GitState {
    pub fn ask(folder: &Path) -> GitState {
        let (tell, answer) = mpsc::channel();
        let folder = folder.to_owned();
        let _ = std::thread::Builder::new().name("git".to_owned()).spawn(move || {
            let _ = tell.send(state(&folder));
        });
        GitState(answer)
    }

    /// `{"commit", "dirty"}`; null where there is no repository, no git, or no answer yet.
    pub fn answer(&self) -> Value {
        self.0.recv_timeout(LONGEST_WAIT).unwrap_or(Value::Null)
    }
}

fn state(folder: &Path) -> Value {
    let Some(git) = Git::find(folder) else { return Value::Null };
    let Some(commit) = git.ask(&["rev-parse", "--verify", "HEAD"]) else { return Value::Null };
    let dirty = git.is_dirty();
    json!({"commit": commit.trim(), "dirty": dirty})
}

struct Git<'a> {
    program: PathBuf,
    folder: &'a Path,
    until: Instant,
}

impl<'a> Git<'a> {
    /// The user's own git: none that a repository brings along.
    fn find(folder: &'a Path) -> Option<Git<'a>> {
        let path = std::env::var_os("PATH")?;
        let program = std::env::split_paths(&path)
            .filter(|it| it.is_absolute() && !it.starts_with(folder))
            .map(|it| it.join(if cfg!(windows) { "git.exe" } else { "git" }))
            .find(|it| it.is_file())?;
        Some(Git { program, folder, until: Instant::now() + LONGEST })
    }

    fn is_dirty(&self) -> Option<bool> {
        // Filters compare a file with what is kept of it: without them a changed file may count
        // as changed or not, and nothing of the repository's is run.
        let filters = self.ask(&["config", "--includes", "--name-only", "--get-regexp", FILTERS]);
        let off = filters.unwrap_or_default();
        let off: Vec<String> = off.lines().map(|it| format!("{it}=")).collect();
        let mut arguments: Vec<&str> = off.iter().flat_map(|it| ["-c", it]).collect();
        arguments.extend(["status", "--porcelain", "--untracked-files=no"]);
        arguments.push("--ignore-submodules=all");
        self.ask(&arguments).map(|it| !it.is_empty())
    }

    /// What git prints, if it does so in time and without an error.
    fn ask(&self, arguments: &[&str]) -> Option<String> {
        let mut command = Command::new(&self.program);
        command.args([
            "--no-pager",
            "-c",
            "core.fsmonitor=false",
            "-c",
            "core.hooksPath=/dev/null",
        ]);
        command.args(["-c", "core.untrackedCache=false", "-c", "core.alternateRefsCommand="]);
        command
            .args(arguments)
            .current_dir(self.folder)
            // Asking must not write: the index would be refreshed otherwise.
            .env("GIT_OPTIONAL_LOCKS", "0")
            // Nor fetch what a partial clone lacks, nor ask anybody.
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env_remove("GIT_ASKPASS")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        // So that what it started ends with it, and the terminal's signals are not for it.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = Running(command.spawn().ok()?);
        let mut out = child.0.stdout.take()?.take(MOST_BYTES);
        let (tell, read) = mpsc::channel();
        std::thread::Builder::new()
            .name("git".to_owned())
            .spawn(move || {
                let mut bytes = Vec::new();
                let _ = out.read_to_end(&mut bytes);
                let _ = tell.send(bytes);
            })
            .ok()?;
        let left = self.until.saturating_duration_since(Instant::now());
        let bytes = read.recv_timeout(left).ok()?;
        loop {
            match child.0.try_wait() {
                Ok(Some(status)) if status.success() => break,
                Ok(None) if Instant::now() < self.until => std::thread::sleep(LOOK_EVERY),
                _ => return None,
            }
        }
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }
}

const FILTERS: &str = r"^filter\..*\.(clean|process|smudge|required)$";

/// Ended when nobody waits any more.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        if matches!(self.0.try_wait(), Ok(Some(_))) {
            return;
        }
        #[cfg(unix)]
        if let Some(group) =
            i32::try_from(self.0.id()).ok().and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
        let _ = self.0.kill();
        // One that hangs in the kernel is not waited for.
        let _ = self.0.try_wait();
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;
    use std::time::Instant;

    use super::{Git, LONGEST, state};

    /// A repository with one commit; `None` where there is no git.
    fn repository(folder: &Path) -> Option<()> {
        let git = |arguments: &[&str]| {
            let mut command = Command::new("git");
            command.args([
                "-c",
                "user.name=a",
                "-c",
                "user.email=a@b",
                "-c",
                "commit.gpgsign=false",
            ]);
            command
                .args(arguments)
                .current_dir(folder)
                .output()
                .ok()
                .filter(|it| it.status.success())
        };
        git(&["init", "-q"])?;
        fs::write(folder.join("a.txt"), "one\n").ok()?;
        git(&["add", "a.txt"])?;
        git(&["commit", "-q", "-m", "one"])?;
        Some(())
    }

    #[test]
    fn the_commit_and_changes_are_told() {
        let folder = tempfile::tempdir().unwrap();
        assert_eq!(state(folder.path()), serde_json::Value::Null);
        if repository(folder.path()).is_none() {
            println!("skipped: no git");
            return;
        }
        let clean = state(folder.path());
        assert_eq!(clean["commit"].as_str().unwrap().len(), 40);
        assert_eq!(clean["dirty"], false);
        fs::write(folder.path().join("a.txt"), "changed\n").unwrap();
        assert_eq!(state(folder.path())["dirty"], true);
    }

    #[cfg(unix)]
    #[test]
    fn nothing_of_the_repository_is_run() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        if repository(folder.path()).is_none() {
            println!("skipped: no git");
            return;
        }
        let ran = folder.path().join("ran");
        let script = folder.path().join("script");
        fs::write(&script, format!("#!/bin/sh\ntouch {}\ncat\n", ran.display())).unwrap();
        fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
        let script = script.display();
        let config = format!(
            "[core]\n\trepositoryformatversion = 0\n\tfsmonitor = {script}\n\
             [filter \"x.y\"]\n\tclean = {script}\n\tsmudge = {script}\n\trequired = true\n"
        );
        fs::write(folder.path().join(".git/config"), config).unwrap();
        fs::write(folder.path().join(".gitattributes"), "*.txt filter=x.y\n").unwrap();
        fs::write(folder.path().join("a.txt"), "two\n").unwrap();
        assert_eq!(state(folder.path())["commit"].as_str().unwrap().len(), 40);
        assert!(!ran.exists());
        // It would be, by git alone.
        Command::new("git").arg("status").current_dir(folder.path()).output().unwrap();
        assert!(ran.exists());
    }

    #[cfg(unix)]
    #[test]
    fn one_that_hangs_is_ended() {
        let folder = tempfile::tempdir().unwrap();
        let git = Git {
            program: "/bin/sh".into(),
            folder: folder.path(),
            until: Instant::now() + LONGEST / 50,
        };
        // The options of git make `sh` fail; a program that reads nothing and never ends does not.
        assert_eq!(git.ask(&[]), None);
        let script = folder.path().join("git");
        fs::write(&script, "#!/bin/sh\nsleep 1000 &\necho $! > pid\nwait\n").unwrap();
        fs::set_permissions(&script, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let until = Instant::now() + LONGEST / 10;
        let git = Git { program: script, folder: folder.path(), until };
        assert_eq!(git.ask(&["status"]), None);
        let pid = fs::read_to_string(folder.path().join("pid")).unwrap();
        let pid: u32 = pid.trim().parse().unwrap();
        // What it had started ended with it; somebody else may still have to notice.
        let gone = (0..500).any(|_| {
            std::thread::sleep(super::LOOK_EVERY);
            !crate::running::exists(pid)
        });
        assert!(gone);
    }
}
