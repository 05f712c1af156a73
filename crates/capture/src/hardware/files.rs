//! Which file systems hold the files that a program reads.
//!
//! Now and then what the process tree has open for reading is looked up in the kernel's list of
//! mounts. No file is touched: one behind a network that hangs would hang the sampler too.

use std::collections::{HashMap, HashSet};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};

use super::text::{Buffer, Kept, lines, number, words};
use super::{BUDGET, Moment, Rhythm, thread_time};

/// What the kernel makes up, and what holds no data.
const NO_DATA: [&str; 11] = [
    "bpf",
    "cgroup",
    "cgroup2",
    "debugfs",
    "devpts",
    "devtmpfs",
    "mqueue",
    "proc",
    "securityfs",
    "sysfs",
    "tracefs",
];
/// A program that opens more at a time is looked at in part.
const MOST_OPEN: usize = 4096;
/// As many say enough.
const MOST_FILES: usize = 10_000;
const MOST_MOUNTS: usize = 16;

#[derive(Debug)]
pub struct Files {
    rhythm: Rhythm,
    /// By the kernel's number; none for those without data, and for what is no mount.
    mounts: HashMap<u64, Option<Mount>>,
    seen: HashMap<Mount, HashSet<OsString>>,
    /// As it was last said.
    said: Vec<Mount>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Mount {
    at: String,
    file_system: String,
}

impl Files {
    pub fn new() -> Files {
        Files {
            // What is read now is mostly read a while later.
            rhythm: Rhythm::new(Duration::from_secs(2), BUDGET / 16.0),
            mounts: HashMap::new(),
            seen: HashMap::new(),
            said: Vec::new(),
        }
    }

    /// Looks, if it is time; answers what looking cost.
    pub fn look(
        &mut self,
        now: Moment,
        proc: &Path,
        pids: impl Iterator<Item = u32>,
        buffer: &mut Buffer,
    ) -> Duration {
        if !self.rhythm.is_due(now.at) {
            return Duration::ZERO;
        }
        let before = thread_time();
        let mut left = MOST_OPEN;
        for pid in pids {
            let folder = proc.join(pid.to_string());
            let Ok(open) = std::fs::read_dir(folder.join("fdinfo")) else { continue };
            for entry in open.filter_map(|it| it.ok()).take(left) {
                left -= 1;
                let info = Kept::open(&entry.path());
                let mount = info.ok().and_then(|it| read_from(it.read(buffer).ok()?));
                let Some(mount) = mount else { continue };
                let Some(mount) = self.mount(mount, &folder) else { continue };
                let Ok(file) = std::fs::read_link(folder.join("fd").join(entry.file_name())) else {
                    continue;
                };
                if !file.is_absolute() {
                    continue;
                }
                if self.seen.len() < MOST_MOUNTS || self.seen.contains_key(&mount) {
                    let files = self.seen.entry(mount).or_default();
                    if files.len() < MOST_FILES {
                        files.insert(file.into_os_string());
                    }
                }
            }
        }
        let cost = thread_time().saturating_sub(before);
        self.rhythm.spent(now.at, cost);
        cost
    }

    /// The mount with this number, as a process of this folder sees it.
    fn mount(&mut self, number: u64, process: &Path) -> Option<Mount> {
        if let Some(known) = self.mounts.get(&number) {
            return known.clone();
        }
        let text = std::fs::read(process.join("mountinfo")).ok()?;
        for (number, mount) in lines(&text).filter_map(Mount::parse) {
            let has_data = !NO_DATA.contains(&mount.file_system.as_str());
            self.mounts.insert(number, has_data.then_some(mount));
        }
        self.mounts.entry(number).or_default().clone()
    }

    /// The file systems, most files first, where that is not what was said last.
    pub fn said(&mut self) -> Option<Value> {
        let mut order: Vec<(&Mount, usize)> =
            self.seen.iter().map(|it| (it.0, it.1.len())).collect();
        order.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.at.cmp(&b.0.at)));
        if order.iter().map(|it| it.0).eq(&self.said) {
            return None;
        }
        let said = order
            .iter()
            .map(|(it, files)| json!({"at": it.at, "file_system": it.file_system, "files": files}));
        let said = json!({"files": said.collect::<Vec<_>>()});
        self.said = order.into_iter().map(|it| it.0.clone()).collect();
        Some(said)
    }
}

impl Mount {
    /// `36 35 98:0 / /data rw,noatime shared:1 - ext4 /dev/sda1 rw`
    fn parse(line: &[u8]) -> Option<(u64, Mount)> {
        let mut words = words(line);
        let id = number(words.next()?)?;
        let at = unescaped(words.nth(3)?);
        let file_system = words.skip_while(|it| *it != b"-").nth(1)?;
        Some((id, Mount { at, file_system: String::from_utf8_lossy(file_system).into_owned() }))
    }
}

/// Blanks and the like are written as `\040`.
fn unescaped(text: &[u8]) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, behind)) = rest.split_first() {
        let octal =
            behind.get(..3).filter(|it| first == b'\\' && it.iter().all(u8::is_ascii_digit));
        let byte = octal.and_then(|it| u8::from_str_radix(str::from_utf8(it).ok()?, 8).ok());
        match byte {
            Some(byte) => (out.push(byte), rest = &behind[3..]),
            None => (out.push(first), rest = behind),
        };
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The number of the mount of a file that is open for reading alone; `None` for others and folders.
fn read_from(info: &[u8]) -> Option<u64> {
    let of = |name: &[u8]| {
        let line = lines(info).find_map(|it| it.strip_prefix(name))?;
        words(line).next()
    };
    let flags = u32::from_str_radix(str::from_utf8(of(b"flags:")?).ok()?, 8).ok()?;
    let flags = rustix::fs::OFlags::from_bits_retain(flags);
    let is_read = flags & rustix::fs::OFlags::RWMODE == rustix::fs::OFlags::RDONLY;
    if !is_read || flags.contains(rustix::fs::OFlags::DIRECTORY) {
        return None;
    }
    number(of(b"mnt_id:")?)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::path::Path;

    use super::super::Moment;
    use super::super::text::Buffer;
    use super::{Files, Mount, read_from};

    #[test]
    fn a_mount_may_have_any_name() {
        let line = br"36 35 98:0 /mnt1 /my\040data rw,noatime master:1 shared:2 - nfs4 box:/x rw";
        let (number, mount) = Mount::parse(line).unwrap();
        assert_eq!(
            (number, mount.at.as_str(), mount.file_system.as_str()),
            (36, "/my data", "nfs4")
        );
        assert_eq!(Mount::parse(b"36 35 98:0 /"), None);
        let (_, odd) = Mount::parse(br"1 1 0:1 / /a\9\04 rw - ext4 x rw").unwrap();
        assert_eq!(odd.at, r"/a\9\04", "what is no escape stays");
    }

    #[test]
    fn only_what_is_open_for_reading_counts() {
        assert_eq!(read_from(b"pos:\t0\nflags:\t0100000\nmnt_id:\t29\nino:\t5\n"), Some(29));
        assert_eq!(read_from(b"pos:\t0\nflags:\t0100001\nmnt_id:\t29\n"), None, "written");
        assert_eq!(read_from(b"pos:\t0\nmnt_id:\t29\n"), None);
    }

    #[test]
    fn files_this_process_has_open_are_seen() {
        let folder = tempfile::tempdir().unwrap();
        let paths = ["a", "b", "c"].map(|it| folder.path().join(it));
        let _written = paths.clone().map(|it| File::create(it).unwrap());
        let mut files = Files::new();
        let look = |files: &mut Files| {
            files.rhythm.due = std::time::Instant::now();
            let proc = Path::new("/proc");
            files.look(
                Moment::now(),
                proc,
                [std::process::id()].into_iter(),
                &mut Buffer::default(),
            );
        };
        let known = |files: &Files| {
            files.seen.values().flatten().filter(|it| Path::new(it).starts_with(&folder)).count()
        };
        look(&mut files);
        assert_eq!(known(&files), 0, "they are only written");
        let read = paths.clone().map(|it| File::open(it).unwrap());
        look(&mut files);
        assert_eq!(known(&files), 3);
        let said = files.said().unwrap();
        assert!(said["files"][0]["file_system"].is_string(), "{said}");
        drop(read);
        look(&mut files);
        assert_eq!(known(&files), 3, "what was read once was read");
        assert_eq!(files.said(), None, "nothing new");
    }
}
