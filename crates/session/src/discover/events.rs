//! Which of TensorBoard's event files belong to a run.
//!
//! ```text
//! logs/                                      strobe … logs         all below it: train, validation
//! ├── train/events.out.tfevents.1            strobe … logs/train   all below it: .
//! │   └── plugins/profile/TIME/x.xplane.pb   strobe … this one     train, validation
//! └── validation/events.out.tfevents.1
//! ```
//!
//! Whoever names a folder above a profile names the log folder, as for TensorBoard. Whoever names
//! the profile itself, or a folder in `plugins`, means the log it was written into: the folder
//! that holds `plugins`; and where that is called `train`, as Keras does, the other halves of the
//! same job beside it. A folder full of other experiments is never looked through for one profile.

use std::collections::HashSet;
use std::fs;
use std::path::{Path, PathBuf};

use crate::disk::identity;

/// A training log and its files.
pub struct Log {
    pub folder: PathBuf,
    pub files: Vec<PathBuf>,
    pub n_left_out: usize,
}

/// More runs than a page could show, and more bytes than most disks deliver in ten seconds; what
/// is nearest to the profile comes first.
const MOST_FILES: usize = 1000;
const MOST_BYTES: u64 = 8 << 30;

/// What Keras and others call the halves of a job beside `train`.
const BESIDE_TRAIN: [&str; 6] = ["train", "validation", "val", "valid", "eval", "test"];

impl Log {
    /// All event files below a log folder, in which the run at `run` was opened.
    pub fn below(folder: &Path, events: &[PathBuf], run: &Path) -> Log {
        let files = events.iter().filter(|it| it.starts_with(folder)).cloned().collect();
        Log::bounded(folder, files, run)
    }

    /// The log that a profile was written into, for a folder from `plugins` to the run's own.
    pub fn above(folder: &Path) -> Option<Log> {
        // It may be named as seen from inside.
        let whole = std::path::absolute(folder).ok()?;
        let here = whole.join("profile");
        let mut profiles = std::iter::once(here.as_path()).chain(whole.ancestors().take(2));
        let own = profiles.find(|it| it.ends_with("plugins/profile"))?.parent()?.parent()?;
        let is_train = own.file_name().is_some_and(|it| it == "train");
        match own.parent().filter(|_| is_train) {
            Some(log) => {
                let beside = BESIDE_TRAIN.iter().flat_map(|it| events_in(&log.join(it)));
                Some(Log::bounded(log, beside.chain(events_in(log)).collect(), own))
            }
            None => Some(Log::bounded(own, events_in(own), own)),
        }
    }

    fn bounded(folder: &Path, files: Vec<PathBuf>, run: &Path) -> Log {
        // A file may have many names.
        let mut met = HashSet::new();
        let mut sized: Vec<(PathBuf, u64)> = Vec::new();
        for file in files {
            let Some(about) = fs::metadata(&file).ok().filter(|it| it.is_file()) else { continue };
            if identity(&file, &about).is_none_or(|it| met.insert(it)) {
                sized.push((file, about.len()));
            }
        }
        // A job that has only just begun leaves an empty file.
        sized.retain(|it| it.1 > 0);
        let away = |it: &Path| {
            let shared = it.components().zip(run.components()).take_while(|(a, b)| a == b).count();
            run.components().count() - shared
        };
        sized.sort_by_cached_key(|it| (away(&it.0), it.0.clone()));
        let mut bytes = 0_u64;
        let n = sized.iter().take(MOST_FILES).take_while(|it| {
            bytes = bytes.saturating_add(it.1);
            bytes <= MOST_BYTES
        });
        let n = n.count();
        let n_left_out = sized.len() - n;
        sized.truncate(n);
        let files = sized.into_iter().map(|it| it.0).collect();
        Log { folder: folder.to_owned(), files, n_left_out }
    }
}

/// The event files of one folder, in the order of their names, which begin with their times.
fn events_in(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<PathBuf> =
        entries.filter_map(|it| Some(it.ok()?.path())).filter(|it| is_log(it)).collect();
    files.sort();
    files
}

fn is_log(path: &Path) -> bool {
    super::claim_by_name(path) == Some(sources::Claim::Log)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{Log, MOST_BYTES, MOST_FILES, is_log};

    #[test]
    fn names_are_tensorboards_own() {
        for (name, expected) in [
            ("events.out.tfevents.1794806400.box.7.0.v2", true),
            ("events.out.tfevents.1794806400.box.7.0.v2.profile-empty", false),
            ("box.xplane.pb", false),
            ("events.jsonl", false),
        ] {
            assert_eq!(is_log(Path::new(&format!("logs/{name}"))), expected, "{name}");
        }
    }

    #[test]
    fn what_is_nearest_to_the_profile_comes_first() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path();
        let mut events = Vec::new();
        for experiment in 0..MOST_FILES + 50 {
            let path = log.join(format!("{experiment:04}/train/events.out.tfevents.1"));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, b"x").unwrap();
            events.push(path);
        }
        let empty = log.join("0000/train/events.out.tfevents.2");
        fs::write(&empty, b"").unwrap();
        events.push(empty);
        let run = log.join("0777/train/plugins/profile/run");
        let found = Log::below(log, &events, &run);
        assert_eq!((found.files.len(), found.n_left_out), (MOST_FILES, 50));
        assert_eq!(found.files[0], log.join("0777/train/events.out.tfevents.1"));
        // A hole takes no room on the disk.
        let large = log.join("0778/train/events.out.tfevents.1");
        fs::File::create(&large).unwrap().set_len(MOST_BYTES + 1).unwrap();
        let found = Log::below(log, &[events[777].clone(), large], &run);
        assert_eq!((found.files.len(), found.n_left_out), (1, 1));
    }
}
