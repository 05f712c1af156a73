//! Folders and files that are nobody else's, whatever the umask.
//!
//! What is written for a run may hold secrets, and part of it is code that the user's program
//! runs: whoever can put a file there, or a folder in its place, acts as the user.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// Makes one folder, which must not be there.
pub(crate) fn create_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)?;
    // A umask may have taken away what we need ourselves.
    set_mode(path, 0o700)
}

/// Makes the folders of a path that are missing.
pub(crate) fn create_folders(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    if let Some(above) = path.parent().filter(|it| !it.as_os_str().is_empty()) {
        create_folders(above)?;
    }
    match create_folder(path) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        done => done,
    }
}

/// Makes a file, or empties one of ours; a link is not followed.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600).custom_flags(NO_LINK);
    }
    let file = options.open(path)?;
    #[cfg(unix)]
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))?;
    Ok(file)
}

pub(crate) fn write_file(path: &Path, bytes: &[u8]) -> io::Result<()> {
    create_file(path)?.write_all(bytes)
}

#[cfg(unix)]
pub(crate) const NO_LINK: i32 = rustix::fs::OFlags::NOFOLLOW.bits() as i32;

#[cfg(unix)]
pub(crate) fn set_mode(path: &Path, mode: u32) -> io::Result<()> {
    fs::set_permissions(path, std::os::unix::fs::PermissionsExt::from_mode(mode))
}

#[cfg(not(unix))]
pub(crate) fn set_mode(_: &Path, _: u32) -> io::Result<()> {
    Ok(())
}

/// Whose a folder is, and who can change what is in it.
#[cfg(unix)]
#[derive(Debug, Clone, Copy)]
struct Access {
    is_ours: bool,
    is_roots: bool,
    group_writes: bool,
    everybody_writes: bool,
    /// Others cannot rename or remove what is ours.
    is_sticky: bool,
}

#[cfg(unix)]
impl Access {
    fn of(folder: &Path) -> io::Result<Access> {
        use std::os::unix::fs::MetadataExt as _;
        let about = fs::symlink_metadata(folder)?;
        let mode = about.mode();
        Ok(Access {
            is_ours: about.uid() == rustix::process::geteuid().as_raw(),
            is_roots: about.uid() == 0,
            group_writes: mode & 0o020 != 0,
            everybody_writes: mode & 0o002 != 0,
            is_sticky: mode & 0o1000 != 0,
        })
    }
}

/// Whether a folder is the user's own, as far as the system tells.
#[cfg(unix)]
pub(crate) fn is_ours(folder: &Path) -> io::Result<bool> {
    Access::of(folder).map(|it| it.is_ours)
}

#[cfg(not(unix))]
pub(crate) fn is_ours(_: &Path) -> io::Result<bool> {
    Ok(true)
}

/// The first folder of a real path in which everybody can rename what is ours.
#[cfg(unix)]
pub(crate) fn open_to_everybody(real: &Path) -> Option<PathBuf> {
    let is_open = |it: &&Path| {
        Access::of(it).is_ok_and(|access| access.everybody_writes && !access.is_sticky)
    };
    real.ancestors().find(is_open).map(Path::to_owned)
}

#[cfg(not(unix))]
pub(crate) fn open_to_everybody(_: &Path) -> Option<PathBuf> {
    None
}

/// Whether nobody but the user and root can put anything in a real path's place.
#[cfg(unix)]
pub(crate) fn is_guarded(real: &Path) -> bool {
    real.ancestors().all(|it| {
        Access::of(it).is_ok_and(|access| {
            let others_write = access.group_writes || access.everybody_writes;
            (access.is_ours || access.is_roots) && (!others_write || access.is_sticky)
        })
    })
}

#[cfg(not(unix))]
pub(crate) fn is_guarded(_: &Path) -> bool {
    true
}

/// A new folder of our own somewhere that only we and root can change, removed when dropped.
pub(crate) fn guarded_folder() -> io::Result<tempfile::TempDir> {
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let places = runtime.into_iter().chain([
        std::env::temp_dir(),
        PathBuf::from("/tmp"),
        PathBuf::from("/var/tmp"),
    ]);
    let mut first_error = None;
    for place in places.filter(|it| it.is_absolute()) {
        let Ok(real) = place.canonicalize() else { continue };
        if !is_guarded(&real) {
            continue;
        }
        let folder = tempfile::Builder::new().prefix("strobe-").tempdir_in(&real);
        match folder.and_then(|it| set_mode(it.path(), 0o700).map(|()| it)) {
            Ok(folder) => return Ok(folder),
            Err(error) => _ = first_error.get_or_insert(error),
        }
    }
    let nowhere = || io::Error::other("there is no folder here that only you can change");
    Err(first_error.unwrap_or_else(nowhere))
}
