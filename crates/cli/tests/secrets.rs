//! Secrets in arguments, the environment and names of a profile: none is left in the run folder,
//! the report or the exported page.

#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "what cannot be run is a failed test")]

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use flate2::read::GzDecoder;
use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint};

const SECRETS: &str = include_str!("../../redact/testdata/secrets.txt");
const PROFILE: &str = "../../testdata/captured/jax_steps";

/// A text and the secret in it.
fn table() -> Vec<(String, String)> {
    let lines = SECRETS.lines().filter_map(|it| it.split_once(" ⟶ "));
    lines.map(|it| (it.0.to_owned(), it.1.to_owned())).collect()
}

/// Where an event's name is: space, plane, metadata, its entry, name.
const NAMES: [u32; 4] = [1, 4, 2, 2];

/// A message in which the field at `place` is another; all else stays byte for byte.
fn renamed(mut bytes: &[u8], place: &[u32], name: &mut dyn FnMut(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let (field, kind) = decode_key(&mut bytes).unwrap();
        encode_key(field, kind, &mut out);
        let length = match kind {
            WireType::Varint => {
                encode_varint(decode_varint(&mut bytes).unwrap(), &mut out);
                continue;
            }
            WireType::LengthDelimited => {
                usize::try_from(decode_varint(&mut bytes).unwrap()).unwrap()
            }
            WireType::ThirtyTwoBit => 4,
            _ => 8,
        };
        let (value, rest) = bytes.split_at(length);
        bytes = rest;
        let value = match place {
            [here] if *here == field => name(value),
            [here, inside @ ..] if *here == field => renamed(value, inside, name),
            _ => value.to_owned(),
        };
        if kind == WireType::LengthDelimited {
            encode_varint(value.len() as u64, &mut out);
        }
        out.extend(value);
    }
    out
}

fn profile_in(folder: &Path) -> PathBuf {
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()) {
            match entry.is_dir() {
                true => folders.push(entry),
                false if entry.to_string_lossy().ends_with(".xplane.pb") => return entry,
                false => (),
            }
        }
    }
    unreachable!("{} has a profile", folder.display())
}

fn strobe(args: &[&str], folder: &Path) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_strobe"));
    command.args(args).current_dir(folder).env_remove("COLUMNS").output().unwrap()
}

/// What an exported page carries.
fn unpacked(page: &str) -> String {
    let data = page.split_once(r#"id="data">"#).unwrap().1.split_once("</script>").unwrap().0;
    let zipped = BASE64.decode(data).unwrap();
    let mut text = String::new();
    GzDecoder::new(zipped.as_slice()).read_to_string(&mut text).unwrap();
    text
}

fn check(what: &str, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    for (given, secret) in table() {
        let around = text.split(&secret).next().filter(|it| it.len() < text.len());
        let before = around.map(|it| it.chars().rev().take(200).collect::<Vec<_>>());
        let before = before.map(|it| it.into_iter().rev().collect::<String>());
        assert_eq!(before, None, "{what} has {secret}, given as {given}");
    }
}

fn check_folder(folder: &Path) -> usize {
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap().map(|it| it.unwrap().path()) {
        check("a name", entry.to_string_lossy().as_bytes());
        if entry.is_dir() {
            files += check_folder(&entry);
        } else {
            check(&entry.display().to_string(), &fs::read(&entry).unwrap());
            files += 1;
        }
    }
    files
}

#[test]
fn no_secret_is_left_anywhere() {
    let table = table();
    assert!(table.len() >= 40);
    let folder = tempfile::tempdir().unwrap();
    let original = profile_in(&Path::new(env!("CARGO_MANIFEST_DIR")).join(PROFILE));
    let original = fs::read(original).unwrap();
    // Every name of an event has one of them.
    let mut nth = 0;
    let profile = renamed(&original, &NAMES, &mut |name| {
        nth += 1;
        let text = table[nth % table.len()].0.replace(" · ", " ");
        [name, b" ", text.as_bytes()].concat()
    });
    assert!(nth > table.len(), "{nth} names");
    fs::write(folder.path().join("host.xplane.pb"), &profile).unwrap();
    // Of a program, its profile and its last words.
    let script = r#"
        run="$STROBE_RUN_FOLDER"
        mkdir -p "$run/profile/7/plugins/profile/t"
        cp host.xplane.pb "$run/profile/7/plugins/profile/t/"
        echo '{"strobe":"python","version":1,"pid":7,"python":"3.12.1","script":"train.py"}' > "$run/python-7.jsonl"
        for it in "$@"; do
            it=$(printf %s "$it" | sed 's/[\\"]/\\&/g')
            printf '["said",9,"failed","ValueError: %s"]\n' "$it" >> "$run/python-7.jsonl"
        done
        exit 3
    "#;
    fs::write(folder.path().join("train.sh"), script).unwrap();

    let mut command = Command::new(env!("CARGO_BIN_EXE_strobe"));
    command.args(["run", "--out", "run", "--", "sh", "train.sh"]).current_dir(folder.path());
    for (nth, (given, secret)) in table.iter().enumerate() {
        // Each in the arguments or in the environment, under a name that says so or in its text.
        match nth % 3 {
            0 => _ = command.env(format!("MY_{nth}_TOKEN"), secret),
            1 => _ = command.env(format!("STROBE_TEST_{nth}"), given.replace(" · ", " ")),
            _ => (),
        }
        command.args(given.split(" · "));
    }
    let done = command.output().unwrap();
    assert_eq!(done.status.code(), Some(3), "{}", String::from_utf8_lossy(&done.stderr));
    check("what strobe run says", &done.stderr);
    let run = folder.path().join("run");
    assert!(check_folder(&run) >= 4);
    assert!(fs::read_to_string(run.join("manifest.json")).unwrap().contains("train.sh"));

    for (path, is_raw) in [("run", false), ("host.xplane.pb", true)] {
        for format in ["text", "json", "md"] {
            let done = strobe(&["report", path, "--format", format], folder.path());
            assert!(!done.stdout.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
            check(&format!("report {path} --format {format}"), &done.stdout);
            check(&format!("report {path} --format {format}"), &done.stderr);
        }
        let done = strobe(&["export", path, "--to", "html", "-o", "-"], folder.path());
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        check(&format!("export {path}"), &done.stdout);
        let data = unpacked(&String::from_utf8_lossy(&done.stdout));
        assert!(!is_raw || data.contains("‹hidden›"), "no name of an event is on the page");
        check(&format!("data of export {path}"), data.as_bytes());
    }
}
