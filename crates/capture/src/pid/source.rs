//! What the lines say that stacks pass through, in the user's own files.
//!
//! A flame graph shows the line beside its time. The file may be gone or changed when that is
//! looked at, and who looks may be on another machine: so the few lines that were seen are noted
//! while the program runs. Read from outside, like the stacks, so that it costs the program nothing.

use std::collections::HashMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// More than a program has that is written by hand.
const LARGEST_FILE: u64 = 1 << 20;
/// Files and lines that are noted of one process.
const MOST_FILES: usize = 200;
const MOST_LINES: usize = 2000;
/// Longer lines are cut, in characters.
const LONGEST_LINE: usize = 200;

/// The files of a process. By default, none is read.
#[derive(Debug, Default)]
pub struct Sources {
    of: Option<Program>,
    files: HashMap<String, Option<Vec<String>>>,
    n_lines: usize,
}

#[derive(Debug)]
struct Program {
    /// As the process sees the system, which may be from inside a container.
    root: PathBuf,
    folder: PathBuf,
    /// What was written later is not what runs.
    started: SystemTime,
}

impl Sources {
    /// Of a process of our own user: for others we might read what they must not.
    pub fn of(pid: u32) -> Sources {
        let started = crate::running::started_unix_ns(pid).and_then(|it| u64::try_from(it).ok());
        let of = started.filter(|_| super::permission::is_own(pid)).map(|started| Program {
            root: PathBuf::from(format!("/proc/{pid}/root")),
            folder: PathBuf::from(format!("/proc/{pid}/cwd")),
            started: SystemTime::UNIX_EPOCH + Duration::from_nanos(started),
        });
        Sources { of, ..Sources::default() }
    }

    /// The line without its indent; `None` where it is not the user's or cannot be read.
    pub fn line(&mut self, file: &str, line: i32) -> Option<String> {
        let program = self.of.as_ref()?;
        if self.n_lines >= MOST_LINES || is_installed(file) {
            return None;
        }
        if !self.files.contains_key(file) {
            if self.files.len() >= MOST_FILES {
                return None;
            }
            self.files.insert(file.to_owned(), program.read(file));
        }
        let at = usize::try_from(line).ok()?.checked_sub(1)?;
        let text = self.files.get(file)?.as_ref()?.get(at)?.trim();
        self.n_lines += 1;
        Some(text.chars().take(LONGEST_LINE).collect())
    }
}

impl Program {
    fn read(&self, file: &str) -> Option<Vec<String>> {
        let path = match Path::new(file).strip_prefix("/") {
            Ok(inside) => self.root.join(inside),
            Err(_) => self.folder.join(file),
        };
        let opened = runlog::open(&path).ok()?;
        let about = opened.metadata().ok()?;
        if about.len() > LARGEST_FILE || about.modified().ok()? > self.started {
            return None;
        }
        let mut bytes = Vec::new();
        opened.take(LARGEST_FILE).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8(bytes).ok()?.lines().map(str::to_owned).collect())
    }
}

/// Packages, the standard library, our own hook, and what is no file of Python.
fn is_installed(file: &str) -> bool {
    let installed =
        ["/site-packages/", "/dist-packages/", "/lib/python3", "/lib64/python3", "/.hook/"];
    !file.ends_with(".py") || installed.iter().any(|it| file.contains(it))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::{Program, Sources};

    fn sources(folder: &std::path::Path, started: SystemTime) -> Sources {
        let of = Program { root: folder.to_owned(), folder: folder.to_owned(), started };
        Sources { of: Some(of), ..Sources::default() }
    }

    #[test]
    fn lines_of_the_users_own_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let long = "x".repeat(300);
        std::fs::write(folder.path().join("train.py"), format!("a\n    b(1)\n{long}\n")).unwrap();
        std::fs::write(folder.path().join("secrets.txt"), "a\nb\n").unwrap();
        let later = SystemTime::now() + Duration::from_secs(9);
        let mut of = sources(folder.path(), later);
        assert_eq!(of.line("train.py", 2).as_deref(), Some("b(1)"));
        assert_eq!(of.line("/train.py", 1).as_deref(), Some("a"), "below the process's own root");
        assert_eq!(of.line("train.py", 3).map(|it| it.len()), Some(200));
        for (file, line) in
            [("train.py", 0), ("train.py", -1), ("train.py", 4), ("secrets.txt", 1), ("gone.py", 1)]
        {
            assert_eq!(of.line(file, line), None, "{file}:{line}");
        }
        assert_eq!(Sources::default().line("train.py", 2), None);
    }

    #[test]
    fn a_file_that_was_changed_since_is_not_what_runs() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("train.py"), "a\n").unwrap();
        let mut of = sources(folder.path(), SystemTime::UNIX_EPOCH);
        assert_eq!(of.line("train.py", 1), None);
    }
}
