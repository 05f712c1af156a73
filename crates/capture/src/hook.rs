//! Puts the Python part in front of a program.
//!
//! Python imports `sitecustomize` from the path when it starts. Ours stands first on the path,
//! runs the user's own, and waits until a framework is imported; child processes inherit it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::folder::RunFolder;
use crate::private;

/// What the hook is to do. `None` leaves it to the hook.
#[derive(Debug, Clone, PartialEq)]
pub struct Settings {
    /// Whether to profile at all; steps are timed in any case.
    pub capture: bool,
    pub steps: Option<u32>,
    pub warmup: Option<u32>,
    /// The longest a window may be.
    pub max_seconds: f64,
    /// The most memory a window may take.
    pub max_bytes: u64,
    /// Whether to sample the stacks of Python while the window is open.
    pub stacks: bool,
    /// End the program when its steps are captured.
    pub stop_after: bool,
}

impl Default for Settings {
    fn default() -> Settings {
        Settings {
            capture: true,
            steps: None,
            warmup: None,
            max_seconds: 30.0,
            max_bytes: 2 << 30,
            stacks: true,
            stop_after: false,
        }
    }
}

impl Settings {
    pub fn as_json(&self) -> Value {
        json!({
            "capture": self.capture,
            "steps": self.steps,
            "warmup": self.warmup,
            "max_seconds": self.max_seconds,
            "max_bytes": self.max_bytes,
            "stacks": self.stacks,
            "stop_after": self.stop_after,
        })
    }
}

/// The files of the hook, part of the binary: nothing has to be installed.
macro_rules! files {
    ($($name:literal = $path:literal),* $(,)?) => {
        const FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../python/stroboscope/", $path)))),*];
    };
}

files![
    "sitecustomize.py" = "_hook/sitecustomize.py",
    "_capture/__init__.py" = "_capture/__init__.py",
    "_capture/frameworks.py" = "_capture/frameworks.py",
    "_capture/log.py" = "_capture/log.py",
    "_capture/sites.py" = "_capture/sites.py",
    "_capture/source.py" = "_capture/source.py",
    "_capture/stacks.py" = "_capture/stacks.py",
    "_capture/steps.py" = "_capture/steps.py",
];

/// The hook's files, for as long as the run goes on: in the run folder, or where others could
/// change that, in a folder of their own.
#[derive(Debug)]
pub(crate) struct Hook {
    folder: PathBuf,
    /// Removed after the hook's own.
    _around: Option<TempDir>,
}

impl Hook {
    pub fn write(run: &RunFolder, settings: &Settings) -> io::Result<Hook> {
        let around = match run.is_guarded {
            true => None,
            false => Some(private::guarded_folder()?),
        };
        let folder = around.as_ref().map_or(run.path.as_path(), |it| it.path()).join(".hook");
        // It must not be there yet: what is in it is run as the user.
        private::create_folder(&folder)?;
        let hook = Hook { folder, _around: around };
        private::create_folder(&hook.folder.join("_capture"))?;
        for (name, text) in FILES {
            private::write_file(&hook.folder.join(name), text.as_bytes())?;
        }
        let settings = settings.as_json().to_string();
        private::write_file(&hook.folder.join("settings.json"), settings.as_bytes())?;
        Ok(hook)
    }

    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// What the program's environment has to say.
    pub fn environment(
        &self,
        run: &Path,
    ) -> Result<Vec<(&'static str, OsString)>, env::JoinPathsError> {
        let mut path = vec![self.folder.clone()];
        if let Some(theirs) = env::var_os("PYTHONPATH").filter(|it| !it.is_empty()) {
            path.extend(env::split_paths(&theirs));
        }
        Ok(vec![
            ("PYTHONPATH", env::join_paths(path)?),
            ("STROBE_RUN_FOLDER", run.as_os_str().to_owned()),
        ])
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        // Whoever still runs has read it; a missing folder on Python's path is no error.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::{FILES, Hook, Settings};
    use crate::folder::new_run_folder;

    #[cfg(unix)]
    #[test]
    fn nobody_else_can_change_what_is_run() {
        use std::fs::{self, Permissions};
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
        let folder = tempfile::tempdir().unwrap();
        let mode = |path: &std::path::Path| fs::metadata(path).unwrap().mode() & 0o777;
        for (shared, inside) in [(0o755, true), (0o775, false)] {
            let above = folder.path().join(format!("{shared:o}"));
            fs::create_dir(&above).unwrap();
            fs::set_permissions(&above, Permissions::from_mode(shared)).unwrap();
            let run = new_run_folder(Some(&above.join("run")), "run").unwrap();
            let hook = Hook::write(&run, &Settings::default()).unwrap();
            assert_eq!(hook.folder().starts_with(&run.path), inside, "{shared:o}");
            assert_eq!(mode(hook.folder()), 0o700);
            assert_eq!(mode(&hook.folder().join("sitecustomize.py")), 0o600);
            let path = hook.folder().to_owned();
            drop(hook);
            assert!(!path.exists());
            // Somebody was first.
            fs::create_dir(run.path.join(".hook")).unwrap();
            assert_eq!(Hook::write(&run, &Settings::default()).is_err(), inside);
        }
    }

    #[test]
    fn every_file_of_the_hook_is_in_the_binary() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../python/stroboscope");
        let mut names = Vec::new();
        for part in ["_hook", "_capture"] {
            for entry in std::fs::read_dir(format!("{folder}/{part}")).unwrap() {
                let path = entry.unwrap().path();
                if path.extension().is_some_and(|it| it == "py") {
                    let name = path.file_name().unwrap().to_string_lossy().into_owned();
                    names.push(if part == "_hook" { name } else { format!("{part}/{name}") });
                }
            }
        }
        names.sort();
        let mut ours: Vec<&str> = FILES.iter().map(|it| it.0).collect();
        ours.sort_unstable();
        assert_eq!(names, ours);
    }
}
