//! Finds the files of one run below a path.
//!
//! A log folder holds runs at any depth: `plugins/profile/<run>/<host>.xplane.pb`, Keras' below
//! `train/`. The files of one folder are the hosts of one run.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::OpenError;

/// The files that are read together, and what else was there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    /// What the user named.
    pub path: PathBuf,
    /// For people: the folder or file that was taken.
    pub name: String,
    /// One for each host, in the order of their names.
    pub files: Vec<PathBuf>,
    /// Folders of the runs that were not taken, newest first.
    pub others: Vec<PathBuf>,
}

/// Deeper than any log folder, shallower than a loop of links.
const DEEPEST: usize = 12;

impl Run {
    pub fn find(path: &Path) -> Result<Run, OpenError> {
        let missing = || OpenError::Missing { path: path.to_owned() };
        let about = fs::metadata(path).map_err(|_| missing())?;
        let name = |path: &Path| {
            let name =
                path.file_name().or_else(|| path.components().next_back().map(|it| it.as_os_str()));
            name.map(|it| it.to_string_lossy().into_owned()).unwrap_or_default()
        };
        if !about.is_dir() {
            let files = vec![path.to_owned()];
            return Ok(Run { path: path.to_owned(), name: name(path), files, others: Vec::new() });
        }
        if let Some(files) = files_of_run_folder(path) {
            return Ok(Run { path: path.to_owned(), name: name(path), files, others: Vec::new() });
        }
        let mut runs: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
        collect(path, 0, &mut runs);
        let mut runs: Vec<(PathBuf, Vec<PathBuf>)> = runs.into_iter().collect();
        runs.sort_by_cached_key(|(folder, files)| {
            std::cmp::Reverse((when(folder, files), folder.clone()))
        });
        let mut runs = runs.into_iter();
        let Some((folder, files)) = runs.next() else {
            return Err(OpenError::NoProfile { path: path.to_owned() });
        };
        Ok(Run {
            path: path.to_owned(),
            name: name(&folder),
            files,
            others: runs.map(|it| it.0).collect(),
        })
    }
}

/// All of what `strobe run` and `strobe attach` wrote is one run: profiles first, as they say
/// when the trace begins, then what was recorded beside them.
fn files_of_run_folder(folder: &Path) -> Option<Vec<PathBuf>> {
    let manifest = fs::read(folder.join("manifest.json")).ok()?;
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).ok()?;
    manifest.get("schema").and(manifest.get("strobe"))?;
    let mut profiles: BTreeMap<PathBuf, Vec<PathBuf>> = BTreeMap::new();
    collect(folder, 0, &mut profiles);
    let mut files: Vec<PathBuf> = profiles.into_values().flatten().collect();
    let mut beside: Vec<PathBuf> =
        fs::read_dir(folder).ok()?.filter_map(|it| Some(it.ok()?.path())).collect();
    beside.retain(|it| {
        let name = it.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
        name.starts_with("python-") && name.ends_with(".jsonl")
    });
    beside.sort();
    files.append(&mut beside);
    Some(files).filter(|it| !it.is_empty())
}

fn collect(folder: &Path, depth: usize, runs: &mut BTreeMap<PathBuf, Vec<PathBuf>>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    let mut entries: Vec<PathBuf> = entries.filter_map(|it| Some(it.ok()?.path())).collect();
    entries.sort();
    for entry in entries {
        if entry.is_dir() {
            if depth < DEEPEST {
                collect(&entry, depth + 1, runs);
            }
        } else if is_profile(&entry) {
            runs.entry(folder.to_owned()).or_default().push(entry);
        }
    }
}

fn is_profile(path: &Path) -> bool {
    let name = path.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
    name.ends_with("xplane.pb") || name.ends_with("xplane.pb.gz")
}

/// When a run was made: profilers name its folder by the time; else by its newest file.
fn when(folder: &Path, files: &[PathBuf]) -> u64 {
    let name = folder.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
    if let Some(seconds) = seconds_of_name(&name) {
        return seconds;
    }
    let changed = |it: &PathBuf| fs::metadata(it).and_then(|it| it.modified()).ok();
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
    use super::seconds_of_name;

    #[test]
    fn names_of_runs_are_times() {
        assert_eq!(seconds_of_name("1970_01_01_00_00_00"), Some(0));
        assert_eq!(seconds_of_name("2026_11_15_20_30_23"), Some(1_794_774_623));
        assert_eq!(seconds_of_name("run"), None);
        assert_eq!(seconds_of_name("2026_13_15_20_30_23"), None);
        assert_eq!(seconds_of_name("2026_11_15_18446744073709551615_30_23"), None);
    }
}
