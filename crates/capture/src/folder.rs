//! Makes the folder that a capture is written to.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

/// Creates the folder of one run: `out`, or one named by the time and `name` in the user's state
/// folder. One that holds anything already is refused, so that no two captures are mixed.
pub fn new_run_folder(out: Option<&Path>, name: &str) -> io::Result<PathBuf> {
    let Some(out) = out else { return in_state_folder(name) };
    fs::create_dir_all(out).map_err(|error| at(&error, out))?;
    if fs::read_dir(out).map_err(|error| at(&error, out))?.next().is_some() {
        return Err(io::Error::new(
            io::ErrorKind::AlreadyExists,
            format!(
                "the run folder is not empty\n  hint: name another with --out\n  path: {}",
                out.display()
            ),
        ));
    }
    // The command may change its folder.
    std::path::absolute(out)
}

fn in_state_folder(name: &str) -> io::Result<PathBuf> {
    let runs = runs_folder()?;
    fs::create_dir_all(&runs).map_err(|error| at(&error, &runs))?;
    let plain = |it: char| if it.is_ascii_alphanumeric() || it == '_' { it } else { '-' };
    let name: String = name.chars().map(plain).take(40).collect();
    let time = time_name(SystemTime::now(), '-');
    // Two runs may begin in the same second.
    for n in 1..1000 {
        let more = if n == 1 { String::new() } else { format!("-{n}") };
        let folder = runs.join(format!("{time}-{name}{more}"));
        match fs::create_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
            done => return done.map(|()| folder.clone()).map_err(|error| at(&error, &folder)),
        }
    }
    Err(io::Error::other(format!("too many runs began in this second\n  path: {}", runs.display())))
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
        let time = "2026-11-16-05-31-07";
        let (time, rest) = name.split_at_checked(time.len()).unwrap_or((&name, ""));
        (time.to_owned(), rest.len(), rest.to_owned())
    });
    folders.reverse();
    folders
}

/// `$XDG_STATE_HOME/stroboscope/runs`, by default below `~/.local/state`.
fn runs_folder() -> io::Result<PathBuf> {
    // The specification asks to ignore relative paths.
    let absolute = |name: &str| {
        std::env::var_os(name).map(PathBuf::from).filter(|it: &PathBuf| it.is_absolute())
    };
    absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|it| it.join(".local/state")))
        .map(|it| it.join("stroboscope/runs"))
        .ok_or_else(|| {
            io::Error::other(
                "neither XDG_STATE_HOME nor HOME is set\n  hint: name a folder with --out",
            )
        })
}

fn at(error: &io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{error}\n  path: {}", path.display()))
}

/// A time (UTC) as a name: `2026_11_15_20_30_23` as profilers name runs, or with another mark.
pub fn time_name(time: SystemTime, mark: char) -> String {
    let seconds = time.duration_since(UNIX_EPOCH).map_or(0, |it| it.as_secs());
    let (days, of_day) = (seconds / 86_400, seconds % 86_400);
    // Civil from days, after Howard Hinnant: years begin in March, so leap days come last.
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..10 => (era * 400 + year, month + 3),
        _ => (era * 400 + year + 1, month - 9),
    };
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    [year, month, day, hour, minute, second]
        .map(|it| format!("{it:02}"))
        .join(mark.encode_utf8(&mut [0; 4]))
}

/// Unix time in nanoseconds.
pub fn unix_ns(time: SystemTime) -> u64 {
    time.duration_since(UNIX_EPOCH).map_or(0, |it| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::{new_run_folder, time_name};

    #[test]
    fn times_are_names() {
        let at = |seconds| time_name(UNIX_EPOCH + Duration::from_secs(seconds), '_');
        assert_eq!(at(0), "1970_01_01_00_00_00");
        assert_eq!(at(951_782_400), "2000_02_29_00_00_00");
        assert_eq!(at(1_794_774_623), "2026_11_15_20_30_23");
        assert_eq!(at(4_102_444_799), "2099_12_31_23_59_59");
    }

    #[test]
    fn a_used_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let run = folder.path().join("a/run");
        assert_eq!(new_run_folder(Some(&run), "attach").unwrap(), run);
        assert_eq!(new_run_folder(Some(&run), "attach").unwrap(), run, "it is still empty");
        std::fs::write(run.join("manifest.json"), "{}").unwrap();
        let error = new_run_folder(Some(&run), "attach").unwrap_err();
        assert!(error.to_string().starts_with("the run folder is not empty"), "{error}");
        assert!(new_run_folder(Some(&run.join("manifest.json")), "attach").is_err());
    }
}
