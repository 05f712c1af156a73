//! Where a run is written: below the user's state folder, never beside the user's files.

use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};
use std::{env, fs};

/// Makes the folder of a new run: `out`, or one named by the time and `name`.
pub fn new_run_folder(out: Option<&Path>, name: &str) -> io::Result<PathBuf> {
    if let Some(out) = out {
        fs::create_dir_all(out)?;
        if fs::read_dir(out)?.next().is_some() {
            return Err(io::Error::other(format!(
                "this folder is not empty, and a run needs one of its own\n  folder: {}",
                out.display()
            )));
        }
        return fs::canonicalize(out);
    }
    let runs = runs_folder()?;
    fs::create_dir_all(&runs)?;
    let stamp = stamp(SystemTime::now());
    let name: String =
        name.chars().map(|it| if it.is_ascii_alphanumeric() { it } else { '-' }).take(40).collect();
    // Two runs may begin in the same second.
    for n in 1..1000 {
        let suffix = if n == 1 { String::new() } else { format!("-{n}") };
        let folder = runs.join(format!("{stamp}-{name}{suffix}"));
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
            Err(error) => return Err(error),
        }
    }
    Err(io::Error::other(format!("too many runs of this second\n  folder: {}", runs.display())))
}

/// The runs written where nobody said otherwise, newest first. No such folder: no runs.
pub fn run_folders() -> Vec<PathBuf> {
    let Ok(entries) = runs_folder().and_then(fs::read_dir) else { return Vec::new() };
    let folders = entries.filter_map(|it| Some(it.ok()?.path()));
    let mut folders: Vec<PathBuf> =
        folders.filter(|it| it.join("manifest.json").is_file()).collect();
    // Named by the time they began; `-10` of the same second comes after `-9`.
    folders.sort_by_cached_key(|it| {
        let name = it.file_name().map(|it| it.to_string_lossy().into_owned()).unwrap_or_default();
        let (stamp, rest) = name.split_at_checked(STAMP.len()).unwrap_or((&name, ""));
        (stamp.to_owned(), rest.len(), rest.to_owned())
    });
    folders.reverse();
    folders
}

fn runs_folder() -> io::Result<PathBuf> {
    Ok(state_folder()?.join("stroboscope").join("runs"))
}

fn state_folder() -> io::Result<PathBuf> {
    let said = |name: &str| env::var_os(name).map(PathBuf::from).filter(|it| it.is_absolute());
    said("XDG_STATE_HOME")
        .or_else(|| said("HOME").map(|it| it.join(".local").join("state")))
        .ok_or_else(|| io::Error::other("no home folder is known; say where with --out"))
}

const STAMP: &str = "2026-11-16T05-31-07";

/// A time as it stands in the name of a run, `2026-11-16T05-31-07`, in UTC.
pub fn stamp(now: SystemTime) -> String {
    let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Civil from days, after Howard Hinnant: years begin in March, so leap days come last.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}-{minute:02}-{second:02}")
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::{new_run_folder, stamp};

    #[test]
    fn stamps_are_dates() {
        assert_eq!(stamp(UNIX_EPOCH), "1970-01-01T00-00-00");
        assert_eq!(stamp(UNIX_EPOCH + Duration::from_secs(1_794_774_623)), "2026-11-15T20-30-23");
        assert_eq!(stamp(UNIX_EPOCH + Duration::from_secs(951_782_400)), "2000-02-29T00-00-00");
    }

    #[test]
    fn a_folder_with_something_in_it_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let new = new_run_folder(Some(&folder.path().join("a/b")), "x").unwrap();
        assert!(new.is_dir());
        let error = new_run_folder(Some(folder.path()), "x").unwrap_err();
        assert!(error.to_string().contains("not empty"), "{error}");
    }
}
