//! Puts the Python part in front of a program.
//!
//! Python imports `sitecustomize` from the path when it starts. Ours stands first on the path,
//! runs the user's own, and waits until a framework is imported; child processes inherit it.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

use serde_json::{Value, json};

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

/// The hook's files inside a run folder, for as long as the run goes on.
#[derive(Debug)]
pub(crate) struct Hook {
    folder: PathBuf,
}

impl Hook {
    pub fn write(run: &Path, settings: &Settings) -> io::Result<Hook> {
        let folder = run.join(".hook");
        fs::create_dir_all(folder.join("_capture"))?;
        for (name, text) in FILES {
            fs::write(folder.join(name), text)?;
        }
        fs::write(folder.join("settings.json"), settings.as_json().to_string())?;
        Ok(Hook { folder })
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
    use super::FILES;

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
