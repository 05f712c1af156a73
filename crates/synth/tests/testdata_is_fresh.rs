//! Checks that `testdata/synthetic` is what `synth small` writes; `UPDATE=1 cargo test` rewrites it.

use std::fs;
use std::path::Path;

use synth::{Scenario, scenarios, wild_scenarios};

#[test]
fn testdata_is_fresh() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/synthetic");
    let update = std::env::var_os("UPDATE").is_some();
    for (path, bytes) in scenarios().iter().chain(&wild_scenarios()).flat_map(Scenario::tree) {
        let path = dir.join(path);
        if update {
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, &bytes).unwrap();
        }
        let stored = fs::read(&path).unwrap_or_default();
        // Not assert_eq: nobody wants to read the bytes.
        assert!(stored == bytes, "stale, run `UPDATE=1 cargo test -p synth`: {}", path.display());
    }
}

#[test]
fn every_scenario_is_in_the_readme() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/synthetic");
    let readme = fs::read_to_string(dir.join("README.md")).unwrap();
    for scenario in scenarios().into_iter().chain(wild_scenarios()) {
        assert!(readme.contains(&format!("| `{}` |", scenario.name)), "{}", scenario.name);
    }
}
