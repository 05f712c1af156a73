//! The limits of the container a process runs in, and how close it is to them.
//!
//! Limits of control groups hold for all below them: of a group and its parents, the tightest
//! limit counts, and what is used is what its own group uses. Both versions of the interface are
//! known, also side by side.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::json;

use super::text::{Buffer, Kept, number, number_in, number_of, numbers, words};
use super::{Machine, Missing, Moment, Opened, Reader, host};

pub fn open(machine: &Machine, root_pid: u32, opened: &mut Opened) {
    let groups = Groups::of(machine, root_pid);
    let quota = groups.folder("cpu").and_then(|it| Quota::find(&it));
    if let Some(quota) = &quota {
        opened.facts.insert("cores_quota".to_owned(), json!(quota.cores));
    }
    opened
        .add("cpu/throttled", quota.ok_or_else(|| "no quota of processor time is set".to_owned()));
    opened.add(
        "memory/container",
        groups.folder("memory").map_or_else(
            || Err("no control group for memory is mounted".to_owned()),
            |it| Memory::open(&it),
        ),
    );
    match groups.folder("").filter(|it| it.at != it.top) {
        Some(own) => host::pressure(&own.at, ".pressure", "pressure/own", opened),
        None => opened.missing.push(Missing::new(
            "pressure/own",
            "the process is not in a control group (version 2)",
        )),
    }
}

/// Where a group lies, and the highest that can be seen.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Folder {
    at: PathBuf,
    top: PathBuf,
    /// Of the interface: 1 or 2.
    version: u8,
}

impl Folder {
    /// The group and its parents, as far as they can be seen.
    fn upwards(&self) -> impl Iterator<Item = &Path> {
        self.at.ancestors().take_while(|it| it.starts_with(&self.top))
    }
}

/// A process's groups, by controller, and where they are mounted.
#[derive(Debug, Default)]
struct Groups {
    /// Controllers (none for version 2) and the path inside the mounted tree.
    paths: Vec<(Vec<String>, PathBuf)>,
    mounts: Vec<Mount>,
    root: PathBuf,
}

#[derive(Debug)]
struct Mount {
    /// The part of the tree that is mounted, and where.
    of: PathBuf,
    at: PathBuf,
    /// Empty for version 2.
    controllers: Vec<String>,
}

impl Groups {
    fn of(machine: &Machine, root_pid: u32) -> Groups {
        let read = |path: String| std::fs::read_to_string(machine.proc.join(path));
        let paths = read(format!("{root_pid}/cgroup")).unwrap_or_default();
        let mounts = read("self/mountinfo".to_owned()).unwrap_or_default();
        Groups {
            paths: paths.lines().filter_map(path_of).collect(),
            mounts: mounts.lines().filter_map(mount_of).collect(),
            root: machine.root.clone(),
        }
    }

    /// The folder of a controller; the empty name is version 2 itself.
    fn folder(&self, controller: &str) -> Option<Folder> {
        let has = |list: &[String]| match controller {
            "" => list.is_empty(),
            name => list.iter().any(|it| it == name),
        };
        let find = |has: &dyn Fn(&[String]) -> bool, version| {
            let (_, path) = self.paths.iter().find(|it| has(&it.0))?;
            let mount = self.mounts.iter().find(|it| has(&it.controllers))?;
            // A path outside of what is mounted is that of another namespace: its top is ours.
            let inside = path.strip_prefix(&mount.of).unwrap_or(Path::new(""));
            let top = self.root.join(mount.at.strip_prefix("/").unwrap_or(&mount.at));
            let at = top.join(inside);
            let at = if at.is_dir() { at } else { top.clone() };
            Some(Folder { at, top, version })
        };
        let first = if controller.is_empty() { None } else { find(&has, 1) };
        first.or_else(|| find(&|it| it.is_empty(), 2))
    }
}

/// `4:cpu,cpuacct:/docker/1f` or `0::/user.slice`
fn path_of(line: &str) -> Option<(Vec<String>, PathBuf)> {
    let mut parts = line.splitn(3, ':');
    let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
    let names = controllers.split(',').filter(|it| !it.is_empty()).map(str::to_owned).collect();
    Some((names, path.into()))
}

/// `36 35 0:31 /docker/1f /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory`
fn mount_of(line: &str) -> Option<Mount> {
    let (front, back) = line.split_once(" - ")?;
    let mut front = front.split(' ').skip(3);
    let (of, at) = (front.next()?.into(), front.next()?.into());
    let mut back = back.split(' ');
    let controllers = match back.next()? {
        "cgroup2" => Vec::new(),
        "cgroup" => back.nth(1)?.split(',').map(str::to_owned).collect(),
        _ => return None,
    };
    Some(Mount { of, at, controllers })
}

/// Processor time that may be used in a period, and how often it was used up.
struct Quota {
    cores: f64,
    file: Kept,
    buffer: Buffer,
    last: Option<(u64, u64)>,
}

impl Quota {
    fn find(folder: &Folder) -> Option<Quota> {
        let cores = |at: &Path| -> Option<f64> {
            let (quota, period) = if folder.version == 2 {
                let text = std::fs::read(at.join("cpu.max")).ok()?;
                let mut parts = words(&text).map(number);
                (parts.next()??, parts.next()??)
            } else {
                // Minus one, which is no number here, is none.
                (
                    number_in(&at.join("cpu.cfs_quota_us"))?,
                    number_in(&at.join("cpu.cfs_period_us"))?,
                )
            };
            (period > 0).then(|| quota as f64 / period as f64)
        };
        let limits = folder.upwards().filter_map(|it| Some((cores(it)?, it)));
        let (cores, at) = limits.min_by(|a, b| a.0.total_cmp(&b.0))?;
        let file = Kept::open(&at.join("cpu.stat")).ok()?;
        Some(Quota { cores, file, buffer: Buffer::default(), last: None })
    }
}

impl Reader for Quota {
    fn columns(&self) -> Vec<String> {
        vec!["cpu/throttled".to_owned()]
    }

    fn fastest(&self) -> Duration {
        // A period is mostly a tenth of a second.
        Duration::from_millis(190)
    }

    fn read(&mut self, _: Moment, out: &mut [Option<f64>]) -> bool {
        let text = self.file.read(&mut self.buffer).ok();
        let now =
            text.and_then(|it| number_of(it, "nr_periods").zip(number_of(it, "nr_throttled")));
        let before = std::mem::replace(&mut self.last, now);
        out[0] = now.zip(before).and_then(|(now, before)| {
            // Periods pass only while something runs.
            let periods = now.0.checked_sub(before.0).filter(|&it| it > 0)?;
            Some((now.1.checked_sub(before.1)? as f64 / periods as f64).min(1.0))
        });
        true
    }
}

/// Memory in use by the group with the tightest limit, and that limit.
struct Memory {
    used: Kept,
    detail: Option<Kept>,
    /// Absent where none is set.
    limit: Option<Kept>,
    version: u8,
    buffer: Buffer,
}

/// The first version's word for no limit is the largest number of whole pages.
const NO_LIMIT_BYTES: u64 = 1 << 60;

impl Memory {
    fn open(folder: &Folder) -> Result<Memory, String> {
        let (used, limit) = match folder.version {
            2 => ("memory.current", "memory.max"),
            _ => ("memory.usage_in_bytes", "memory.limit_in_bytes"),
        };
        let limits = folder.upwards().filter_map(|it| {
            let bytes = number_in(&it.join(limit)).filter(|&it| it < NO_LIMIT_BYTES)?;
            Some((bytes, it))
        });
        let tightest = limits.min().map(|it| it.1);
        let at = tightest.unwrap_or(&folder.at);
        let mut buffer = Buffer::default();
        let used = Kept::try_open(&at.join(used), &mut buffer)
            .map_err(|why| format!("no control group counts the memory: {why}"))?;
        let limit = tightest.and_then(|it| Kept::open(&it.join(limit)).ok());
        let detail = Kept::open(&at.join("memory.stat")).ok();
        Ok(Memory { used, detail, limit, version: folder.version, buffer })
    }
}

impl Reader for Memory {
    fn columns(&self) -> Vec<String> {
        let mut columns = vec!["memory/container".to_owned()];
        columns.extend(self.limit.as_ref().map(|_| "memory/limit".to_owned()));
        columns
    }

    fn fastest(&self) -> Duration {
        // Reading its detail makes the kernel add up what all cores counted.
        Duration::from_millis(450)
    }

    fn read(&mut self, _: Moment, out: &mut [Option<f64>]) -> bool {
        let first = |file: &Kept, buffer: &mut Buffer| {
            file.read(buffer).ok().and_then(|it| numbers(it).next())
        };
        let used = first(&self.used, &mut self.buffer);
        // Pages of files that nobody uses go as soon as something else needs the room: as the
        // orchestrators do, they are not counted, or whoever reads much data would look full.
        let inactive = if self.version == 2 { "inactive_file" } else { "total_inactive_file" };
        let cached = match &self.detail {
            Some(it) => it.read(&mut self.buffer).ok().and_then(|it| number_of(it, inactive)),
            None => Some(0),
        };
        out[0] = used.zip(cached).map(|(used, cached)| used.saturating_sub(cached) as f64);
        if let (Some(file), Some(out)) = (&self.limit, out.get_mut(1)) {
            *out = first(file, &mut self.buffer).map(|it| it as f64);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Groups, Memory, Quota};
    use crate::hardware::{Machine, Moment, Reader};

    /// A machine of files: paths and what they hold.
    fn machine(files: &[(&str, &str)]) -> (tempfile::TempDir, Machine) {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let at = |it: &str| root.path().join(it);
        let machine = Machine { root: at(""), proc: at("proc"), sys: at("sys"), nvml: None };
        (root, machine)
    }

    const V2: &[(&str, &str)] = &[
        ("proc/7/cgroup", "0::/pod/train\n"),
        (
            "proc/self/mountinfo",
            "1 0 0:2 / / rw - ext4 /dev/vda rw\n2 1 0:3 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
        ),
        ("sys/fs/cgroup/pod/memory.max", "4000\n"),
        ("sys/fs/cgroup/pod/memory.current", "3000\n"),
        ("sys/fs/cgroup/pod/memory.stat", "anon 1000\ninactive_file 500\n"),
        ("sys/fs/cgroup/pod/cpu.max", "max 100000\n"),
        ("sys/fs/cgroup/pod/train/memory.max", "max\n"),
        ("sys/fs/cgroup/pod/train/memory.current", "1500\n"),
        ("sys/fs/cgroup/pod/train/cpu.max", "150000 100000\n"),
        ("sys/fs/cgroup/pod/train/cpu.stat", "usage_usec 5\nnr_periods 10\nnr_throttled 2\n"),
    ];

    #[test]
    fn the_tightest_limit_of_a_group_and_its_parents_counts() {
        let (root, machine) = machine(V2);
        let groups = Groups::of(&machine, 7);
        let mut memory = Memory::open(&groups.folder("memory").unwrap()).unwrap();
        assert_eq!(memory.columns(), ["memory/container", "memory/limit"]);
        let mut out = [None; 2];
        memory.read(Moment::now(), &mut out);
        assert_eq!(out, [Some(2500.0), Some(4000.0)], "without pages of files nobody uses");

        let mut quota = Quota::find(&groups.folder("cpu").unwrap()).unwrap();
        assert_eq!(quota.cores, 1.5);
        let mut out = [Some(9.0)];
        quota.read(Moment::now(), &mut out);
        assert_eq!(out, [None], "one reading is no share");
        let stat = root.path().join("sys/fs/cgroup/pod/train/cpu.stat");
        std::fs::write(stat, "usage_usec 9\nnr_periods 14\nnr_throttled 5\n").unwrap();
        quota.read(Moment::now(), &mut out);
        assert_eq!(out, [Some(0.75)]);
        quota.read(Moment::now(), &mut out);
        assert_eq!(out, [None], "no period has passed");
    }

    #[test]
    fn the_first_version_is_read_too() {
        let (_root, machine) = machine(&[
            ("proc/7/cgroup", "4:memory:/docker/1f\n3:cpu,cpuacct:/docker/1f\n0::/\n"),
            (
                "proc/self/mountinfo",
                "2 1 0:3 /docker/1f /cg/memory rw - cgroup cgroup rw,memory\n\
                 3 1 0:4 / /cg/cpu rw - cgroup cgroup rw,cpu,cpuacct\n",
            ),
            ("cg/memory/memory.limit_in_bytes", "9223372036854771712\n"),
            ("cg/memory/memory.usage_in_bytes", "700\n"),
            ("cg/memory/memory.stat", "inactive_file 1\ntotal_inactive_file 200\n"),
            ("cg/cpu/docker/1f/cpu.cfs_quota_us", "-1\n"),
            ("cg/cpu/docker/1f/cpu.cfs_period_us", "100000\n"),
        ]);
        let groups = Groups::of(&machine, 7);
        let mut memory = Memory::open(&groups.folder("memory").unwrap()).unwrap();
        assert_eq!(memory.columns(), ["memory/container"], "no limit is set");
        let mut out = [None];
        memory.read(Moment::now(), &mut out);
        assert_eq!(out, [Some(500.0)]);
        let cpu = groups.folder("cpu").unwrap();
        assert!(cpu.at.ends_with("cg/cpu/docker/1f"), "{cpu:?}");
        assert!(Quota::find(&cpu).is_none());
    }

    #[test]
    fn a_machine_without_groups_has_no_limits() {
        let (_root, machine) = machine(&[]);
        assert_eq!(Groups::of(&machine, 7).folder("memory"), None);
        let (_root, machine) = self::machine(&[
            ("proc/7/cgroup", "0::/../../elsewhere\n"),
            ("proc/self/mountinfo", "2 1 0:3 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"),
        ]);
        let folder = Groups::of(&machine, 7).folder("memory").unwrap();
        assert_eq!(folder.at, machine.root.join(Path::new("sys/fs/cgroup")), "our own top");
        assert!(Memory::open(&folder).is_err());
    }
}
