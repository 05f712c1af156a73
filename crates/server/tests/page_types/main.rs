//! The page's types of what it is answered: made of what answers, and fresh.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a type that cannot be made is a failed test"
)]

mod answers;
mod tables;

/// Texts that the page holds are what the code says; `UPDATE=1 cargo test` rewrites them.
fn check(name: &str, fresh: &str) {
    let path = format!("{}/../../web/src/data/{name}", env!("CARGO_MANIFEST_DIR"));
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(&path, fresh).unwrap();
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == fresh, "web/src/data/{name} is stale: run UPDATE=1 cargo test");
}

/// A doc comment, as the page's formatter leaves it.
fn comment(doc: &str, indent: &str) -> String {
    const WIDTH: usize = 100;
    if doc.trim().is_empty() {
        return String::new();
    }
    let paragraphs = doc.trim().split("\n\n");
    let paragraphs: Vec<String> =
        paragraphs.map(|it| it.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
    let one = format!("{indent}/** {} */\n", paragraphs.join(" "));
    if paragraphs.len() == 1 && one.trim_end().chars().count() <= WIDTH {
        return one;
    }
    let mut text = format!("{indent}/**\n");
    for (at, paragraph) in paragraphs.iter().enumerate() {
        if at > 0 {
            text.push_str(&format!("{indent} *\n"));
        }
        let mut line = format!("{indent} *");
        for word in paragraph.split(' ') {
            if line.chars().count() + 1 + word.chars().count() > WIDTH {
                text.push_str(&format!("{line}\n"));
                line = format!("{indent} *");
            }
            line.push_str(&format!(" {word}"));
        }
        text.push_str(&format!("{line}\n"));
    }
    format!("{text}{indent} */\n")
}
