//! Every profile at hand: those of this repository, and those beside it where they are.

use std::path::{Path, PathBuf};

use serde_json::Value;
use session::{OpenError, Session};

/// A run that a report can be made of.
#[derive(Debug, Clone)]
pub struct Profile {
    /// Where it lies, shortly, as in `captured/custom_loop`.
    pub name: String,
    pub path: PathBuf,
    /// Nothing is wrong with it, by those who made it.
    pub healthy: bool,
}

pub fn repo() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Folders whose entries are runs: a short name, where it is, and whether it can be missing.
const FOLDERS: [(&str, &str, bool); 8] = [
    ("synthetic", "testdata/synthetic", false),
    ("captured", "testdata/captured", false),
    ("chrome", "testdata/chrome", false),
    ("scalars", "testdata/captured/scalars", false),
    ("corpus", "../shared/corpus/xplane", true),
    ("kineto", "../shared/corpus/kineto", true),
    ("workloads", "../shared/workloads/profiles", true),
    ("bench", "bench/.work", true),
];

/// Scenarios in which nothing is wrong. That no cause is planted says little: many show a dialect
/// with whatever cause came to hand.
const HEALTHY: [&str; 1] = ["synthetic/well_tuned"];

/// What the makers of a run say: of a scenario here, of a shared workload in a file above its
/// profiles, of a planted one in its name.
fn is_healthy(name: &str, path: &Path) -> bool {
    let workload = path.file_name().unwrap_or_default().to_string_lossy();
    let truth = path.join(format!("../../{workload}.truth.json"));
    let truth = std::fs::read_to_string(truth).unwrap_or_default();
    let truth: Value = serde_json::from_str(&truth).unwrap_or_default();
    HEALTHY.contains(&name)
        || truth["healthy"] == true
        || name.split('/').any(|it| it.starts_with("healthy_"))
}

/// All runs, in the order of their names, and which folders are missing.
pub fn all() -> (Vec<Profile>, Vec<&'static str>) {
    let (mut found, mut missing) = (Vec::new(), Vec::new());
    for (short, folder, may_miss) in FOLDERS {
        let folder_path = repo().join(folder);
        if may_miss && !folder_path.is_dir() {
            missing.push(folder);
            continue;
        }
        let runs = match short {
            "bench" => captures_below(&folder_path),
            _ => folders_in(&folder_path),
        };
        for path in runs {
            let below = path.strip_prefix(&folder_path).unwrap_or(&path);
            let name = format!("{short}/{}", below.to_string_lossy());
            let healthy = is_healthy(&name, &path);
            found.push(Profile { name, path, healthy });
        }
    }
    (found, missing)
}

fn folders_in(folder: &Path) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = std::fs::read_dir(folder)
        .unwrap()
        .map(|it| it.unwrap().path())
        // `scalars` is a folder of runs itself.
        .filter(|it| it.is_dir() && !it.ends_with("scripts") && !it.ends_with("captured/scalars"))
        .collect();
    found.sort();
    found
}

/// Log folders and run folders at any depth; Python's own below them are left aside.
fn captures_below(folder: &Path) -> Vec<PathBuf> {
    let is_run = ["plugins/profile", "train/plugins/profile", "manifest.json"];
    if is_run.iter().any(|it| folder.join(it).exists()) {
        return vec![folder.to_owned()];
    }
    let is_python = folder.join("pyvenv.cfg").exists();
    match is_python {
        true => Vec::new(),
        false => folders_in(folder).iter().flat_map(|it| captures_below(it)).collect(),
    }
}

impl Profile {
    /// `None` where there is nothing that can be read.
    pub fn open(&self) -> Option<Session> {
        match Session::open(&self.path) {
            Ok(session) => Some(session),
            Err(OpenError::NoProfile { .. }) => None,
            Err(error) => panic!("{}: {error}", self.name),
        }
    }
}
