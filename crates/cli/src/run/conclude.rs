//! What `strobe run` says at the end: all that is known of the run, and why it is not more.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use analyses::run_step::{Overhead, RunStep};
use capture::{Ended, ProcessLog};
use session::Session;
use session::report::words::thousands;
use trace::Dur;

use super::Args;
use crate::output::{Format, Output, wrap};
use crate::report;

/// A run that has ended.
pub struct Conclusion<'a> {
    pub args: &'a Args,
    pub folder: &'a Path,
    pub processes: &'a [ProcessLog],
    pub ended: Ended,
    /// The profile that the program took itself.
    pub own: Option<OwnProfile>,
    pub unwritten: Vec<io::Error>,
}

/// A profile that the program wrote, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnProfile {
    pub from: PathBuf,
    /// Whether it is part of the run folder now.
    pub is_kept: bool,
}

impl Conclusion<'_> {
    pub fn print(&self) -> anyhow::Result<()> {
        let mut out = Output::of_stderr();
        if let Some(line) = self.disk() {
            write!(out, "{}", wrap(&format!("strobe: {line}"), out.width, ""))?;
            // What little there is says nothing about the command.
            if self.processes.is_empty() {
                return Ok(out.flush()?);
            }
        }
        let has_profile = ["profile", "torch"].iter().any(|it| self.folder.join(it).exists());
        let why = (!has_profile).then(|| self.why_no_profile());
        let knows_more = has_profile || (self.n_steps() > 0 && !self.args.no_capture);
        match why {
            Some(why) if !knows_more => {
                let why = redact::secrets(&why);
                writeln!(out, "strobe: {why}\n  run: {}", self.folder.display())?;
            }
            why => self.report(why.as_deref(), &mut out)?,
        }
        Ok(out.flush()?)
    }

    fn report(&self, why: Option<&str>, out: &mut Output) -> anyhow::Result<()> {
        let session = Session::open(self.folder)?;
        let summary = session.report();
        if let Some(why) = why {
            writeln!(out, "strobe: {}", redact::secrets(why))?;
        }
        match &self.args.report {
            Some(path) => {
                let mut to = Output::of_file(File::create(path)?);
                report::print(&summary, self.args.format, false, &mut to)?;
                to.flush()?;
            }
            None => report::print(&summary, self.args.format, false, out)?,
        }
        if self.args.format == Format::Text || self.args.report.is_some() {
            writeln!(out)?;
            let lines = [self.own_in_words(), self.what_it_cost(&session)];
            for line in lines.into_iter().flatten() {
                write!(out, "{}", wrap(&line, out.width, " "))?;
            }
            writeln!(out, " Kept: strobe report {}", self.folder.display())?;
        }
        Ok(())
    }

    fn n_steps(&self) -> i64 {
        self.processes.iter().map(|it| it.n_steps).sum()
    }

    fn said(&self, what: &str) -> Option<&str> {
        self.processes.iter().find_map(|it| it.last(what)).map(|it| it.text.as_str())
    }

    fn own_in_words(&self) -> Option<String> {
        let own = self.own.as_ref().filter(|it| it.is_kept)?;
        Some(format!("The program took this profile itself, in {}", own.from.display()))
    }

    /// What profiling did to the steps it saw, against those around them.
    fn what_it_cost(&self, session: &Session) -> Option<String> {
        let timed = self.n_steps();
        let profiled = profiled_steps(session);
        if timed == 0 || profiled == 0 {
            return None;
        }
        let mut line = format!("Profiled: {profiled} of {timed} steps");
        match Overhead::of(session.tables()) {
            Some(it) => {
                let more = (it.on_ps - it.off_ps) as f64 / it.off_ps.max(1) as f64 * 100.0;
                line += &format!(
                    "; median {} with the profiler on, {} just before and after ({more:+.1}%)",
                    Dur(it.on_ps),
                    Dur(it.off_ps)
                );
            }
            None => {
                line += "; the steps around them are too few, or of too different a pace, to say \
                         what profiling cost";
            }
        }
        Some(line)
    }

    /// What could not be written, once.
    fn disk(&self) -> Option<String> {
        use io::ErrorKind::{
            FileTooLarge, NotFound, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
        };
        if !self.folder.exists() {
            return Some("the run folder was removed while the command ran".to_owned());
        }
        let error = self.unwritten.first()?;
        let what = match error.kind() {
            StorageFull => "the disk is full".to_owned(),
            FileTooLarge => "a file would be larger than is allowed here (ulimit -f)".to_owned(),
            QuotaExceeded => "the disk quota is used up".to_owned(),
            ReadOnlyFilesystem => "the disk is read-only".to_owned(),
            NotFound => "part of the run folder was removed".to_owned(),
            _ => error.to_string(),
        };
        Some(format!("{what}, so not all of this run was recorded"))
    }

    fn why_no_profile(&self) -> String {
        let n = self.n_steps();
        let steps = match n {
            1 => "1 step".to_owned(),
            n => format!("{} steps", thousands(usize::try_from(n).unwrap_or(0))),
        };
        if self.args.no_capture {
            return format!("{steps} timed, none profiled, as asked");
        }
        // Whoever reads this sees what the command itself said; steps are no matter then.
        let failed = match self.ended {
            Ended::Code(0) => None,
            Ended::Code(code) => Some(format!("the command ended with code {code}")),
            Ended::Signal(signal) => Some(format!("the command was ended by signal {signal}")),
        };
        if let Some(failed) = failed.filter(|_| n == 0 && self.said("none").is_none()) {
            return format!("{failed}; there is nothing to report");
        }
        if self.processes.is_empty() {
            return "nothing was captured: no process of this command imported TensorFlow, JAX or \
                    PyTorch\n  hint: `python -I` and `python -E` ignore what is put in front of them"
                .to_owned();
        }
        if let Some(own) = &self.own {
            return format!(
                "the program took its own profile, which could not be copied\n  hint: strobe \
                 report {}",
                own.from.display()
            );
        }
        if let Some(own) = self.said("own-profiler") {
            return format!(
                "no profile was taken: the program uses the profiler itself ({own})\n  hint: \
                 without it, strobe profiles the steps"
            );
        }
        let reason = ["failed", "none", "busy", "not-watched"].iter().find_map(|it| self.said(it));
        match reason {
            Some(reason) => format!("no profile was taken: {reason}"),
            None if self.said("window-start").is_some() => {
                "the process ended while it was being profiled, and its profile went with it"
                    .to_owned()
            }
            None => format!(
                "no profile was taken: the program ended after {steps}, before they were steady"
            ),
        }
    }
}

fn profiled_steps(session: &Session) -> i64 {
    let rows = session.tables().get::<RunStep>();
    rows.iter().filter(|it| it.profiled != "no").map(|it| it.steps).sum()
}

/// Of a run without a profile of ours: copies what the program's own profiler wrote into the run
/// folder, where it is read together with all else that was recorded.
pub fn take_own_profile(
    run: &Path,
    processes: &[ProcessLog],
    since: SystemTime,
) -> Option<OwnProfile> {
    if ["profile", "torch"].iter().any(|it| run.join(it).exists()) {
        return None;
    }
    let all = processes.iter().flat_map(|it| it.said.iter().map(move |said| (it.pid, said)));
    // The last one: earlier ones were a warm-up, or are there as well.
    for (pid, said) in all.collect::<Vec<_>>().into_iter().rev() {
        let Some((_, folder)) = said.text.split_once(" into ") else { continue };
        if said.what != "own-profiler" {
            continue;
        }
        let Some(newest) = newest_profile(Path::new(folder), since) else { continue };
        let time = newest.parent().and_then(Path::file_name).unwrap_or_default();
        let kept = run.join("profile").join(format!("{pid}/plugins/profile")).join(time);
        let is_kept = copy_profile(&newest, &kept).is_ok();
        if !is_kept {
            let _ = fs::remove_dir_all(run.join("profile"));
        }
        let from = newest.parent().unwrap_or(Path::new(folder)).to_owned();
        return Some(OwnProfile { from, is_kept });
    }
    None
}

/// Deeper than any log folder.
const DEEPEST: usize = 8;

fn newest_profile(folder: &Path, since: SystemTime) -> Option<PathBuf> {
    let mut newest: Option<(SystemTime, PathBuf)> = None;
    let mut folders = vec![(folder.to_owned(), 0)];
    while let Some((folder, depth)) = folders.pop() {
        let Ok(entries) = fs::read_dir(folder) else { continue };
        for entry in entries.filter_map(Result::ok) {
            let Ok(about) = entry.metadata() else { continue };
            if about.is_dir() && depth < DEEPEST {
                folders.push((entry.path(), depth + 1));
            }
            let is_profile = entry.file_name().to_string_lossy().ends_with(".xplane.pb");
            let Some(written) = about.modified().ok().filter(|_| is_profile && about.is_file())
            else {
                continue;
            };
            if written >= since && newest.as_ref().is_none_or(|it| it.0 <= written) {
                newest = Some((written, entry.path()));
            }
        }
    }
    newest.map(|it| it.1)
}

fn copy_profile(file: &Path, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let name = file.file_name().unwrap_or_default();
    fs::copy(file, folder.join(name)).map(|_| ())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, SystemTime};

    use capture::ProcessLog;
    use runlog::Said;

    use super::take_own_profile;

    #[test]
    fn the_last_profile_of_the_program_becomes_part_of_the_run() {
        let [run, logs] = [(), ()].map(|()| tempfile::tempdir().unwrap());
        let began = SystemTime::now() - Duration::from_secs(60);
        let said = |what: &str| Said {
            unix_ns: 1,
            what: what.to_owned(),
            text: format!("tensorflow into {}", logs.path().display()),
        };
        let process = |what| ProcessLog { pid: 7, said: vec![said(what)], ..ProcessLog::default() };
        let take = |what, since| take_own_profile(run.path(), &[process(what)], since);
        assert_eq!(take("own-profiler", began), None, "it wrote nothing");
        let folder = logs.path().join("train/plugins/profile/2026_11_18_09_00_00");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("vm.xplane.pb"), "x").unwrap();
        assert_eq!(take("window-start", began), None);
        let later = SystemTime::now() + Duration::from_secs(60);
        assert_eq!(take("own-profiler", later), None, "of an earlier run");
        let own = take("own-profiler", began).unwrap();
        assert_eq!((own.from, own.is_kept), (folder, true));
        let kept = run.path().join("profile/7/plugins/profile/2026_11_18_09_00_00/vm.xplane.pb");
        assert_eq!(fs::read(kept).unwrap(), b"x");
        assert_eq!(take("own-profiler", began), None, "there is one");
    }
}
