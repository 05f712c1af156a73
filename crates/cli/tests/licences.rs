//! What strobe is made of: `deny.toml` allows each licence and source, and the notices that the
//! program and its page carry name every part. `UPDATE=1` writes the notices.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "what cannot be read is a failed test, and what is skipped is said"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::iter::Peekable;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::SplitWhitespace;

use serde_json::Value;

/// What makes strobe: the program, and the module in the wheel.
const OUTLETS: [&str; 2] = ["strobe", "python"];

/// Packages that only build the page, and leave a few lines of their own in it.
const LEAVES_LINES: [&str; 2] = ["node_modules/rolldown", "node_modules/vite"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// What `deny.toml` says.
struct Policy {
    targets: Vec<String>,
    /// The preferred ones first.
    licences: Vec<String>,
    registries: Vec<String>,
}

impl Policy {
    fn read() -> Policy {
        let text = fs::read_to_string(root().join("deny.toml")).unwrap();
        let list = |key: &str| -> Vec<String> {
            let from = text.find(&format!("\n{key} = [")).unwrap();
            let list = text[from..].split_once('[').unwrap().1.split_once(']').unwrap().0;
            list.split('"').skip(1).step_by(2).map(str::to_owned).collect()
        };
        Policy {
            targets: list("targets"),
            licences: list("allow"),
            registries: list("allow-registry"),
        }
    }

    /// The licences that a package is used under: of a choice, the ones preferred.
    fn choose(&self, expression: &str) -> Option<BTreeSet<usize>> {
        let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
        let mut words = spaced.split_whitespace().peekable();
        let chosen = self.any(&mut words);
        assert!(words.next().is_none(), "this is no licence: {expression}");
        chosen
    }

    fn any(&self, words: &mut Words<'_>) -> Option<BTreeSet<usize>> {
        let mut best = self.all(words);
        while words.next_if_eq(&"OR").is_some() {
            let other = self.all(words);
            let rank = |it: &Option<BTreeSet<usize>>| {
                it.as_ref().map_or(usize::MAX, |it| it.last().copied().unwrap_or(0))
            };
            best = if rank(&other) < rank(&best) { other } else { best };
        }
        best
    }

    fn all(&self, words: &mut Words<'_>) -> Option<BTreeSet<usize>> {
        let mut all = self.one(words);
        while words.next_if_eq(&"AND").is_some() {
            let other = self.one(words);
            all = all.zip(other).map(|(a, b)| &a | &b);
        }
        all
    }

    fn one(&self, words: &mut Words<'_>) -> Option<BTreeSet<usize>> {
        let word = words.next().unwrap();
        if word == "(" {
            let inner = self.any(words);
            assert_eq!(words.next(), Some(")"));
            return inner;
        }
        let mut name = word.to_owned();
        if words.next_if_eq(&"WITH").is_some() {
            write!(name, " WITH {}", words.next().unwrap()).unwrap();
        }
        Some([self.licences.iter().position(|it| *it == name)?].into())
    }
}

type Words<'a> = Peekable<SplitWhitespace<'a>>;

/// The crates of these targets; `None` where Cargo has not fetched all of them.
fn metadata(targets: &[String]) -> Option<Value> {
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or("cargo".into()));
    cargo.current_dir(root()).args(["metadata", "--locked", "--format-version", "1"]);
    cargo.args(targets.iter().flat_map(|it| ["--filter-platform", it]));
    if !is_update() {
        cargo.arg("--offline");
    }
    let done = cargo.output().unwrap();
    done.status.success().then(|| serde_json::from_slice(&done.stdout).unwrap())
}

/// The crates of all targets, or else of one, and whether it is all.
fn crates(policy: &Policy) -> (Value, bool) {
    if let Some(all) = metadata(&policy.targets) {
        return (all, true);
    }
    println!("note: not all crates of other systems are here; this one's are checked");
    let one = policy.targets.iter().find_map(|it| metadata(std::slice::from_ref(it)));
    (one.unwrap(), false)
}

fn is_update() -> bool {
    std::env::var_os("UPDATE").is_some()
}

/// A part of strobe that somebody else made.
struct Part {
    name: String,
    version: String,
    licence: String,
    authors: Vec<String>,
    /// Where its files are, if they are here.
    folder: Option<PathBuf>,
}

impl Part {
    /// The text of a licence as the part has it.
    fn text(&self, licence: &str) -> Option<String> {
        // One text for all: this licence names nobody.
        if licence == "Apache-2.0" {
            return Some(tidy(&fs::read_to_string(root().join("LICENSE-APACHE")).unwrap()));
        }
        let mark = match licence {
            "MIT" => "Permission is hereby granted, free of charge",
            "ISC" => "Permission to use, copy, modify, and",
            "BSD-2-Clause" | "BSD-3-Clause" => "Redistribution and use in source and binary forms",
            "Zlib" => "This software is provided 'as-is'",
            "Unicode-3.0" => "UNICODE LICENSE V3",
            _ => panic!("by what is the text of {licence} known?"),
        };
        let texts = self.texts(&["LICEN", "COPYING", "COPYRIGHT"])?;
        let own = texts.into_iter().find(|it| flat(it).contains(mark));
        own.or_else(|| (licence == "MIT").then(|| self.mit_text()))
    }

    /// What the licence asks to be passed on with it.
    fn notice(&self) -> Option<String> {
        Some(self.texts(&["NOTICE"])?.join("\n")).filter(|it| !it.is_empty())
    }

    fn texts(&self, begins: &[&str]) -> Option<Vec<String>> {
        let mut files: Vec<PathBuf> =
            fs::read_dir(self.folder.as_ref()?).ok()?.map(|it| it.unwrap().path()).collect();
        files.retain(|it| {
            let name = it.file_name().unwrap().to_string_lossy().to_uppercase();
            it.is_file() && begins.iter().any(|begin| name.starts_with(begin))
        });
        files.sort();
        Some(files.iter().filter_map(|it| Some(tidy(&fs::read_to_string(it).ok()?))).collect())
    }

    /// For those who name the licence only.
    fn mit_text(&self) -> String {
        let ours = fs::read_to_string(root().join("LICENSE-MIT")).unwrap();
        let (_, body) = ours.split_once("Permission is").unwrap();
        let authors = match self.authors.join(", ") {
            it if it.is_empty() => format!("the authors of {}", self.name),
            it => it,
        };
        tidy(&format!("Copyright (c) {authors}\n\nPermission is{body}"))
    }
}

/// Without what differs from copy to copy and says nothing; and of a licence that lists those of
/// its builder's parts, only its own.
fn tidy(text: &str) -> String {
    let own = text.split("# Licenses of bundled dependencies").next().unwrap();
    let lines: Vec<&str> = own.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

fn flat(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The crates that are compiled in: those that outlets need, and macros, but not what macros
/// themselves are made of.
fn compiled_in(metadata: &Value) -> Vec<Part> {
    let id = |it: &Value| it["id"].as_str().unwrap().to_owned();
    let by_id = |of: &Value| -> BTreeMap<String, Value> {
        of.as_array().unwrap().iter().map(|it| (id(it), it.clone())).collect()
    };
    let (packages, nodes) = (by_id(&metadata["packages"]), by_id(&metadata["resolve"]["nodes"]));
    let is_ours = |it: &Value| it["source"].is_null();
    let mut open: Vec<String> = packages
        .values()
        .filter(|it| is_ours(it) && OUTLETS.contains(&it["name"].as_str().unwrap()))
        .map(id)
        .collect();
    assert_eq!(open.len(), OUTLETS.len());
    let mut met = BTreeSet::new();
    while let Some(next) = open.pop() {
        let is_macro = packages[&next]["targets"].to_string().contains("\"proc-macro\"");
        if !met.insert(next.clone()) || is_macro {
            continue;
        }
        for needed in nodes[&next]["deps"].as_array().unwrap() {
            if needed["dep_kinds"].as_array().unwrap().iter().any(|it| it["kind"].is_null()) {
                open.push(needed["pkg"].as_str().unwrap().to_owned());
            }
        }
    }
    let text = |it: &Value| it.as_str().unwrap_or_default().to_owned();
    let parts = met.iter().map(|it| &packages[it]).filter(|it| !is_ours(it)).map(|it| Part {
        name: text(&it["name"]),
        version: text(&it["version"]),
        licence: text(&it["license"]),
        authors: it["authors"].as_array().unwrap().iter().map(text).collect(),
        folder: Path::new(&text(&it["manifest_path"])).parent().map(Path::to_owned),
    });
    parts.collect()
}

/// The packages that the page is bundled from.
fn bundled() -> Vec<Part> {
    let web = root().join("web");
    let lock = fs::read_to_string(web.join("package-lock.json")).unwrap();
    let lock: Value = serde_json::from_str(&lock).unwrap();
    let packages = lock["packages"].as_object().unwrap().iter().filter(|(place, it)| {
        let is_page = it["dev"] != true && it["devOptional"] != true;
        !place.is_empty() && (is_page || LEAVES_LINES.contains(&place.as_str()))
    });
    let parts = packages.map(|(place, it)| Part {
        name: place.rsplit("node_modules/").next().unwrap().to_owned(),
        version: it["version"].as_str().unwrap().to_owned(),
        licence: it["license"].as_str().unwrap_or_default().to_owned(),
        authors: Vec::new(),
        folder: Some(web.join(place)).filter(|it| it.is_dir()),
    });
    parts.collect()
}

/// Names, then each text once, with those that it is for.
fn notices(title: &str, parts: &mut [Part], policy: &Policy) -> String {
    parts.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    let mut out = format!("{title}\n\n");
    let mut texts: BTreeMap<(usize, String), Vec<String>> = BTreeMap::new();
    for part in parts.iter() {
        writeln!(out, "{}", line(part)).unwrap();
        let chosen = policy.choose(&part.licence).unwrap();
        let who = format!("{} {}", part.name, part.version);
        for rank in chosen {
            let text = part.text(&policy.licences[rank]);
            let text = text.unwrap_or_else(|| panic!("{who} brings no text of its licence"));
            texts.entry((rank, text)).or_default().push(who.clone());
        }
        if let Some(notice) = part.notice() {
            texts.entry((policy.licences.len(), notice)).or_default().push(who);
        }
    }
    let mut texts: Vec<_> = texts.into_iter().collect();
    texts.sort_by(|a, b| (a.0.0, &a.1).cmp(&(b.0.0, &b.1)));
    for ((rank, text), who) in texts {
        let licence = policy.licences.get(rank).map_or("Notice", String::as_str);
        let rule = "-".repeat(80);
        write!(out, "\n{rule}\n{licence}: {}\n{rule}\n\n{text}\n", who.join(", ")).unwrap();
    }
    out
}

fn line(part: &Part) -> String {
    format!("{} {} ({})", part.name, part.version, part.licence)
}

fn check_notices(path: &str, title: &str, mut parts: Vec<Part>, is_all: bool, policy: &Policy) {
    let path = root().join(path);
    if is_update() {
        assert!(is_all, "{title}: some of it is not here; fetch it first");
        fs::write(&path, notices(title, &mut parts, policy)).unwrap();
        return;
    }
    let is = fs::read_to_string(&path).unwrap();
    let how = "UPDATE=1 cargo test -p strobe --test licences";
    let lines: BTreeSet<&str> = is.lines().collect();
    for part in &parts {
        let line = line(part);
        assert!(lines.contains(line.as_str()), "{} lacks {line}: {how}", path.display());
    }
    if is_all {
        let wanted = notices(title, &mut parts, policy);
        let differs = wanted.lines().zip(is.lines()).find(|it| it.0 != it.1);
        assert!(wanted == is, "{} is old at {differs:?}: {how}", path.display());
    }
}

#[test]
fn every_crate_has_an_allowed_licence_and_source() {
    let policy = Policy::read();
    let (metadata, _) = crates(&policy);
    let root = root();
    for it in metadata["packages"].as_array().unwrap() {
        let who = format!("{} {}", it["name"], it["version"]);
        let licence = it["license"].as_str().unwrap_or("none");
        assert!(policy.choose(licence).is_some(), "deny.toml does not allow {licence} of {who}");
        match it["source"].as_str() {
            None => assert!(Path::new(it["manifest_path"].as_str().unwrap()).starts_with(&root)),
            Some(from) => {
                let registry = from.strip_prefix("registry+").unwrap_or(from);
                let is_known = policy.registries.iter().any(|it| it == registry);
                assert!(is_known, "deny.toml does not allow {from}, from where {who} comes");
            }
        }
    }
}

#[test]
fn the_program_names_every_crate_in_it() {
    let policy = Policy::read();
    let (metadata, is_all) = crates(&policy);
    let title = "These Rust crates are compiled into strobe and its Python module:";
    check_notices("crates/cli/notices.txt", title, compiled_in(&metadata), is_all, &policy);
}

#[test]
fn the_page_names_every_package_in_it() {
    let policy = Policy::read();
    let parts = bundled();
    for it in &parts {
        assert!(policy.choose(&it.licence).is_some(), "deny.toml does not allow {}", line(it));
    }
    let is_all = parts.iter().all(|it| it.folder.is_some());
    if !is_all {
        println!("note: the page's packages are not here; only their names are checked");
    }
    let title = "These npm packages are part of the page of strobe, also where it is exported:";
    check_notices("crates/server/notices.txt", title, parts, is_all, &policy);
}

#[test]
fn strobe_prints_them() {
    let done = Command::new(env!("CARGO_BIN_EXE_strobe")).arg("licenses").output().unwrap();
    assert!(done.status.success());
    let said = String::from_utf8(done.stdout).unwrap();
    for part in ["MIT OR Apache-2.0", "\nserde 1.", "\npreact 1", "Apache License", "Jason Miller"]
    {
        assert!(said.contains(part), "{part}");
    }
}

#[test]
fn a_licence_is_allowed_by_what_must_hold_of_it() {
    let policy = Policy {
        targets: Vec::new(),
        licences: ["Apache-2.0", "MIT", "Zlib"].map(str::to_owned).into(),
        registries: Vec::new(),
    };
    let check = |expression: &str, chosen: Option<&[usize]>| {
        let chosen = chosen.map(|it| it.iter().copied().collect());
        assert_eq!(policy.choose(expression), chosen, "{expression}");
    };
    check("MIT", Some(&[1]));
    check("MIT/Apache-2.0", Some(&[0]));
    check("GPL-3.0 OR Zlib OR MIT", Some(&[1]));
    check("(MIT OR Apache-2.0) AND Zlib", Some(&[0, 2]));
    check("MIT AND GPL-3.0", None);
    check("Apache-2.0 WITH LLVM-exception", None);
    check("GPL-2.0 OR (MIT AND Zlib)", Some(&[1, 2]));
    check("none", None);
}
