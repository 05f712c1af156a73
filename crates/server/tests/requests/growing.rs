//! Folders that grow while they are served.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;
use server::Limits;

use crate::served::{Served, serve_with};

const PROFILE: &str = "testdata/captured/keras_fit/train/plugins/profile/run/host.xplane.pb";

fn profile() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(PROFILE)
}

fn run_below(folder: &Path, name: &str) -> PathBuf {
    let run = folder.join("plugins/profile").join(name);
    fs::create_dir_all(&run).unwrap();
    run.join("host.xplane.pb")
}

fn serve(folder: &Path) -> Served {
    let limits = Limits { search_every: Duration::ZERO, ..Limits::default() };
    serve_with("127.0.0.1:0", &[folder.to_owned()], limits)
}

fn names(served: &Served) -> Vec<(u64, String)> {
    let list = served.get("/api/runs").json();
    let line = |it: &Value| (it["id"].as_u64().unwrap(), it["name"].as_str().unwrap().to_owned());
    list.as_array().unwrap().iter().map(line).collect()
}

#[test]
fn a_run_that_comes_later_is_listed_and_changes_no_number() {
    let folder = tempfile::tempdir().unwrap();
    let old = "2026_11_15_20_30_23";
    let new = "2026_11_16_08_00_00";
    fs::copy(profile(), run_below(folder.path(), old)).unwrap();
    let served = serve(folder.path());
    assert_eq!(names(&served), [(0, old.to_owned())]);
    fs::copy(profile(), run_below(folder.path(), new)).unwrap();
    let newest_first = [(1, format!("plugins/profile/{new}")), (0, old.to_owned())];
    assert_eq!(names(&served), newest_first);
    served.wait_for(1, "ready");
    // The first is what it was called when it was found, not what is newest by now.
    served.wait_for(0, "ready");
    let report = served.get("/api/runs/0/report");
    assert_eq!(report.json()["run"]["name"], old, "{report:?}");
    // What was deleted is not offered any more.
    fs::remove_dir_all(folder.path().join("plugins/profile").join(new)).unwrap();
    assert_eq!(names(&served), [(0, old.to_owned())]);
}

#[test]
fn a_broken_run_that_is_repaired_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let file = run_below(folder.path(), "run");
    fs::write(&file, b"this is no profile").unwrap();
    let served = serve(folder.path());
    let failed = served.wait_for(0, "failed");
    assert!(failed.json()["error"].as_str().unwrap().len() > 8, "{failed:?}");
    let again = served.get("/api/runs/0/status").json();
    assert_eq!(again["state"], "failed", "not read over and over");
    fs::copy(profile(), &file).unwrap();
    served.wait_for(0, "ready");
    assert_eq!(served.get("/api/runs/0/report").status, 200);
}
