//! Builds the page from `web/` with Node and lists its files for `src/page.rs`.
//!
//! Without Node, or where npm cannot reach its registry, the program is built all the same: its
//! page then says how to get the real one, and everything else works.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn main() -> Result<(), Box<dyn Error>> {
    let web = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../web");
    let out = PathBuf::from(env::var("OUT_DIR")?).join("web");
    for watched in ["src", "index.html", "package-lock.json", "vite.config.ts", "tsconfig.json"] {
        println!("cargo::rerun-if-changed={}", web.join(watched).display());
    }
    println!("cargo::rerun-if-env-changed=STROBE_NO_PAGE");
    if let Err(why) = build(&web, &out) {
        println!("cargo::warning=the web page is left out: {why}");
        println!(
            "cargo::warning=`strobe serve` and `strobe export --to html` need it; install Node 20.19 \
             or later and build again"
        );
        fs::create_dir_all(&out)?;
        fs::write(out.join("index.html"), include_str!("src/no_page.html"))?;
    }
    let mut list = String::from("&[\n");
    for file in files(&out)? {
        let name = file.strip_prefix(&out)?.to_string_lossy().replace('\\', "/");
        writeln!(list, "    ({name:?}, include_bytes!({file:?})),")?;
    }
    fs::write(out.with_file_name("page_files.rs"), list + "]\n")?;
    Ok(())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>, Box<dyn Error>> {
    let mut all = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() { all.extend(files(&path)?) } else { all.push(path) }
    }
    all.sort();
    Ok(all)
}

fn build(web: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    if out.exists() {
        fs::remove_dir_all(out)?;
    }
    if env::var_os("STROBE_NO_PAGE").is_some() {
        return Err("STROBE_NO_PAGE is set".into());
    }
    let npm = if cfg!(windows) { "npm.cmd" } else { "npm" };
    if !is_installed(web) {
        run(Command::new(npm).args(["ci", "--no-audit", "--no-fund"]).current_dir(web))?;
    }
    let vite = web.join("node_modules/vite/bin/vite.js");
    let bundle = |mode: &str, out: &Path| {
        let mut command = Command::new("node");
        command.arg(&vite).args(["build", "--logLevel", "warn", "--emptyOutDir", "--mode", mode]);
        run(command.arg("--outDir").arg(out).current_dir(web))
    };
    // The page for the server, then the same as one script, for exported files.
    bundle("production", out)?;
    bundle("export", &out.join("export"))
}

/// npm leaves a copy of the lock file in what it installed.
fn is_installed(web: &Path) -> bool {
    let age = |path: PathBuf| fs::metadata(path).and_then(|it| it.modified()).ok();
    match (age(web.join("package-lock.json")), age(web.join("node_modules/.package-lock.json"))) {
        (Some(wanted), Some(installed)) => installed >= wanted,
        _ => false,
    }
}

fn run(command: &mut Command) -> Result<(), Box<dyn Error>> {
    let name = command.get_program().to_string_lossy().into_owned();
    let done = command.output().map_err(|it| format!("{name} could not be started ({it})"))?;
    if done.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&done.stderr);
    let said = said.lines().filter(|it| !it.contains("npm warn")).collect::<Vec<_>>().join(" | ");
    Err(format!("{name} failed: {said}").into())
}
