//! Files that are no profiles, and places without any.

use super::*;

#[test]
fn other_files_are_refused_with_a_reason() {
    let _turn = alone();
    let png = [b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR".as_slice(), &[7; 500]].concat();
    let cases: [(&str, Vec<u8>, &str); 10] = [
        ("empty", Vec::new(), "the file is empty"),
        ("text", b"loss 0.31 after 100 steps\n".repeat(50), "not a profile that strobe can read"),
        (
            "json",
            br#"{"losses": [{"step": 1, "loss": 0.5}]}"#.to_vec(),
            "not a profile that strobe can read",
        ),
        (
            "trace without events",
            br#"{"traceEvents": [{"ph": "M", "name": "process_name"}]}"#.to_vec(),
            "no event in this trace could be read",
        ),
        ("png", png, "not a profile that strobe can read"),
        ("zeros", vec![0; 5000], "not a profile that strobe can read"),
        ("ones", vec![0xFF; 5000], "not a profile that strobe can read"),
        (
            "gzip of text",
            gzip(&b"nothing to see here\n".repeat(50)),
            "not a profile that strobe can read",
        ),
        ("gzip of nothing", gzip(b""), "the file is empty"),
        ("gzip of 2 bytes", vec![0x1F, 0x8B], "unexpected end of file"),
    ];
    for (name, bytes, expected) in cases {
        let error = open(name, &bytes).expect_err(name).to_string();
        assert!(error.contains(expected), "{name}: {error}");
        assert!(error.lines().last().unwrap().contains("file: "), "the path comes last: {error}");
    }
}

#[test]
fn places_without_a_profile_are_named() {
    let _turn = alone();
    let empty = folder("no_profile");
    std::fs::write(empty.join("events.out.tfevents.1"), b"x").unwrap();
    let error = Session::open(&empty).unwrap_err();
    assert!(matches!(&error, OpenError::NoProfile { path } if *path == empty), "{error}");
    let missing = empty.join("nowhere");
    let error = Session::open(&missing).unwrap_err();
    assert!(matches!(&error, OpenError::Missing { path } if *path == missing), "{error}");
}

#[cfg(unix)]
#[test]
fn a_pipe_is_refused_rather_than_waited_for() {
    let _turn = alone();
    let pipe = folder("pipe").join("host.xplane.pb");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    if !made.is_ok_and(|it| it.success()) {
        println!("skipped: mkfifo is not here");
        return;
    }
    let error = Session::open(&pipe).unwrap_err().to_string();
    assert!(error.contains("no regular file"), "{error}");
}

#[test]
fn one_broken_host_does_not_hide_the_others() {
    let _turn = alone();
    let run = folder("hosts").join("plugins/profile/run");
    std::fs::create_dir_all(&run).unwrap();
    std::fs::write(run.join("fine.xplane.pb"), synthetic("two_hosts")).unwrap();
    for broken in [b"".as_slice(), b"not a profile", &[0xFF; 100]] {
        std::fs::write(run.join("broken.xplane.pb"), broken).unwrap();
        let session = Session::open(&run).unwrap();
        invariants::check_trace(session.trace());
        invariants::check_tables(session.tables());
        assert_eq!(notes(session.trace()), [("unreadable-file", 1)]);
        assert_eq!(session.trace().tracks_of(TrackKind::Host).count(), 1);
        assert!(!session.tables().get::<Step>().is_empty());
    }
    std::fs::write(run.join("fine.xplane.pb"), b"no more").unwrap();
    assert!(Session::open(&run).is_err(), "none can be read");
}

#[test]
fn a_zipped_profile_that_is_cut_off_gives_what_is_there() {
    let _turn = alone();
    let zipped = gzip(&retrace_loop());
    let whole = open("host.xplane.pb.gz", &zipped).unwrap();
    assert_eq!(notes(whole.trace()), []);
    let half = open("host.xplane.pb.gz", &zipped[..zipped.len() / 2]).unwrap();
    assert!(half.trace().notes.iter().any(|it| it.kind == NoteKind::Truncated));
    assert!((1..whole.trace().events.len()).contains(&half.trace().events.len()));

    let mut wrong_sum = zipped.clone();
    let sum = wrong_sum.len() - 8;
    wrong_sum[sum] ^= 1;
    let wrong_sum = open("host.xplane.pb.gz", &wrong_sum).unwrap();
    assert_eq!(notes(wrong_sum.trace()), [("malformed", 1)]);
}

#[test]
fn a_zip_of_zeros_does_not_fill_the_memory() {
    let _turn = alone();
    // A megabyte that unzips to one gigabyte: members of 16 MB each.
    let bomb = gzip(&vec![0; 16 << 20]).repeat(64);
    let path = folder("bomb").join("host.xplane.pb.gz");
    std::fs::write(&path, &bomb).unwrap();
    // The buffer doubles as it grows.
    let heap = 2 * ((1 << 20) + 100 * bomb.len());
    let error = within("bomb", heap, || Session::open(&path)).unwrap_err().to_string();
    assert!(error.contains("more than 100 times larger"), "{error}");
}
