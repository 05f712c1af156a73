//! Where the page comes from: built files that are fresh need no Node; else what is missing is
//! named at once.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what cannot be prepared is a failed test")]

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use page::{FINGERPRINT, NoPage, Page};

/// A script cannot be started while another test, about to start a program, still has it open.
static ALONE: Mutex<()> = Mutex::new(());

/// A page with sources of one line, and no program that could build it.
fn page(folder: &Path) -> Page {
    let page = Page {
        web: folder.join("web"),
        built: folder.join("built"),
        programs: Some(folder.join("programs")),
        is_left_out: false,
    };
    fs::create_dir_all(page.web.join("src/views")).unwrap();
    fs::create_dir_all(folder.join("programs")).unwrap();
    for name in ["index.html", "package.json", "package-lock.json", "vite.config.ts"] {
        fs::write(page.web.join(name), name).unwrap();
    }
    fs::write(page.web.join("tsconfig.json"), "{}").unwrap();
    fs::write(page.web.join("src/views/overview.tsx"), "one").unwrap();
    page
}

fn bring_built(page: &Page) {
    fs::create_dir_all(page.built.join("assets")).unwrap();
    fs::write(page.built.join("index.html"), "built").unwrap();
    fs::write(page.built.join("assets/page.js"), "built").unwrap();
    fs::write(page.built.join(FINGERPRINT), page.fingerprint().unwrap() + "\n").unwrap();
}

fn program(page: &Page, name: &str, script: &str) {
    let path = page.programs.as_ref().unwrap().join(name);
    fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn check_refused(page: &Page, why: &str, hint: &str) {
    let out = page.web.join("../out");
    let refused: NoPage = page.make(&out).unwrap_err();
    assert!(refused.why.contains(why), "{refused:?}");
    assert!(refused.hint.contains(hint), "{refused:?}");
    assert!(!out.exists());
}

#[test]
fn built_files_need_no_node_while_they_are_fresh() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path());
    bring_built(&page);
    assert!(!page.will_fetch());
    let out = folder.path().join("out");
    page.make(&out).unwrap();
    let mut made: Vec<_> = page::files(&out).unwrap();
    made.iter_mut().for_each(|it| *it = it.strip_prefix(&out).unwrap().to_owned());
    assert_eq!(made, [Path::new("assets/page.js"), Path::new("index.html")]);

    // Another byte in a source, and they are of another page.
    fs::write(page.web.join("src/views/overview.tsx"), "two").unwrap();
    check_refused(&page, "Node is missing", "install Node 20.19");
    fs::write(page.web.join("src/views/overview.tsx"), "one").unwrap();
    assert!(page.is_built());
    fs::rename(page.web.join("src/views/overview.tsx"), page.web.join("src/overview.tsx")).unwrap();
    assert!(!page.is_built());
}

#[test]
fn what_is_missing_is_named() {
    let _alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    let folder = tempfile::tempdir().unwrap();
    let page = page(folder.path());
    assert!(!page.will_fetch());
    check_refused(&page, "Node is missing", "install Node 20.19");
    program(&page, "node", "echo v18.20.4");
    check_refused(&page, "too old (v18.20.4)", "install Node 20.19");
    program(&page, "node", "echo v22.1.0");
    check_refused(&page, "npm is missing", "with npm");

    program(&page, "npm", "echo 10.0.0; echo npm error code ENOTFOUND >&2; [ $1 = --version ]");
    assert!(page.will_fetch());
    check_refused(&page, "could not reach its registry (ENOTFOUND)", "a source package");
    program(&page, "npm", "echo npm error the lock file is broken >&2; [ $1 = --version ]");
    check_refused(&page, "the lock file is broken", "npm ci");
}
