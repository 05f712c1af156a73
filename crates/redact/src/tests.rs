use std::iter::empty;

use crate::{Mask, command, secrets, text, variable};

/// A command or a text, and what may not be left of it. Split at ` · `, so that an argument can
/// hold spaces. The same table is run through the whole program by `crates/cli/tests/secrets.rs`.
pub const SECRETS: &str = include_str!("../testdata/secrets.txt");
pub const HARMLESS: &str = include_str!("../testdata/harmless.txt");

fn lines(table: &'static str) -> impl Iterator<Item = &'static str> {
    table.lines().filter(|it| !it.is_empty() && !it.starts_with('#'))
}

fn table() -> Vec<(&'static str, &'static str)> {
    lines(SECRETS).filter_map(|it| it.split_once(" ⟶ ")).collect()
}

#[test]
fn no_secret_is_left_of_a_command() {
    assert!(table().len() >= 40);
    for (given, secret) in table() {
        assert!(given.contains(secret), "{given} has no {secret}");
        // As arguments of a program, and as one text for a shell.
        let words: Vec<String> = ["python", "train.py"]
            .into_iter()
            .chain(given.split(" · "))
            .map(str::to_owned)
            .collect();
        let kept = command(&words).join(" ");
        assert!(!kept.contains(secret), "{given}: {kept}");
        let line = ["sh", "-c", &given.replace(" · ", " ")].map(str::to_owned);
        let kept = command(&line).join(" ");
        assert!(!kept.contains(secret), "{given}: {kept}");
    }
}

#[test]
fn no_secret_is_left_of_a_text() {
    for (given, secret) in table() {
        let given = given.replace(" · ", " ");
        for (before, after) in [("", ""), ("error: ", " in step 3"), ("\"", "\"")] {
            let given = format!("{before}{given}{after}");
            let kept = text(&given);
            assert!(!kept.contains(secret), "{given}: {kept}");
            let kept = secrets(&given);
            assert!(!kept.contains(secret) && kept.contains("‹hidden›"), "{given}: {kept}");
        }
    }
}

#[test]
fn harmless_texts_stay_as_they_are() {
    for given in lines(HARMLESS) {
        assert_eq!(text(given), given);
        let mut bytes = given.as_bytes().to_vec();
        assert_eq!(Mask::new(&[], empty()).hide(&mut bytes), 0, "{given}");
    }
}

#[test]
fn of_paths_the_last_part_stays() {
    for (given, kept) in [
        ("/home/me/train.py", "…/train.py"),
        ("loop (/home/me/train.py:12)", "loop (…/train.py:12)"),
        ("File \"/a/b c.py\", line 3", "File \"…/b c.py\", line 3"),
        ("File \"/home/jane doe/my code/b c.py\", line 3", "File \"…/b c.py\", line 3"),
        ("in /home/jane doe/my code/train.py:12", "in …/train.py:12"),
        ("in /home/jane van doe/x.py now", "in …/x.py now"),
        ("/data/imagenet at 3 MB/s", "…/imagenet at 3 MB/s"),
        ("~/runs/7/", "…/7"),
        ("/home/me", "~"),
        ("cd /Users/me; ls", "cd ~; ls"),
        ("C:\\Users\\me\\x.py", "…/x.py"),
        ("C:/Users/me/x.py:3", "…/x.py:3"),
        ("C:\\\\Users\\\\me\\\\x.py", "…/x.py"),
        ("D:\\Users\\jane doe\\x.py", "…/x.py"),
        ("\\\\server\\share\\me\\x.py", "…/x.py"),
        ("loc:/home/me/x.py:3:1", "loc:…/x.py:3:1"),
        ("loc(\"/home/me/x.py\":3:1)", "loc(\"…/x.py\":3:1)"),
        ("file:///home/me/x.py", "file:…/x.py"),
        ("gs://bucket/me/data.tfrecord", "gs:…/data.tfrecord"),
        ("--data=/mnt/me/imagenet --lr 0.1", "--data=…/imagenet --lr 0.1"),
        ("/home/me/a.py,/home/you/b.py", "…/a.py,…/b.py"),
    ] {
        assert_eq!(text(given), kept, "{given}");
    }
}

#[test]
fn what_is_harmless_in_a_command_stays() {
    let check = |given: &str, expected: &str| {
        let arguments: Vec<String> = given.split(' ').map(str::to_owned).collect();
        assert_eq!(command(&arguments).join(" "), expected);
    };
    check("python train.py --lr=0.1", "python train.py --lr=0.1");
    check("python -u src/train.py --lr 1e-3 --fp16", "python -u train.py --lr 1e-3 --fp16");
    check("/usr/bin/python3.12 -m pkg.train -b 32", "python3.12 -m pkg.train -b 32");
    check("torchrun --nproc_per_node 2 main.py", "torchrun --nproc_per_node 2 main.py");
    check("accelerate launch --multi_gpu t.py", "accelerate launch --multi_gpu t.py");
    check("train --optimizer adam --use-amp true", "train --optimizer adam --use-amp true");
    check("train model.lr=0.1 --device cuda:0", "train model.lr=0.1 --device cuda:0");
    check("train --seed -1 --image-size 224x224", "train --seed -1 --image-size 224x224");
    check("env OMP_NUM_THREADS=4 python t.py", "env OMP_NUM_THREADS=4 python t.py");
    // What is not known goes.
    check("train --data /mnt/me --name abc", "train --data ‹hidden› --name ‹hidden›");
    check("train --api-key abc --steps 3", "train --api-key ‹hidden› --steps 3");
    check("train --use-auth --steps 3", "train --use-auth --steps 3");
    check("train -p 123456 -phunter2", "train -p ‹hidden› -p‹hidden›");
    check("/home/me/bin/train --pin 123456789012", "train --pin ‹hidden›");
}

#[test]
fn variables_keep_what_matters_for_speed() {
    for (given, kept) in [
        ("0,1", "0,1"),
        ("Ring", "Ring"),
        (
            "expandable_segments:True,max_split_size_mb:128",
            "expandable_segments:True,max_split_size_mb:128",
        ),
        (
            "--xla_gpu_autotune_level=2 --xla_dump_to=/home/me",
            "--xla_gpu_autotune_level=2 --xla_dump_to=‹hidden›",
        ),
        ("hf_0123456789abcdefghij0123", "‹hidden›"),
        ("", ""),
    ] {
        assert_eq!(variable(given), kept, "{given}");
    }
}

#[test]
fn secrets_alone_leave_paths_alone() {
    assert_eq!(secrets("open /home/me/x.py token=abcdef"), "open /home/me/x.py token=‹hidden›");
}

#[test]
fn a_mask_moves_nothing() {
    let words = ["train", "--password", "pa\"ss9"].map(str::to_owned);
    let environment = [("MY_TOKEN", "tok.en-1"), ("USER", "somebody"), ("DB_PASS", "default")];
    let mask = Mask::new(&words, environment.map(|it| (it.0.into(), it.1.into())).into_iter());
    let given = "A\x1ftok.en-1 pa\\\"ss9 somebody default Ahf_0123456789abcdefghij0123\u{1}";
    let mut bytes = given.as_bytes().to_vec();
    assert!(mask.hide(&mut bytes) > 0);
    let kept = String::from_utf8(bytes).unwrap();
    assert_eq!(kept.len(), given.len());
    assert_eq!(kept, "A\u{1f}******** ******* somebody default A***************************\u{1}");
}

#[test]
fn a_mask_knows_words_and_json() {
    let words = ["train", "--password", "pässwort-9"].map(str::to_owned);
    let mask = Mask::new(&words, empty());
    for (given, kept) in [
        ("pässwort-9", "***********"),
        (r#"["said","p\u00e4sswort-9"]"#, r#"["said","***************"]"#),
        ("mask-attentionprojection", "mask-attentionprojection"),
        ("A sk-attentionprojection", "A **********************"),
    ] {
        let mut bytes = given.as_bytes().to_vec();
        mask.hide(&mut bytes);
        assert_eq!(String::from_utf8(bytes).unwrap(), kept);
    }
}
