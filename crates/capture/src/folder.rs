//! Makes the folder that a capture is written to.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::private;

/// Why a run cannot be written where it was asked for. The path comes last.
#[derive(Debug, thiserror::Error)]
pub enum FolderError {
    #[error("the run folder is not empty\n  hint: name another with --out\n  path: {}", path.display())]
    NotEmpty { path: PathBuf },
    #[error("{why}\n  hint: name a new folder with --out\n  path: {}", path.display())]
    Unsafe { why: &'static str, path: PathBuf },
    #[error("neither XDG_STATE_HOME nor HOME is set\n  hint: name a folder with --out")]
    NoPlace,
    #[error("too many runs began in this second\n  path: {}", path.display())]
    TooMany { path: PathBuf },
    /// A full disk, one that is read-only, no permission.
    #[error("the run folder cannot be made: {source}\n  path: {}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// The folder of one run, which nobody else can read or change.
#[derive(Debug)]
pub struct RunFolder {
    pub path: PathBuf,
    /// Made by us, not by the user in advance.
    is_new: bool,
    /// Nobody else can put another folder in its place.
    pub(crate) is_guarded: bool,
}

impl RunFolder {
    fn of(path: PathBuf, is_new: bool) -> RunFolder {
        let is_guarded = private::is_guarded(&path);
        RunFolder { path, is_new, is_guarded }
    }

    /// Takes back what was made for a command that did not start, and nothing else.
    pub fn discard(self) {
        for name in ["manifest.json", "manifest.json.part"] {
            let _ = fs::remove_file(self.path.join(name));
        }
        if self.is_new {
            let _ = fs::remove_dir(&self.path);
        }
    }
}

/// Creates the folder of one run: `out`, or one named by the time and `name` in the user's state
/// folder. One that holds anything already is refused, so that no two captures are mixed; so is
/// one that somebody else made, or could replace.
pub fn new_run_folder(out: Option<&Path>, name: &str) -> Result<RunFolder, FolderError> {
    let Some(out) = out else { return in_state_folder(name) };
    let at = |source| FolderError::Io { path: out.to_owned(), source };
    let refused = |why| FolderError::Unsafe { why, path: out.to_owned() };
    // The command may change its folder.
    let out = &std::path::absolute(out).map_err(at)?;
    let (Some(above), Some(last)) = (out.parent(), out.file_name()) else {
        return Err(FolderError::NotEmpty { path: out.to_owned() });
    };
    private::create_folders(above).map_err(at)?;
    // From here on no link on the way can be turned elsewhere.
    let above = above.canonicalize().map_err(at)?;
    if private::open_to_everybody(&above).is_some() {
        return Err(refused("everybody on this machine can replace this run folder"));
    }
    let path = above.join(last);
    match private::create_folder(&path) {
        Ok(()) => return Ok(RunFolder::of(path, true)),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
        Err(error) => return Err(at(error)),
    }
    let about = fs::symlink_metadata(&path).map_err(at)?;
    if about.is_symlink() {
        return Err(refused("the run folder is a link to another place"));
    }
    let is_used = || fs::read_dir(&path).map(|mut it| it.next().is_some());
    if !private::is_ours(&path).map_err(at)? {
        return Err(refused("the run folder belongs to another user"));
    }
    if is_used().map_err(at)? {
        return Err(FolderError::NotEmpty { path });
    }
    private::set_mode(&path, 0o700).map_err(at)?;
    // Nobody else could write to it any more.
    if is_used().map_err(at)? {
        return Err(FolderError::NotEmpty { path });
    }
    Ok(RunFolder::of(path, false))
}

fn in_state_folder(name: &str) -> Result<RunFolder, FolderError> {
    let runs = runs_folder().ok_or(FolderError::NoPlace)?;
    let at = |source| FolderError::Io { path: runs.clone(), source };
    private::create_folders(&runs).map_err(at)?;
    let runs = runs.canonicalize().map_err(at)?;
    let plain = |it: char| if it.is_ascii_alphanumeric() || it == '_' { it } else { '-' };
    let name: String = name.chars().map(plain).take(40).collect();
    let time = time_name(SystemTime::now(), '-');
    // Two runs may begin in the same second.
    for n in 1..1000 {
        let more = if n == 1 { String::new() } else { format!("-{n}") };
        let folder = runs.join(format!("{time}-{name}{more}"));
        match private::create_folder(&folder) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => (),
            Err(error) => return Err(at(error)),
            Ok(()) => return Ok(RunFolder::of(folder, true)),
        }
    }
    Err(FolderError::TooMany { path: runs })
}

/// The runs written where nobody said otherwise, newest first. No such folder: no runs.
pub fn run_folders() -> Vec<PathBuf> {
    let Some(Ok(entries)) = runs_folder().map(fs::read_dir) else { return Vec::new() };
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
fn runs_folder() -> Option<PathBuf> {
    // The specification asks to ignore relative paths.
    let absolute = |name: &str| {
        std::env::var_os(name).map(PathBuf::from).filter(|it: &PathBuf| it.is_absolute())
    };
    absolute("XDG_STATE_HOME")
        .or_else(|| absolute("HOME").map(|it| it.join(".local/state")))
        .map(|it| it.join("stroboscope/runs"))
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
    use std::path::{Path, PathBuf};
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

    fn made(path: &Path) -> Result<PathBuf, String> {
        new_run_folder(Some(path), "attach").map(|it| it.path).map_err(|it| it.to_string())
    }

    #[test]
    fn a_used_folder_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let folder = folder.path().canonicalize().unwrap();
        let run = folder.join("a/run");
        assert_eq!(made(&run).unwrap(), run);
        assert_eq!(made(&run).unwrap(), run, "it is still empty");
        std::fs::write(run.join("manifest.json"), "{}").unwrap();
        let error = made(&run).unwrap_err();
        assert!(error.starts_with("the run folder is not empty"), "{error}");
        assert!(made(&run.join("manifest.json")).is_err());
    }

    #[cfg(unix)]
    mod private {
        use std::fs::{self, Permissions};
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, chown, symlink};
        use std::path::Path;

        use super::{made, new_run_folder};

        fn mode(path: &Path) -> u32 {
            fs::metadata(path).unwrap().mode() & 0o7777
        }

        #[test]
        fn run_folders_are_private() {
            let folder = tempfile::tempdir().unwrap();
            let run = folder.path().join("new/run");
            made(&run).unwrap();
            assert_eq!(mode(&run), 0o700);
            assert_eq!(mode(run.parent().unwrap()), 0o700);
            // One that the user made is made private, whatever it was.
            let own = folder.path().join("own");
            fs::create_dir(&own).unwrap();
            fs::set_permissions(&own, Permissions::from_mode(0o777)).unwrap();
            made(&own).unwrap();
            assert_eq!(mode(&own), 0o700);
        }

        #[test]
        fn what_others_made_or_could_replace_is_refused() {
            let folder = tempfile::tempdir().unwrap();
            let at = |name: &str| folder.path().join(name);
            symlink(folder.path(), at("link")).unwrap();
            let error = made(&at("link")).unwrap_err();
            assert!(error.starts_with("the run folder is a link"), "{error}");

            fs::create_dir(at("open")).unwrap();
            fs::set_permissions(at("open"), Permissions::from_mode(0o777)).unwrap();
            for run in ["open/run", "open/deep/run"] {
                let error = made(&at(run)).unwrap_err();
                assert!(error.starts_with("everybody on this machine can replace"), "{error}");
            }
            fs::set_permissions(at("open"), Permissions::from_mode(0o1777)).unwrap();
            made(&at("open/sticky")).unwrap();

            fs::create_dir(at("theirs")).unwrap();
            if chown(at("theirs"), Some(12345), None).is_err() {
                println!("skipped: only root can give a folder to another user");
                return;
            }
            let error = made(&at("theirs")).unwrap_err();
            assert!(error.starts_with("the run folder belongs to another user"), "{error}");
            assert_eq!(fs::read_dir(at("theirs")).unwrap().count(), 0);
        }

        #[test]
        fn a_folder_that_the_group_can_replace_holds_no_code() {
            let folder = tempfile::tempdir().unwrap();
            let shared = folder.path().join("shared");
            fs::create_dir(&shared).unwrap();
            fs::set_permissions(&shared, Permissions::from_mode(0o775)).unwrap();
            let run = new_run_folder(Some(&shared.join("run")), "run").unwrap();
            assert!(!run.is_guarded);
            fs::set_permissions(&shared, Permissions::from_mode(0o755)).unwrap();
            let run = new_run_folder(Some(&shared.join("other")), "run").unwrap();
            assert!(run.is_guarded);
        }

        #[test]
        fn what_is_discarded_is_ours_alone() {
            let folder = tempfile::tempdir().unwrap();
            let run = new_run_folder(Some(&folder.path().join("new")), "run").unwrap();
            fs::write(run.path.join("manifest.json"), "{}").unwrap();
            let path = run.path.clone();
            run.discard();
            assert!(!path.exists());
            fs::create_dir(folder.path().join("own")).unwrap();
            let run = new_run_folder(Some(&folder.path().join("own")), "run").unwrap();
            fs::write(run.path.join("notes.txt"), "mine").unwrap();
            run.discard();
            assert!(folder.path().join("own/notes.txt").exists());
        }
    }
}
