//! Lists the files of the page for `src/page.rs`; the crate `page` makes them.
//!
//! Without Node, or where npm cannot reach its registry, the program is built all the same: its
//! page then says how to get the real one, and everything else works.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let page = page::Page::here();
    let out = PathBuf::from(env::var("OUT_DIR")?).join("web");
    for watched in page.watched() {
        println!("cargo::rerun-if-changed={}", watched.display());
    }
    println!("cargo::rerun-if-env-changed={}", page::LEFT_OUT);
    // For the source package, which brings the page built.
    if let Ok(it) = page.fingerprint() {
        fs::write(out.with_file_name(page::FINGERPRINT), it + "\n")?;
    }
    if let Err(no_page) = page.make(&out) {
        println!(
            "cargo::warning=built without the web page, which `strobe serve` and `strobe export \
             --to html` need: {}; {}",
            no_page.why, no_page.hint
        );
        if !page.is_left_out {
            // There when the page can be built: until then each build tries again.
            println!("cargo::rerun-if-changed={}", page.installed().display());
        }
        fs::create_dir_all(&out)?;
        fs::write(out.join("index.html"), include_str!("src/no_page.html"))?;
    }
    let mut list = String::from("&[\n");
    for file in page::files(&out)? {
        let name = file.strip_prefix(&out)?.to_string_lossy().replace('\\', "/");
        writeln!(list, "    ({name:?}, include_bytes!({file:?})),")?;
    }
    fs::write(out.with_file_name("page_files.rs"), list + "]\n")?;
    Ok(())
}
