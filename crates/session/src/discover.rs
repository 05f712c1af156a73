//! Finds the files of one run below a path.
//!
//! A log folder holds runs at any depth: `plugins/profile/<run>/<host>.xplane.pb`, Keras' below
//! `train/`. The files of one folder are the hosts of one run. A folder that a capture of ours
//! wrote, which its `manifest.json` shows, is one run with all that lies below it.
//!
//! Links are followed, after everything that is there by itself: so a folder is looked into once,
//! under its own name where it has one below the path, and no loop of links is endless. A file with
//! two names in one run is one host.
//!
//! TensorBoard's event files join the run that is opened ([`events`]).

mod events;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::fmt;
use std::fs::{self, Metadata};
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use serde::Deserialize;
use sources::{Claim, Claimed, HEAD, Listed};
use walkdir::{DirEntry, WalkDir};

use self::events::Log;
use crate::OpenError;
use crate::disk::{Identity, identity};

/// The files that are read together, and what else was there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// What the user named.
    pub path: PathBuf,
    /// The folder or file that was taken.
    pub folder: PathBuf,
    /// For people: what that is called.
    pub name: String,
    /// One for each host, in the order of their names; then what was recorded beside them.
    pub files: Vec<PathBuf>,
    /// Where a training log begins: its runs are named by the folders below.
    pub log_folder: PathBuf,
    /// Event files that belong here and are more than is read at once.
    pub n_left_out: usize,
    /// Folders and links that could not be looked into.
    pub unreadable: Vec<Unreadable>,
    /// Folders of the runs that were not taken, newest first.
    pub others: Vec<PathBuf>,
}

/// What could not be looked into, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unreadable {
    pub path: PathBuf,
    pub why: String,
}

impl Unreadable {
    fn new(path: &Path, why: &io::Error) -> Unreadable {
        let why = match why.kind() {
            io::ErrorKind::NotFound => "this link leads nowhere".to_owned(),
            io::ErrorKind::PermissionDenied => "permission denied".to_owned(),
            _ => why.to_string(),
        };
        Unreadable { path: path.to_owned(), why }
    }
}

impl fmt::Display for Unreadable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: {}", self.path.display(), self.why)
    }
}

impl Run {
    /// The newest run at a path.
    pub fn find(path: &Path) -> Result<Run, OpenError> {
        Run::find_one(path, None)
    }

    /// The run in `folder`, as [`Run::find`] took it from `path` before newer ones came.
    pub fn find_again(path: &Path, folder: &Path) -> Result<Run, OpenError> {
        Run::find_one(path, Some(folder))
    }

    fn find_one(path: &Path, wanted: Option<&Path>) -> Result<Run, OpenError> {
        let about = fs::metadata(path).map_err(|source| match source.kind() {
            io::ErrorKind::NotFound => OpenError::Missing { path: path.to_owned() },
            _ => OpenError::Io { path: path.to_owned(), source },
        })?;
        let name = |path: &Path| {
            let name =
                path.file_name().or_else(|| path.components().next_back().map(|it| it.as_os_str()));
            name.map(|it| it.to_string_lossy().into_owned()).unwrap_or_default()
        };
        let mut run = Run {
            path: path.to_owned(),
            folder: path.to_owned(),
            name: name(path),
            files: Vec::new(),
            log_folder: path.to_owned(),
            n_left_out: 0,
            unreadable: Vec::new(),
            others: Vec::new(),
        };
        if !about.is_dir() {
            run.files.push(path.to_owned());
            run.log_folder = path.parent().unwrap_or(Path::new("")).to_owned();
            if claim_by_name(path) == Some(Claim::Profile)
                && let Some(above) = Log::above(&run.log_folder)
            {
                run.join(above);
            }
            return Ok(run);
        }
        let found = Found::below(path);
        run.unreadable = found.unreadable;
        let mut runs: Vec<(PathBuf, Vec<Member>)> = found.runs.into_iter().collect();
        runs.sort_by_cached_key(|(folder, files)| {
            // What is no copy anywhere says most.
            let says_most = files.iter().any(Member::is_original);
            std::cmp::Reverse((says_most, when(folder, files), folder.clone()))
        });
        if let Some(wanted) = wanted {
            // Stable: the others stay newest first.
            runs.sort_by_key(|it| it.0 != wanted);
            match runs.first() {
                Some(it) if it.0 == wanted => (),
                // A training log that had no profile yet.
                _ if wanted == path => runs.clear(),
                _ => return Err(OpenError::Missing { path: wanted.to_owned() }),
            }
        }
        let mut runs = runs.into_iter();
        if let Some((folder, files)) = runs.next() {
            run.name = name(&folder);
            run.folder = folder.clone();
            // Profiles say when the trace begins; what was recorded beside them follows.
            let mut files = files;
            files.sort_by_key(|it| it.claimed.claim == Claim::Beside);
            run.files = files.into_iter().map(|it| it.path).collect();
            run.others = runs.map(|it| it.0).collect();
            let log = match found.wholes.contains(&folder) {
                true => Log::below(&folder, &found.events, &folder),
                false => {
                    Log::above(path).unwrap_or_else(|| Log::below(path, &found.events, &folder))
                }
            };
            run.join(log);
        } else {
            run.join(Log::below(path, &found.events, path));
        }
        if !run.files.is_empty() {
            return Ok(run);
        }
        let path = path.to_owned();
        Err(match run.unreadable.into_iter().next() {
            Some(unreadable) => OpenError::UnreadableFolder { path, unreadable },
            None => OpenError::NoProfile { path },
        })
    }

    /// Whether there is only a training log here, and neither a profile nor a capture.
    pub fn is_log_only(&self) -> bool {
        self.files.iter().all(|it| claim_by_name(it) == Some(Claim::Log))
    }

    fn join(&mut self, log: Log) {
        self.log_folder = log.folder;
        self.files.extend(log.files);
        self.n_left_out = log.n_left_out;
    }
}

/// What lies below a path.
#[derive(Default)]
struct Found {
    /// The folder that the user named.
    named: PathBuf,
    runs: BTreeMap<PathBuf, Vec<Member>>,
    /// Those of `runs` that a capture of ours wrote.
    wholes: BTreeSet<PathBuf>,
    events: Vec<PathBuf>,
    unreadable: Vec<Unreadable>,
    folders: HashSet<Identity>,
    /// Which files each run has.
    files: HashSet<(PathBuf, Identity)>,
    links: VecDeque<Link>,
}

/// A file of a run.
struct Member {
    path: PathBuf,
    claimed: Claimed,
}

impl Member {
    /// A profile that is no copy of another format's.
    fn is_original(&self) -> bool {
        self.claimed.claim == Claim::Profile && self.claimed.source.copies().is_empty()
    }
}

/// A link that is followed when everything that is no link was looked at.
struct Link {
    path: PathBuf,
    /// The folder above that makes all below it one run.
    whole: Option<PathBuf>,
}

impl Found {
    fn below(path: &Path) -> Found {
        let mut found = Found { named: path.to_owned(), ..Found::default() };
        // A link to a folder above leads back here, through everything else that is there.
        let without_links = fs::canonicalize(path).unwrap_or_default();
        for above in without_links.ancestors().skip(1) {
            let about = fs::metadata(above);
            found.folders.extend(about.ok().and_then(|it| identity(above, &it)));
        }
        found.walk(path, None);
        while let Some(Link { path, whole }) = found.links.pop_front() {
            match fs::metadata(&path) {
                Ok(about) if about.is_dir() => found.walk(&path, whole),
                Ok(about) => found.file(&path, &about, whole.as_deref()),
                Err(error) => found.cannot_read(&path, &error),
            }
        }
        for files in found.runs.values_mut() {
            files.sort_by(|a, b| a.path.cmp(&b.path));
            drop_copies(files);
        }
        found
    }

    /// Looks into a folder and all below it. `whole`: the folder above that makes it one run.
    fn walk(&mut self, folder: &Path, whole: Option<PathBuf>) {
        // The captures that the walk is in.
        let mut wholes: Vec<PathBuf> = whole.into_iter().collect();
        let mut walk = WalkDir::new(folder).sort_by_file_name().into_iter();
        while let Some(entry) = walk.next() {
            let entry = match entry {
                Ok(entry) => entry,
                Err(error) => {
                    let path = error.path().unwrap_or(folder).to_owned();
                    // With its path, which is named already, where there is nothing better.
                    match error.io_error() {
                        Some(error) => self.cannot_read(&path, error),
                        None => self.cannot_read(&path, &error.into()),
                    }
                    continue;
                }
            };
            let path = entry.path();
            while wholes.last().is_some_and(|it| entry.depth() > 0 && !path.starts_with(it)) {
                wholes.pop();
            }
            let is_root = entry.depth() == 0;
            if entry.path_is_symlink() && !is_root {
                let path = entry.into_path();
                self.links.push_back(Link { path, whole: wholes.first().cloned() });
                continue;
            }
            let about = match about(&entry) {
                Ok(about) => about,
                Err(error) => {
                    self.cannot_read(path, &error);
                    continue;
                }
            };
            if !about.is_dir() {
                self.file(path, &about, wholes.first().map(PathBuf::as_path));
            } else if identity(path, &about).is_some_and(|it| !self.folders.insert(it)) {
                walk.skip_current_dir();
            } else if is_capture(path) {
                wholes.push(path.to_owned());
            }
        }
    }

    fn file(&mut self, path: &Path, about: &Metadata, whole: Option<&Path>) {
        let folder = path.parent().unwrap_or(Path::new(""));
        // Of a whole folder of data every file would have to be opened: only of the one named.
        let is_named = folder == self.named;
        let name = file_name(path);
        let listed = Listed { name: &name, is_named, in_capture: whole == Some(folder) };
        let Some(claimed) = sources::claim(listed, || head(path)) else { return };
        if claimed.claim == Claim::Log {
            self.events.push(path.to_owned());
        } else {
            self.wholes.extend(whole.map(Path::to_owned));
            let run = whole.unwrap_or(folder).to_owned();
            let is_new =
                identity(path, about).is_none_or(|it| self.files.insert((run.clone(), it)));
            if is_new {
                let path = path.to_owned();
                self.runs.entry(run).or_default().push(Member { path, claimed });
            }
        }
    }

    fn cannot_read(&mut self, path: &Path, error: &io::Error) {
        // What was taken away since is not there; a link to nowhere is.
        if error.kind() != io::ErrorKind::NotFound || path.is_symlink() {
            self.unreadable.push(Unreadable::new(path, error));
        }
    }
}

/// Of what is behind the link, if the walk began with one.
fn about(entry: &DirEntry) -> io::Result<Metadata> {
    match entry.path_is_symlink() {
        true => fs::metadata(entry.path()),
        false => entry.metadata().map_err(io::Error::from),
    }
}

/// More than a manifest of ours can be.
const LARGEST_MANIFEST: u64 = 16 << 20;

/// Whether `strobe run` or `strobe attach` wrote this folder.
fn is_capture(folder: &Path) -> bool {
    /// All that is asked of it.
    #[derive(Deserialize)]
    struct Manifest {
        #[serde(rename = "schema")]
        _schema: u64,
    }
    let Ok(file) = runlog::open(&folder.join("manifest.json")) else { return false };
    let text = BufReader::new(file.take(LARGEST_MANIFEST));
    serde_json::from_reader::<_, Manifest>(text).is_ok()
}

/// In each folder, what only repeats another file of it.
fn drop_copies(files: &mut Vec<Member>) {
    let mut originals: HashMap<PathBuf, Vec<&'static str>> = HashMap::new();
    for it in files.iter() {
        let folder = it.path.parent().unwrap_or(Path::new("")).to_owned();
        let names = originals.entry(folder).or_default();
        if !names.contains(&it.claimed.source.name()) {
            names.push(it.claimed.source.name());
        }
    }
    files.retain(|it| {
        let folder = it.path.parent().unwrap_or(Path::new(""));
        let beside = originals.get(folder).map_or(&[][..], Vec::as_slice);
        !it.claimed.source.copies().iter().any(|it| beside.contains(it))
    });
}

/// What a file is by its name alone.
fn claim_by_name(path: &Path) -> Option<Claim> {
    let name = file_name(path);
    let listed = Listed { name: &name, is_named: false, in_capture: false };
    sources::claim(listed, Vec::new).map(|it| it.claim)
}

/// The first bytes of a file, unzipped; none where it cannot be read.
fn head(path: &Path) -> Vec<u8> {
    let Ok(mut file) = runlog::open(path) else { return Vec::new() };
    let mut head = Vec::new();
    if (&mut file).take(HEAD as u64).read_to_end(&mut head).is_err() {
        return Vec::new();
    }
    if head.starts_with(&[0x1F, 0x8B]) {
        let mut unzipped = Vec::new();
        let zipped = flate2::bufread::MultiGzDecoder::new(head.as_slice());
        // The head ends inside: what came before that is there.
        let _ = zipped.take(HEAD as u64).read_to_end(&mut unzipped);
        head = unzipped;
    }
    head.truncate(HEAD);
    head
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default()
}

/// When a run was made: profilers name its folder by the time; else by its newest file.
fn when(folder: &Path, files: &[Member]) -> u64 {
    let name = folder.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
    if let Some(seconds) = seconds_of_name(&name) {
        return seconds;
    }
    let changed = |it: &Member| fs::metadata(&it.path).and_then(|it| it.modified()).ok();
    let newest = files.iter().filter_map(changed).max().unwrap_or(SystemTime::UNIX_EPOCH);
    newest.duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs())
}

/// `2026_11_15_20_30_23` as seconds since 1970, near enough to compare.
fn seconds_of_name(name: &str) -> Option<u64> {
    let parts: Vec<u64> = name.split('_').map(str::parse).collect::<Result<_, _>>().ok()?;
    let &[year, month, day, hour, minute, second] = parts.as_slice() else { return None };
    let is_date =
        (1970..3000).contains(&year) && (1..=12).contains(&month) && (1..=31).contains(&day);
    if !is_date || hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    // Days from civil, after Howard Hinnant: years begin in March, so leap days come last.
    let (year, month) = if month <= 2 { (year - 1, month + 9) } else { (year, month - 3) };
    let (era, of_era) = (year / 400, year % 400);
    let of_year = (153 * month + 2) / 5 + day - 1;
    let days = era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year;
    Some((days - 719_468) * 86_400 + hour * 3600 + minute * 60 + second)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{Run, seconds_of_name};

    fn write(folder: &Path, files: &[(&str, &str)]) {
        for (file, text) in files {
            let path = folder.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
    }

    fn files(folder: &Path) -> Vec<String> {
        let run = Run::find(folder).unwrap();
        let name = |it: &std::path::PathBuf| it.strip_prefix(folder).unwrap().display().to_string();
        run.files.iter().map(name).collect()
    }

    #[test]
    fn a_folder_with_a_manifest_is_one_run() {
        let folder = tempfile::tempdir().unwrap();
        write(
            folder.path(),
            &[
                ("manifest.json", r#"{"schema": 1}"#),
                ("hardware.jsonl", ""),
                ("other.jsonl", ""),
                ("profile/12/plugins/profile/2026_11_15_20_30_23/vm.xplane.pb", ""),
                ("profile/7/plugins/profile/2026_11_15_20_30_20/vm.xplane.pb", ""),
            ],
        );
        let all = [
            "profile/12/plugins/profile/2026_11_15_20_30_23/vm.xplane.pb",
            "profile/7/plugins/profile/2026_11_15_20_30_20/vm.xplane.pb",
            "hardware.jsonl",
        ];
        assert_eq!(files(folder.path()), all);
        assert_eq!(files(&folder.path().join("profile/7")).len(), 1, "a part of it is a part");
    }

    #[test]
    fn samples_alone_are_a_run_where_a_manifest_says_so() {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), &[("manifest.json", r#"{"schema": 1}"#), ("hardware.jsonl", "")]);
        assert_eq!(files(folder.path()), ["hardware.jsonl"]);
        write(folder.path(), &[("manifest.json", r#"{"name": "my web app"}"#)]);
        assert!(Run::find(folder.path()).is_err(), "somebody else's manifest");
    }

    #[test]
    fn names_of_runs_are_times() {
        assert_eq!(seconds_of_name("1970_01_01_00_00_00"), Some(0));
        assert_eq!(seconds_of_name("2026_11_15_20_30_23"), Some(1_794_774_623));
        assert_eq!(seconds_of_name("run"), None);
        assert_eq!(seconds_of_name("2026_13_15_20_30_23"), None);
        assert_eq!(seconds_of_name("2026_11_15_18446744073709551615_30_23"), None);
    }

    /// Two profiles in folders of their own, below a folder with this manifest.
    fn found(manifest: Option<&str>) -> (usize, usize) {
        let folder = tempfile::tempdir().unwrap();
        for host in ["a_6009", "b_6009"] {
            let run = folder.path().join("run/profile").join(host).join("plugins/profile/time");
            fs::create_dir_all(&run).unwrap();
            fs::write(run.join(format!("{host}.xplane.pb")), [0]).unwrap();
        }
        if let Some(manifest) = manifest {
            fs::write(folder.path().join("run/manifest.json"), manifest).unwrap();
        }
        let run = Run::find(folder.path()).unwrap();
        (run.files.len(), run.others.len())
    }

    #[test]
    fn a_capture_is_one_run() {
        assert_eq!(found(Some(r#"{"schema": 1, "kind": "attach"}"#)), (2, 0));
        assert_eq!(found(None), (1, 1));
        assert_eq!(found(Some(r#"{"name": "an app for the web"}"#)), (1, 1));
        assert_eq!(found(Some("{")), (1, 1));
    }

    #[test]
    fn a_capture_among_other_runs_is_named_by_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).unwrap();
            fs::write(path, text).unwrap();
        };
        write("new/manifest.json", r#"{"schema": 1}"#);
        write("new/profile/1/x.xplane.pb", "");
        write("new/profile/2/x.xplane.pb", "");
        write("old/plugins/profile/2020_01_01_00_00_00/host.xplane.pb", "");
        let run = Run::find(folder.path()).unwrap();
        assert_eq!((run.name.as_str(), run.files.len(), run.others.len()), ("new", 2, 1));
    }
}
