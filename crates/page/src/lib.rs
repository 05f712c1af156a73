//! Makes the files of the web page, for the server's build script.
//!
//! ```text
//! crates/page/built, as a source package brings it ─┐ while `web/` is what it was built from
//! web/ ── npm ci ──▶ packages ── vite ──▶ files ────┴──▶ OUT_DIR
//! ```
//!
//! Not here: whether a program without its page is worth having; the server decides that.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The environment variable that asks for a program without its page.
pub const LEFT_OUT: &str = "STROBE_NO_PAGE";

/// What the page is built from, below `web/`.
const INPUTS: [&str; 6] =
    ["src", "index.html", "package.json", "package-lock.json", "vite.config.ts", "tsconfig.json"];

/// The file beside the built ones that says what they were built from.
pub const FINGERPRINT: &str = "built-from";

/// The oldest that Vite runs on, as `engines` in `web/package.json` has it.
const NODE: (u32, u32) = (20, 19);

/// A registry that is not there must not hold up the build: npm by itself tries for minutes, and
/// with one retry more still for two and a half, where nobody answers. So it takes 20 seconds.
const NPM_CI: [&str; 6] = [
    "ci",
    "--no-audit",
    "--no-fund",
    "--prefer-offline",
    "--fetch-timeout=15000",
    "--fetch-retries=0",
];

/// Where the page comes from.
#[derive(Debug)]
pub struct Page {
    /// Its sources.
    pub web: PathBuf,
    /// Where a source package has it built.
    pub built: PathBuf,
    /// Where programs are looked for, if not in the `PATH`.
    pub programs: Option<PathBuf>,
    pub is_left_out: bool,
}

/// Why there is no page, and what to do about it.
#[derive(Debug)]
pub struct NoPage {
    pub why: String,
    pub hint: String,
}

impl Page {
    /// Of the folder that this is compiled in.
    pub fn here() -> Page {
        let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
        Page {
            web: crate_folder.join("../../web"),
            built: crate_folder.join("built"),
            programs: None,
            is_left_out: std::env::var_os(LEFT_OUT).is_some(),
        }
    }

    /// What changes the page when it changes.
    pub fn watched(&self) -> Vec<PathBuf> {
        let inputs = INPUTS.iter().map(|it| self.web.join(it));
        // Cargo builds anew, each time, what depends on something that is not there.
        inputs.chain([self.built.join(FINGERPRINT)]).filter(|it| it.exists()).collect()
    }

    /// What npm leaves beside the packages: a copy of the lock file.
    pub fn installed(&self) -> PathBuf {
        self.web.join("node_modules/.package-lock.json")
    }

    /// Whether making the page begins with npm.
    pub fn will_fetch(&self) -> bool {
        !self.is_left_out && !self.is_built() && !self.is_installed() && self.node().is_ok()
    }

    /// Whether the built files are those of the sources.
    pub fn is_built(&self) -> bool {
        let Ok(from) = fs::read_to_string(self.built.join(FINGERPRINT)) else { return false };
        self.fingerprint().is_ok_and(|it| it == from.trim())
    }

    /// A number for the sources of the page.
    pub fn fingerprint(&self) -> io::Result<String> {
        let mut hash = Fnv::default();
        for input in INPUTS {
            for file in files(&self.web.join(input))? {
                let name = file.strip_prefix(&self.web).unwrap_or(&file);
                hash.add(name.to_string_lossy().replace('\\', "/").as_bytes());
                hash.add(&fs::read(&file)?);
            }
        }
        Ok(format!("{:016x}", hash.0))
    }

    /// Puts the files of the page into `out`, and nothing else.
    pub fn make(&self, out: &Path) -> Result<(), NoPage> {
        clear(out)?;
        if self.is_left_out {
            return Err(NoPage::new(format!("{LEFT_OUT} is set"), "build again without it"));
        }
        if self.is_built() {
            return Ok(self.copy(out)?);
        }
        let made = self.build(out);
        if made.is_err() {
            clear(out)?;
        }
        made
    }

    fn copy(&self, out: &Path) -> io::Result<()> {
        for file in files(&self.built)? {
            let name = file.strip_prefix(&self.built).unwrap_or(&file);
            if name == Path::new(FINGERPRINT) {
                continue;
            }
            let to = out.join(name);
            to.parent().map_or(Ok(()), fs::create_dir_all)?;
            fs::copy(file, to)?;
        }
        Ok(())
    }

    fn build(&self, out: &Path) -> Result<(), NoPage> {
        self.node()?;
        if !self.is_installed() {
            self.install()?;
        }
        let vite = self.web.join("node_modules/vite/bin/vite.js");
        let bundle = |mode: &str, out: &Path| {
            let mut command = self.command("node");
            command.arg(&vite).args(["build", "--logLevel", "warn", "--emptyOutDir"]);
            let done = run(command.args(["--mode", mode, "--outDir"]).arg(out))?;
            match done.status.success() {
                true => Ok(()),
                false => Err(NoPage::new(
                    format!("Vite failed: {}", last_words(&done)),
                    "`npm run build` in web/ shows all of it",
                )),
            }
        };
        // The page for the server, then the same as one script, for exported files.
        bundle("production", out)?;
        bundle("export", &out.join("export"))
    }

    /// Whether there is a Node that is new enough, with its npm.
    fn node(&self) -> Result<(), NoPage> {
        let hint =
            format!("install Node {}.{} or later, with npm, and build again", NODE.0, NODE.1);
        let missing = |what: &str| NoPage::new(format!("{what} is missing"), &hint);
        let node = run(self.command("node").arg("--version")).map_err(|_| missing("Node"))?;
        let version = String::from_utf8_lossy(&node.stdout).trim().to_owned();
        if !is_new_enough(&version) {
            return Err(NoPage::new(format!("Node is too old ({version})"), &hint));
        }
        if self.is_installed() {
            return Ok(());
        }
        run(self.command(NPM).arg("--version")).map_err(|_| missing("npm")).map(|_| ())
    }

    fn is_installed(&self) -> bool {
        let age = |path: PathBuf| fs::metadata(path).and_then(|it| it.modified()).ok();
        match (age(self.web.join("package-lock.json")), age(self.installed())) {
            (Some(wanted), Some(installed)) => installed >= wanted,
            _ => false,
        }
    }

    fn install(&self) -> Result<(), NoPage> {
        let done = run(self.command(NPM).args(NPM_CI))?;
        if done.status.success() {
            return Ok(());
        }
        let said = last_words(&done);
        Err(match UNREACHABLE.iter().find(|it| said.contains(**it)) {
            Some(code) => NoPage::new(
                format!("npm could not reach its registry ({code})"),
                "run `npm ci` in web/ where there is a network, or build a source package, which \
                 brings the page along",
            ),
            None => NoPage::new(format!("npm failed: {said}"), "`npm ci` in web/ shows all of it"),
        })
    }

    fn command(&self, program: &str) -> Command {
        let mut command = match &self.programs {
            Some(folder) => Command::new(folder.join(program)),
            None => Command::new(program),
        };
        command.current_dir(&self.web);
        command
    }
}

const NPM: &str = if cfg!(windows) { "npm.cmd" } else { "npm" };

/// What npm calls a network that is not there.
const UNREACHABLE: [&str; 11] = [
    "EAI_AGAIN",
    "ECONNREFUSED",
    "ECONNRESET",
    "EHOSTUNREACH",
    "EIDLETIMEOUT",
    "ENETUNREACH",
    "ENOTCACHED",
    "ENOTFOUND",
    "ERR_SOCKET_TIMEOUT",
    "ETIMEDOUT",
    "FETCH_ERROR",
];

impl NoPage {
    fn new(why: impl Into<String>, hint: impl Into<String>) -> NoPage {
        NoPage { why: why.into(), hint: hint.into() }
    }
}

impl From<io::Error> for NoPage {
    fn from(error: io::Error) -> NoPage {
        NoPage::new(format!("its files could not be written ({error})"), "build again")
    }
}

fn clear(folder: &Path) -> io::Result<()> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn run(command: &mut Command) -> Result<Output, NoPage> {
    let name = command.get_program().to_string_lossy().into_owned();
    command.output().map_err(|it| {
        NoPage::new(format!("{name} could not be started ({it})"), "build again when it can")
    })
}

fn last_words(done: &Output) -> String {
    let said = String::from_utf8_lossy(&done.stderr);
    said.lines().filter(|it| !it.contains("npm warn")).collect::<Vec<_>>().join(" | ")
}

fn is_new_enough(version: &str) -> bool {
    let mut parts = version.trim_start_matches('v').split('.').map_while(|it| it.parse().ok());
    (parts.next().unwrap_or(0), parts.next().unwrap_or(0)) >= NODE
}

/// All files below a folder, or the one file, in an order that is the same everywhere.
pub fn files(path: &Path) -> io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut entries =
        fs::read_dir(path)?.map(|it| Ok(it?.path())).collect::<io::Result<Vec<PathBuf>>>()?;
    entries.sort();
    let mut all = Vec::new();
    for entry in entries {
        all.extend(files(&entry)?);
    }
    Ok(all)
}

/// The hash of Fowler, Noll and Vo: the same on every machine and with every Rust.
struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Fnv {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv {
    /// The length too, so that bytes cannot move from one file into the next.
    fn add(&mut self, bytes: &[u8]) {
        for byte in (bytes.len() as u64).to_le_bytes().iter().chain(bytes) {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
