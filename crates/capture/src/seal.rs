//! A run folder when its run has ended: no secrets that are known, nothing for others to read.
//!
//! Frameworks write profiles with the rights and the names they like, and errors that a program
//! raised may quote what it was given.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use redact::Mask;

use crate::private;

/// How much of a file is looked at together.
const PIECE: usize = 4 << 20;
/// Deeper than a profile.
const DEEPEST: usize = 12;
/// More than a profiler writes into one file.
const MOST_UNZIPPED: u64 = 2 << 30;

/// Goes over all files of a run; what cannot be changed stays as it is.
pub fn seal(run: &Path, mask: &Mask) {
    seal_folder(run, mask, 0);
}

fn seal_folder(folder: &Path, mask: &Mask, depth: usize) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.filter_map(Result::ok) {
        let (path, Ok(kind)) = (entry.path(), entry.file_type()) else { continue };
        if kind.is_dir() && depth < DEEPEST {
            let _ = private::set_mode(&path, 0o700);
            seal_folder(&path, mask, depth + 1);
        } else if kind.is_file() {
            let _ = private::set_mode(&path, 0o600);
            let _ = match path.extension().is_some_and(|it| it == "gz") {
                true => hide_in_zipped(&path, mask),
                false => hide(&path, mask).map(drop),
            };
        }
    }
}

/// Answers how many bytes were hidden.
fn hide(path: &Path, mask: &Mask) -> io::Result<usize> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(&mut options, private::NO_LINK);
    hide_in(&mut options.open(path)?, mask, PIECE)
}

/// Pieces overlap, so that none is cut where a secret is.
fn hide_in(file: &mut File, mask: &Mask, piece: usize) -> io::Result<usize> {
    let overlap = mask.longest();
    let mut hidden = 0;
    let mut bytes = Vec::new();
    let mut at = 0;
    loop {
        file.seek(SeekFrom::Start(at))?;
        bytes.clear();
        let wanted = (piece + overlap) as u64;
        let read = (&*file).take(wanted).read_to_end(&mut bytes)?;
        let here = mask.hide(&mut bytes);
        hidden += here;
        if here > 0 {
            file.seek(SeekFrom::Start(at))?;
            file.write_all(&bytes)?;
        }
        if (read as u64) < wanted {
            return Ok(hidden);
        }
        at += piece as u64;
    }
}

/// JAX writes the same events twice, once as zipped JSON.
fn hide_in_zipped(path: &Path, mask: &Mask) -> io::Result<()> {
    let [plain, zipped] = [".plain", ".part"].map(|it| {
        let mut name = path.as_os_str().to_owned();
        name.push(it);
        PathBuf::from(name)
    });
    let done = rewrite_zipped(path, &plain, &zipped, mask);
    let _ = fs::remove_file(plain);
    let _ = fs::remove_file(zipped);
    // What could not be looked at is not kept either: the profile is there without it.
    done.or_else(|_| fs::remove_file(path))
}

fn rewrite_zipped(path: &Path, plain: &Path, zipped: &Path, mask: &Mask) -> io::Result<()> {
    let mut from = MultiGzDecoder::new(BufReader::new(File::open(path)?)).take(MOST_UNZIPPED);
    let size = io::copy(&mut from, &mut private::create_file(plain)?)?;
    if size == MOST_UNZIPPED {
        return Err(io::ErrorKind::FileTooLarge.into());
    }
    if hide(plain, mask)? == 0 {
        return Ok(());
    }
    let mut to = GzEncoder::new(private::create_file(zipped)?, Compression::fast());
    io::copy(&mut File::open(plain)?, &mut to)?;
    to.finish()?;
    fs::rename(zipped, path)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use redact::Mask;

    use super::{hide_in, seal};

    fn mask() -> Mask {
        let words = ["train", "--password", "hunter2hunter2"].map(str::to_owned);
        Mask::new(&words, std::iter::empty())
    }

    #[test]
    fn secrets_are_found_wherever_pieces_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x");
        for before in 0..40 {
            let text = format!("{}hunter2hunter2{}", "a".repeat(before), "b".repeat(3000));
            fs::write(&path, &text).unwrap();
            let mut file = fs::OpenOptions::new().read(true).write(true).open(&path).unwrap();
            hide_in(&mut file, &mask(), 16).unwrap();
            let kept = fs::read_to_string(&path).unwrap();
            assert_eq!(kept, text.replace("hunter2hunter2", "**************"), "{before}");
        }
    }

    #[test]
    fn zipped_files_are_looked_into() {
        use std::io::{Read as _, Write as _};
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("host.trace.json.gz");
        let mut zipped = super::GzEncoder::new(Vec::new(), super::Compression::fast());
        zipped.write_all(b"{\"name\": \"hunter2hunter2\"}").unwrap();
        fs::write(&path, zipped.finish().unwrap()).unwrap();
        let broken = folder.path().join("broken.gz");
        fs::write(&broken, "hunter2hunter2, or not").unwrap();
        seal(folder.path(), &mask());
        let mut kept = String::new();
        let file = fs::File::open(&path).unwrap();
        super::MultiGzDecoder::new(file).read_to_string(&mut kept).unwrap();
        assert_eq!(kept, "{\"name\": \"**************\"}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[cfg(unix)]
    #[test]
    fn all_files_of_a_run_are_private_and_links_are_left_alone() {
        use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
        let folder = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        let secret = "hunter2hunter2";
        fs::write(outside.path().join("own.txt"), secret).unwrap();
        fs::create_dir_all(folder.path().join("profile/7")).unwrap();
        let file = folder.path().join("profile/7/x.pb");
        fs::write(&file, secret).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
        symlink(outside.path(), folder.path().join("folder")).unwrap();
        symlink(outside.path().join("own.txt"), folder.path().join("file")).unwrap();
        seal(folder.path(), &mask());
        assert_eq!(fs::read_to_string(&file).unwrap(), "*".repeat(14));
        assert_eq!(fs::metadata(&file).unwrap().mode() & 0o777, 0o600);
        assert_eq!(fs::metadata(file.parent().unwrap()).unwrap().mode() & 0o777, 0o700);
        assert_eq!(fs::read_to_string(outside.path().join("own.txt")).unwrap(), secret);
    }
}
