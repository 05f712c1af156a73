//! Reads the step times of a whole run from a run folder (docs/run-folder.md).
//!
//! ```text
//! python-PID.jsonl    ["step", TIME, N] …      ─▶  times between records
//!                     ["step-key", …]          ─▶  another series begins
//!                     ["said", "window-…", …]  ─▶  steps the profiler disturbed are set apart
//! ```
//!
//! Not read: stacks and samples. Another kind of file with times of its own, as of a drained input
//! pipeline, is another function that fills a [`TimeSeries`] line by line.

use std::io;
use std::path::{Path, PathBuf};

use runlog::{Line, Record};
use statistics::Series;
use trace::{Note, NoteKind};

/// Why a folder has no step times. The path comes last.
#[derive(Debug, thiserror::Error)]
pub enum StepTimesError {
    #[error("there is no such folder\n  path: {}", path.display())]
    Missing { path: PathBuf },
    #[error(
        "no step times here\n  hint: a folder that `strobe run` wrote has a file \
         python-PID.jsonl for each Python process\n  path: {}",
        path.display()
    )]
    NoFiles { path: PathBuf },
    #[error("{source}\n  file: {}", path.display())]
    Io { path: PathBuf, source: io::Error },
}

/// The steps of one Python process.
#[derive(Debug, Clone, PartialEq)]
pub struct ProcessSteps {
    pub file: PathBuf,
    pub host: Option<String>,
    pub pid: Option<u64>,
    /// One for each thing that counted as a step, in the order they came up.
    pub series: Vec<TimeSeries>,
    pub notes: Vec<Note>,
}

/// Times of one kind of step.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TimeSeries {
    /// What counted as a step, where that was said.
    pub key: Option<StepKey>,
    /// Steps that no profiler disturbed.
    pub times: Series,
    /// Steps during which a profiler started, ran, stopped or wrote: left out of `times`.
    pub profiled: u64,
    /// Examples in a step.
    pub examples: Option<u64>,
    /// Unix time at which the first step began and the last one ended.
    pub began_ns: Option<i64>,
    pub ended_ns: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepKey {
    pub kind: String,
    pub name: String,
}

/// The steps of every Python process of a run folder; processes without any are left out.
pub fn step_times(folder: &Path) -> Result<Vec<ProcessSteps>, StepTimesError> {
    let files = python_files(folder)?;
    if files.is_empty() {
        return Err(StepTimesError::NoFiles { path: folder.to_owned() });
    }
    let processes: Vec<ProcessSteps> =
        files.into_iter().map(read_python).collect::<Result<_, _>>()?;
    Ok(processes.into_iter().filter(|it| !it.series.is_empty()).collect())
}

/// The run folders a path stands for: itself, or those directly below it, by name.
pub fn run_folders(path: &Path) -> Result<Vec<PathBuf>, StepTimesError> {
    if !python_files(path)?.is_empty() {
        return Ok(vec![path.to_owned()]);
    }
    let entries = path.read_dir().map_err(|source| io_error(path, source))?;
    let mut folders: Vec<PathBuf> = entries
        .filter_map(|it| Some(it.ok()?.path()))
        .filter(|it| it.is_dir() && python_files(it).is_ok_and(|files| !files.is_empty()))
        .collect();
    folders.sort();
    match folders.is_empty() {
        true => Err(StepTimesError::NoFiles { path: path.to_owned() }),
        false => Ok(folders),
    }
}

fn io_error(path: &Path, source: io::Error) -> StepTimesError {
    StepTimesError::Io { path: path.to_owned(), source }
}

fn python_files(folder: &Path) -> Result<Vec<PathBuf>, StepTimesError> {
    if !folder.is_dir() {
        return Err(StepTimesError::Missing { path: folder.to_owned() });
    }
    runlog::logs(folder).map_err(|source| io_error(folder, source))
}

fn read_python(path: PathBuf) -> Result<ProcessSteps, StepTimesError> {
    let mut reader = Reader::default();
    runlog::each_line(&path, |line| reader.line(line)).map_err(|source| io_error(&path, source))?;
    Ok(reader.finish(path))
}

#[derive(Debug, Default)]
struct Reader {
    host: Option<String>,
    pid: Option<u64>,
    series: Vec<TimeSeries>,
    /// The series that steps belong to now.
    current: usize,
    /// Time and number of the last step record of that series.
    last: Option<(i64, i64)>,
    spans: Vec<Span>,
    windows: Vec<Window>,
    notes: Vec<Note>,
}

/// Some steps between two records.
#[derive(Debug)]
struct Span {
    series: usize,
    start_ns: i64,
    end_ns: i64,
    mean_ps: i64,
    steps: u32,
}

/// From the start of a profiler until its profile is written.
#[derive(Debug)]
struct Window {
    start_ns: i64,
    /// Unknown where the process ended before.
    end_ns: Option<i64>,
}

impl Reader {
    fn line(&mut self, line: &Line) {
        // They have no times of steps.
        let is_skipped = line.is_whole && Record::is_of_stacks(&line.bytes);
        if is_skipped || line.bytes.trim_ascii().is_empty() {
            return;
        }
        match Record::parse(&line.bytes) {
            Some(record) => self.record(record),
            None => {
                let kind = if line.is_whole { NoteKind::Malformed } else { NoteKind::Truncated };
                self.note(kind, || {
                    let shown = &line.bytes[..line.bytes.len().min(80)];
                    // A terminal must not obey what a broken file says.
                    let tame = |it: char| if it.is_control() { '\u{FFFD}' } else { it };
                    String::from_utf8_lossy(shown).chars().map(tame).collect()
                });
            }
        }
    }

    fn record(&mut self, record: Record) {
        match record {
            Record::Header(it) => {
                self.host = it.host.or(self.host.take());
                self.pid = it.pid.and_then(|it| u64::try_from(it).ok()).or(self.pid);
            }
            Record::Step { unix_ns, count } => self.step(unix_ns, count),
            Record::StepKey(it) => self.begin(Some(StepKey { kind: it.kind, name: it.name })),
            Record::Examples(n) => {
                let series = self.current();
                // The last batch of an epoch is often smaller; the largest is the usual one.
                series.examples = series.examples.max(u64::try_from(n).ok());
            }
            Record::Said(it) => self.said(it.unix_ns, &it.what),
            _ => (),
        }
    }

    fn step(&mut self, time_ns: i64, n: i64) {
        self.current();
        let Some((last_ns, last_n)) = self.last.replace((time_ns, n)) else { return };
        let span = || {
            let dur_ns = time_ns.checked_sub(last_ns).filter(|it| *it > 0)?;
            let steps = u32::try_from(n.checked_sub(last_n)?).ok().filter(|it| *it > 0)?;
            let mean_ps = i128::from(dur_ns) * 1000 / i128::from(steps);
            let mean_ps = i64::try_from(mean_ps).ok()?;
            let series = self.current;
            Some(Span { series, start_ns: last_ns, end_ns: time_ns, mean_ps, steps })
        };
        match span() {
            Some(span) => self.spans.push(span),
            None => self.note(NoteKind::BadTimestamp, || {
                format!("step {n} at {time_ns} ns comes after step {last_n} at {last_ns} ns")
            }),
        }
    }

    fn said(&mut self, time_ns: i64, what: &str) {
        match what {
            "window-start" => self.windows.push(Window { start_ns: time_ns, end_ns: None }),
            "window-end" | "saved" | "failed" => {
                if let Some(window) = self.windows.last_mut() {
                    window.end_ns = window.end_ns.max(Some(time_ns));
                }
            }
            _ => (),
        }
    }

    /// The series that steps belong to now; before anything was said, one without a key.
    fn current(&mut self) -> &mut TimeSeries {
        if self.series.is_empty() {
            self.begin(None);
        }
        &mut self.series[self.current]
    }

    fn begin(&mut self, key: Option<StepKey>) {
        self.last = None;
        self.current = match self.series.iter().position(|it| it.key == key) {
            Some(at) => at,
            None => {
                self.series.push(TimeSeries { key, ..TimeSeries::default() });
                self.series.len() - 1
            }
        };
    }

    fn note(&mut self, kind: NoteKind, first: impl FnOnce() -> String) {
        match self.notes.iter_mut().find(|it| it.kind == kind) {
            Some(note) => note.count += 1,
            None => self.notes.push(Note { kind, count: 1, first: first() }),
        }
    }

    fn finish(mut self, file: PathBuf) -> ProcessSteps {
        for series in 0..self.series.len() {
            let (ours, others) = self.spans.into_iter().partition(|it| it.series == series);
            self.spans = others;
            self.spans.extend(rounds(ours, |it| is_disturbed(&self.windows, it)));
        }
        for span in &self.spans {
            let series = &mut self.series[span.series];
            series.began_ns = series.began_ns.or(Some(span.start_ns));
            series.ended_ns = Some(span.end_ns);
            match is_disturbed(&self.windows, span) {
                true => series.profiled += u64::from(span.steps),
                false => series.times.push(span.mean_ps, span.steps),
            }
        }
        self.series.retain(|it| it.began_ns.is_some());
        let Reader { host, pid, series, notes, .. } = self;
        ProcessSteps { file, host, pid, series, notes }
    }
}

/// Whether a profiler was started, on or saved meanwhile.
fn is_disturbed(windows: &[Window], span: &Span) -> bool {
    let touches = |it: &Window| {
        span.end_ns >= it.start_ns && it.end_ns.is_none_or(|end| span.start_ns <= end)
    };
    windows.iter().any(touches)
}

/// Steps that hand their work over return at once, until somebody waits for all of it: what they
/// take is known over whole rounds only, from the end of one wait to the end of the next.
///
/// ```text
/// calls  ||||||| | | | | |--- wait ---||||||| | | | | |--- wait ---|||
///                          round      ^            round           ^
/// ```
fn rounds(spans: Vec<Span>, is_disturbed: impl Fn(&Span) -> bool) -> Vec<Span> {
    let n_steps: f64 = spans.iter().map(|it| f64::from(it.steps)).sum();
    let time_of = |it: &Span| it.mean_ps as f64 * f64::from(it.steps);
    let mean = spans.iter().map(time_of).sum::<f64>() / n_steps;
    let at_once = |it: &&Span| (it.mean_ps as f64) < mean / AT_ONCE;
    let n_at_once: f64 = spans.iter().filter(at_once).map(|it| f64::from(it.steps)).sum();
    let is_long = |it: &&Span| it.steps == 1 && it.mean_ps as f64 > mean * WAITS;
    let waited: f64 = spans.iter().filter(is_long).map(time_of).sum();
    // As much as the work of those that did not wait for theirs cannot come by chance.
    let hand_over = n_at_once >= n_steps * 0.05 && waited >= n_at_once * mean / 2.0;
    if !hand_over || spans.iter().filter(is_long).count() < 3 {
        return spans;
    }
    // A profiler that is started or saved holds up calls, not the work.
    let waits = |it: &Span| is_long(&it) && !is_disturbed(it);
    let mut whole = Vec::new();
    let mut round: Option<(Span, i128)> = None;
    // What lies before the first wait holds the start of the program.
    for span in spans.into_iter().skip_while(|it| !waits(it)).skip(1) {
        let ends = waits(&span);
        let ps = i128::from(span.mean_ps) * i128::from(span.steps);
        let (sum, total) = match round.take() {
            None => (span, ps),
            Some((sum, total)) => {
                let steps = sum.steps.saturating_add(span.steps);
                (Span { end_ns: span.end_ns, steps, ..sum }, total + ps)
            }
        };
        match ends {
            true => {
                let mean_ps = i64::try_from(total / i128::from(sum.steps)).unwrap_or(i64::MAX);
                whole.push(Span { mean_ps, ..sum });
            }
            false => round = Some((sum, total)),
        }
    }
    whole
}

/// What takes less than this part of a mean step was only handed over.
const AT_ONCE: f64 = 10.0;
/// What takes as many mean steps waits for the work of several.
const WAITS: f64 = 4.0;

#[cfg(test)]
mod tests {
    use runlog::Line;

    use super::{ProcessSteps, Reader, StepTimesError, TimeSeries, run_folders, step_times};

    const HEADER: &str = r#"{"strobe": "python", "version": 1, "host": "box", "pid": 12}"#;

    /// Reads lines; the last one is whole only where it ends with a newline.
    fn read(text: &str) -> ProcessSteps {
        let mut reader = Reader::default();
        for line in text.split_inclusive('\n') {
            let is_whole = line.ends_with('\n');
            reader.line(&Line { bytes: line.trim_end().as_bytes().to_vec(), is_whole });
        }
        reader.finish("python-12.jsonl".into())
    }

    fn only(process: &ProcessSteps) -> &TimeSeries {
        assert_eq!(process.series.len(), 1, "{process:?}");
        &process.series[0]
    }

    #[test]
    fn times_lie_between_records() {
        let found = read(&format!(
            "{HEADER}\n[\"step\", 1000, 1]\n[\"sample\", 1200, 12, 0]\n[\"step\", 1500, 2]\n\
             [\"examples\", 64]\n[\"examples\", 10]\n[\"step\", 2500, 3]\n"
        ));
        assert_eq!((found.host.as_deref(), found.pid), (Some("box"), Some(12)));
        let series = only(&found);
        assert_eq!(series.times.ps(), [500_000, 1_000_000]);
        assert_eq!((series.examples, series.key.as_ref()), (Some(64), None));
        assert_eq!((series.began_ns, series.ended_ns), (Some(1000), Some(2500)));
        assert!(found.notes.is_empty(), "{:?}", found.notes);
    }

    #[test]
    fn thinned_records_are_means_over_several_steps() {
        let found = read("[\"step\", 0, 5]\n[\"step\", 10, 6]\n[\"step\", 100, 9]\n");
        assert_eq!(only(&found).times.ps(), [10_000, 30_000]);
        assert_eq!(only(&found).times.steps(), [1, 3]);
        assert_eq!(only(&found).times.n_averaged(), 3);
    }

    #[test]
    fn another_key_is_another_series() {
        let found = read(
            "[\"step\", 0, 1]\n[\"step\", 10, 2]\n[\"step-key\", 15, \"keras\", \"fit\"]\n\
             [\"step\", 20, 1]\n[\"step\", 50, 2]\n[\"step-key\", 60, \"keras\", \"predict\"]\n\
             [\"step\", 70, 1]\n[\"step\", 71, 2]\n[\"step-key\", 80, \"keras\", \"fit\"]\n\
             [\"step\", 90, 3]\n[\"step\", 130, 4]\n",
        );
        let names = found.series.iter().map(|it| it.key.as_ref().map(|it| it.name.as_str()));
        assert_eq!(names.collect::<Vec<_>>(), [None, Some("fit"), Some("predict")]);
        assert_eq!(found.series[0].times.ps(), [10_000]);
        // No step reaches over a change of the key.
        assert_eq!(found.series[1].times.ps(), [30_000, 40_000]);
        assert_eq!(found.series[2].times.ps(), [1_000]);
    }

    #[test]
    fn steps_that_a_profiler_disturbed_are_set_apart() {
        let mut text = String::new();
        for step in 0..10 {
            text += &format!("[\"step\", {}, {step}]\n", step * 100);
            match step {
                2 => text += "[\"said\", 250, \"window-start\", \"steady\"]\n",
                4 => text += "[\"said\", 450, \"window-end\", \"\"]\n",
                5 => text += "[\"said\", 560, \"saved\", \"\"]\n",
                _ => (),
            }
        }
        let found = read(&text);
        // Those from 200 to 600, the start and the end of the window in them.
        assert_eq!((only(&found).profiled, only(&found).times.len()), (4, 5));
        let killed = read(&text.replace("window-end", "x").replace("saved", "x"));
        assert_eq!((only(&killed).profiled, only(&killed).times.len()), (7, 2));
    }

    #[test]
    fn steps_that_hand_their_work_over_are_known_by_rounds() {
        // 30 at once, 20 as the work lets them, a wait for the 30: 10 µs of work a step.
        let times = |n: i64| {
            let (mut text, mut at) = ("[\"step\", 0, 0]\n".to_owned(), 0);
            for step in 1..=n {
                at += match step % 51 {
                    1..=30 => 10,
                    31..=50 => 10_000,
                    _ => 309_700,
                };
                text += &format!("[\"step\", {at}, {step}]\n");
            }
            text
        };
        let found = read(&times(51 * 6 + 20));
        let times_found = &only(&found).times;
        assert_eq!(times_found.steps(), [51; 5]);
        assert_eq!(times_found.ps(), [10_000_000; 5]);
        // One wait in a run that is otherwise even is a slow step.
        let mut even = String::new();
        for step in 0..100 {
            even += &format!(
                "[\"step\", {}, {step}]\n",
                step * 1000 + if step > 50 { 50_000 } else { 0 }
            );
        }
        assert_eq!(only(&read(&even)).times.len(), 99);
    }

    #[test]
    fn damage_is_counted_and_the_rest_is_read() {
        let found =
            read("[\"step\", 0, 1]\nnonsense\n7\n[\"step\"]\n[\"step\", 10, 2]\n[\"step\", 2");
        assert_eq!(only(&found).times.ps(), [10_000]);
        let notes: Vec<_> = found.notes.iter().map(|it| (it.kind.name(), it.count)).collect();
        assert_eq!(notes, [("malformed", 3), ("truncated", 1)]);
        // A whole record without its newline counts.
        assert_eq!(only(&read("[\"step\", 0, 1]\n[\"step\", 5, 2]")).times.len(), 1);
        let cut = read("[\"step\", 0, 1]\n[\"step\", 5, 2]\n[\"sample\", 17");
        assert_eq!(cut.notes[0].kind.name(), "truncated");
    }

    #[test]
    fn hostile_times_are_counted_not_believed() {
        let bad = |first: &str, second: &str| {
            let found = read(&format!("[\"step\", {first}]\n[\"step\", {second}]\n"));
            assert!(found.series.is_empty(), "{first}, {second}: {found:?}");
            assert_eq!(found.notes.len(), 1, "{first}, {second}");
        };
        bad("100, 1", "50, 2");
        bad("100, 1", "100, 2");
        bad("100, 5", "200, 4");
        bad("100, 5", "200, 5");
        bad("-9223372036854775808, 1", "9223372036854775807, 2");
        bad("0, 1", "9223372036854775807, 2");
        bad("0, 0", "9, 18446744073709551615");
        bad("0, 1", "1e30, 2");
        bad("0, 1", "99999999999999999999999, 2");
        bad("0, 1", "10, -2");
        // Before 1970 is a strange clock, but the difference holds.
        assert_eq!(only(&read("[\"step\", -20, 1]\n[\"step\", -10, 2]\n")).times.len(), 1);
    }

    #[test]
    fn folders_are_runs_or_hold_runs() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path();
        assert!(matches!(step_times(&path.join("no")), Err(StepTimesError::Missing { .. })));
        assert!(matches!(run_folders(path), Err(StepTimesError::NoFiles { .. })));
        for run in ["b", "a"] {
            std::fs::create_dir(path.join(run)).unwrap();
            let text = format!("{HEADER}\n[\"step\", 0, 1]\n[\"step\", 5, 2]\n");
            std::fs::write(path.join(run).join("python-12.jsonl"), text).unwrap();
        }
        std::fs::create_dir(path.join("empty")).unwrap();
        assert_eq!(run_folders(path).unwrap(), [path.join("a"), path.join("b")]);
        assert_eq!(run_folders(&path.join("a")).unwrap(), [path.join("a")]);
        // A process that took no steps, as a worker that loads data, is left out.
        std::fs::write(path.join("a/python-13.jsonl"), HEADER).unwrap();
        assert_eq!(step_times(&path.join("a")).unwrap().len(), 1);
    }

    #[test]
    fn a_line_without_end_does_not_fill_the_memory() {
        let folder = tempfile::tempdir().unwrap();
        let mut text = vec![b'['; 3 << 20];
        text.extend(b"\n[\"step\", 0, 1]\n[\"step\", 5, 2]\n");
        std::fs::write(folder.path().join("python-1.jsonl"), text).unwrap();
        let found = step_times(folder.path()).unwrap();
        assert_eq!(only(&found[0]).times.len(), 1);
        assert_eq!((found[0].notes[0].kind.name(), found[0].notes[0].count), ("malformed", 1));
    }
}
