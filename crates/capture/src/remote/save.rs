//! A profile's file, which appears under its name only when it is whole.

use std::fs::{self, File};
use std::io::{self, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use crate::private;

/// Folders made for each host: `profile/HOST/plugins/profile/TIME`.
const FOLDERS: usize = 5;

/// A profile while it comes: made with its first byte, removed unless it is kept.
#[derive(Debug)]
pub struct Part {
    path: PathBuf,
    part: PathBuf,
    /// Not buffered: the parts that come over the network are large.
    file: Option<File>,
}

impl Part {
    pub fn of(path: &Path) -> Part {
        let mut part = path.as_os_str().to_owned();
        part.push(".part");
        Part { path: path.to_owned(), part: part.into(), file: None }
    }

    /// Whether it has the outer shape of a profile.
    pub fn is_plausible(&self) -> io::Result<bool> {
        match &self.file {
            Some(_) => is_xspace(File::open(&self.part)?),
            None => Ok(false),
        }
    }

    /// Gives it its name.
    pub fn keep(mut self) -> io::Result<()> {
        fs::rename(&self.part, &self.path)?;
        self.file = None;
        Ok(())
    }
}

impl Write for Part {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let file = match &mut self.file {
            Some(file) => file,
            None => {
                if let Some(folder) = self.part.parent() {
                    private::create_folders(folder)?;
                }
                self.file.insert(private::create_file(&self.part)?)
            }
        };
        file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        if self.file.take().is_none() {
            return;
        }
        let _ = fs::remove_file(&self.part);
        // The folders made for it, up to the first that holds something else.
        for folder in self.part.ancestors().skip(1).take(FOLDERS) {
            if fs::remove_dir(folder).is_err() {
                break;
            }
        }
    }
}

/// Fields of XSpace: planes, errors, warnings, host names. All hold bytes.
const FIELDS: std::ops::RangeInclusive<u8> = 1..=4;
const BYTES: u8 = 2;

/// Whether a file consists of fields of XSpace and ends where the last of them does.
fn is_xspace(file: File) -> io::Result<bool> {
    let length = file.metadata()?.len();
    let mut file = BufReader::new(file);
    let mut at = 0;
    let mut planes = 0;
    while at < length {
        let mut key = [0];
        file.read_exact(&mut key)?;
        let field = key[0] >> 3;
        if key[0] & 7 != BYTES || !FIELDS.contains(&field) {
            return Ok(false);
        }
        planes += u32::from(field == 1);
        let Some((size, head)) = read_number(&mut file, length - at - 1)? else {
            return Ok(false);
        };
        at += 1 + head;
        match i64::try_from(size) {
            Ok(skip) if size <= length - at => file.seek_relative(skip)?,
            _ => return Ok(false),
        }
        at += size;
    }
    Ok(planes > 0)
}

/// A varint within the next `room` bytes, and how many it took.
fn read_number(file: &mut impl Read, room: u64) -> io::Result<Option<(u64, u64)>> {
    let mut value = 0_u64;
    for n in 0..room.min(10) {
        let mut byte = [0];
        file.read_exact(&mut byte)?;
        value |= u64::from(byte[0] & 0x7F) << (7 * n);
        if byte[0] & 0x80 == 0 {
            return Ok(Some((value, n + 1)));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::path::Path;

    use super::Part;

    fn is_plausible(bytes: &[u8]) -> bool {
        let folder = tempfile::tempdir().unwrap();
        let mut part = Part::of(&folder.path().join("a/b/c/d/e/x.xplane.pb"));
        part.write_all(bytes).unwrap();
        part.is_plausible().unwrap()
    }

    #[test]
    fn real_profiles_are_plausible_and_their_prefixes_are_not() {
        let testdata = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/captured");
        for name in ["custom_loop", "jax_steps", "on_demand"] {
            let path = testdata.join(name).join("plugins/profile/run/host.xplane.pb");
            let bytes = std::fs::read(path).unwrap();
            assert!(is_plausible(&bytes), "{name}");
            assert!(!is_plausible(&bytes[..bytes.len() - 1]), "{name}, cut off");
        }
    }

    #[test]
    fn garbage_is_not() {
        assert!(!is_plausible(b"<html>404</html>"));
        assert!(!is_plausible(&[0x0A, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1]));
        assert!(!is_plausible(&[0x0A]));
        assert!(!is_plausible(&[0x22, 1, b'h']), "a name of a host, but no plane");
    }

    #[test]
    fn only_what_is_kept_stays() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profile/host/plugins/profile/run/host.xplane.pb");
        let mut part = Part::of(&path);
        part.write_all(b"x").unwrap();
        drop(part);
        assert!(folder.path().exists() && !folder.path().join("profile").exists());
        let mut part = Part::of(&path);
        part.write_all(b"x").unwrap();
        part.keep().unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"x");
        assert_eq!(std::fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }
}
