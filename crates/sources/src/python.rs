//! Reads what a Python process said about itself: `python-PID.jsonl` of a run folder.
//!
//! | theirs                       | ours                                    |
//! |------------------------------|-----------------------------------------|
//! | `frame`, `node`, `sample`    | [`Stacks`] of the process               |
//! | `source`                     | lines of code that these stacks pass    |
//! | `step`, `step-key`           | its [`StepCount`]s                      |
//! | `said` `window-start`, …     | its [`Window`]s, the program's own too  |
//! | `examples`                   | examples in a step, the last one said   |
//! | `framework`                  | its name                                |
//! | `site`                       | [`Site`]s of its code                   |
//!
//! Not read: what else was said, which is for people and stands in the manifest too.

use hashbrown::HashMap;
use runlog::Record;
use trace::{
    Frame, NoteKind, Place, Process, Site, SourceLine, StackSample, Stacks, StepCount,
    TraceBuilder, Window,
};

use crate::{Change, Claim, Input, Listed, Pieces, Source, SourceError};

#[derive(Debug)]
pub struct Python;

/// How such a file begins, without spaces.
const MAGIC: &[u8] = b"{\"strobe\":\"python\"";

impl Source for Python {
    fn name(&self) -> &'static str {
        "python"
    }

    fn claim(&self, file: Listed<'_>) -> Claim {
        let is_ours = ["python-", "stacks-"].iter().any(|it| file.name.starts_with(it));
        match file.in_capture && is_ours && file.name.ends_with(".jsonl") {
            true => Claim::Beside,
            false => Claim::No,
        }
    }

    fn sniff(&self, head: &[u8]) -> bool {
        let plain = head.iter().filter(|it| !it.is_ascii_whitespace());
        plain.take(MAGIC.len()).eq(MAGIC)
    }

    fn read(&self, input: &Input<'_>, out: &mut TraceBuilder) -> Result<(), SourceError> {
        let pieces = Pieces::new(&*input.bytes);
        let mut reader = Reader::default();
        pieces.each_line(runlog::LONGEST_LINE, |line| {
            if line.bytes.is_empty() {
                return;
            }
            let record = Record::parse(&line.bytes);
            if record.and_then(|it| reader.record(it, line.nth == 0, out)).is_none() {
                // A process that was killed leaves a line without an end.
                let kind = if line.is_whole { NoteKind::Malformed } else { NoteKind::Truncated };
                let path = input.path.display();
                out.note(kind, || format!("line {} of {path}", line.nth + 1));
            }
        });
        pieces.note(input.path.display(), Change::Grown, out);
        if out.has_clock() {
            for (site, unix_ns) in reader.process.sites.iter_mut().zip(&reader.site_times) {
                site.time = unix_ns.and_then(|it| out.time_at(it));
            }
        }
        reader.process.stacks.samples.sort_unstable();
        reader.process.steps.sort_by_key(|it| (it.time, it.count));
        out.process(reader.process);
        Ok(())
    }
}

#[derive(Default)]
struct Reader {
    process: Process,
    /// Their numbers of frames and places, which a damaged file may miss some of.
    frames: HashMap<i64, u32>,
    places: HashMap<i64, u32>,
    sites: HashMap<i64, u32>,
    /// When they were reached. That is long before the first step, which sets the zero.
    site_times: Vec<Option<i64>>,
    anew: bool,
}

impl Reader {
    /// `None`: what it names is not there, or it is where it cannot be.
    fn record(&mut self, record: Record, is_first: bool, out: &mut TraceBuilder) -> Option<()> {
        let process = &mut self.process;
        let stacks: &mut Stacks = &mut process.stacks;
        match record {
            Record::Header(header) if is_first => {
                process.pid = header.pid?;
                process.driving_thread = header.thread;
            }
            Record::Header(_) => return None,
            _ if is_first => return None,
            Record::Frame { id, file, function, first_line } => {
                let frame = Frame {
                    file: out.text(&file),
                    function: out.text(&function),
                    first_line: first_line.unwrap_or(UNKNOWN_LINE),
                };
                self.frames.insert(id, stacks.frames.len() as u32);
                stacks.frames.push(frame);
            }
            Record::Node { id, parent, frame, line } => {
                // Only what was said before: so that no place is its own ancestor.
                let parent = match parent {
                    None => None,
                    Some(parent) => Some(*self.places.get(&parent)?),
                };
                let frame = *self.frames.get(&frame)?;
                self.places.insert(id, stacks.places.len() as u32);
                stacks.places.push(Place { parent, frame, line: line.unwrap_or(UNKNOWN_LINE) });
            }
            Record::Source { frame, line, text } => {
                let frame = *self.frames.get(&frame)? as usize;
                let file = stacks.frames.get(frame)?.file;
                stacks.sources.push(SourceLine { file, line, text: out.text(&text) });
            }
            Record::Sample { unix_ns, thread, node } => {
                let place = *self.places.get(&node)?;
                stacks.samples.push(StackSample { time: out.time_at(unix_ns)?, thread, place });
            }
            Record::Step { unix_ns, count } => {
                let anew = std::mem::take(&mut self.anew);
                process.steps.push(StepCount { time: out.time_at(unix_ns)?, count, anew });
            }
            Record::StepKey(key) => {
                self.anew = true;
                process.driving_thread = key.thread.or(process.driving_thread);
                process.step_name = Some(key.name);
            }
            Record::Examples(n) => process.examples = Some(n),
            Record::Said(said) => {
                let open = process.windows.last_mut().filter(|it| it.until.is_none());
                let at = |out: &mut TraceBuilder| out.time_at(said.unix_ns);
                let is_own = said.text.contains(" into ");
                match (said.what.as_str(), open) {
                    // The program's own profiler, where it says what it profiles.
                    ("own-profiler", _) if is_own => {
                        let window = Window { start: at(out)?, end: None, until: None };
                        process.windows.push(window);
                    }
                    ("own-profiler-end", Some(it)) => {
                        it.end = Some(at(out)?);
                        it.until = it.end;
                    }
                    ("window-start", _) => {
                        let window = Window { start: at(out)?, end: None, until: None };
                        process.windows.push(window);
                    }
                    ("window-end", Some(it)) => it.end = Some(at(out)?),
                    ("saved" | "failed", Some(it)) => it.until = Some(at(out)?),
                    _ => (),
                }
            }
            Record::Framework { name, .. } => process.frameworks.push(name),
            Record::Site(site) => {
                // Only what was said before: so that no site is made of itself.
                let known = |it: &i64| self.sites.get(it).copied();
                let inputs = site.inputs.iter().map(known).collect::<Option<Vec<u32>>>()?;
                let inside = match &site.inside {
                    None => None,
                    Some(inside) => Some(known(inside)?),
                };
                self.sites.insert(site.id, process.sites.len() as u32);
                self.site_times.push(site.unix_ns);
                process.sites.push(Site {
                    time: None,
                    kind: site.kind,
                    name: site.name,
                    file: site.file,
                    line: site.line,
                    end_line: site.end_line,
                    end_col: site.end_col,
                    text: site.text,
                    text_line: site.text_line,
                    call: site.call,
                    args: site.args,
                    inputs,
                    inside,
                    defined: site.defined.map(|it| (it.file, it.line)),
                });
            }
            Record::Other => (),
        }
        Some(())
    }
}

/// Lines count from 1.
const UNKNOWN_LINE: u32 = 0;

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::Arc;

    use trace::{Trace, TraceBuilder};

    use super::Python;
    use crate::{Input, Source};

    const LOG: &str = r#"{"strobe": "python", "version": 1, "host": "box", "pid": 7, "thread": 7}
["frame", 0, "/home/me/train.py", "main", 3]
["frame", 1, "/home/me/train.py", "load", 12]
["node", 0, null, 0, 5]
["node", 1, 0, 1, 14]
["step-key", 1000, "function", "train_step", 9]
["step", 1000, 1]
["step", 3000, 2]
["said", 3500, "window-start", "steady"]
["sample", 4000, 9, 1]
["said", 5000, "window-end", "10 steps"]
["said", 6000, "saved", "0.1 s"]
["examples", 64]
["site", 4, "dataset.range", null, "/home/me/train.py", 8, 8, "ds = range(3)"]
["site", 6, "dataset.map", "load", "/home/me/train.py", 9, 9, "ds = ds.map(load)", {"inputs": [4], "time": 4000}]
"#;

    fn read(text: &[u8]) -> Trace {
        let mut out = TraceBuilder::new();
        let input = Input { bytes: Arc::new(text.to_vec()), path: Path::new("python-7.jsonl") };
        assert!(Python.sniff(text), "its own file");
        Python.read(&input, &mut out).unwrap();
        out.finish()
    }

    #[test]
    fn stacks_steps_and_windows() {
        let trace = read(LOG.as_bytes());
        let process = &trace.processes[0];
        assert_eq!((process.pid, process.driving_thread, process.examples), (7, Some(9), Some(64)));
        let starts: Vec<(i64, i64, bool)> =
            process.steps.iter().map(|it| (it.time.0, it.count, it.anew)).collect();
        assert_eq!(starts, [(0, 1, true), (2_000_000, 2, false)]);
        let window = process.windows[0];
        assert_eq!((window.start.0, window.end.unwrap().0), (2_500_000, 4_000_000));
        let stacks = &process.stacks;
        let stack: Vec<(&str, u32)> = stacks
            .stack(stacks.samples[0].place)
            .map(|(frame, line)| (trace.text(frame.function), line))
            .collect();
        assert_eq!(stack, [("load", 14), ("main", 5)]);
        assert_eq!(trace.notes, []);
    }

    #[test]
    fn sites_know_what_they_are_made_of() {
        let trace = read(LOG.as_bytes());
        let sites = &trace.processes[0].sites;
        assert_eq!((sites.len(), sites[0].inputs.len()), (2, 0));
        assert_eq!(
            (sites[1].inputs.as_slice(), sites[1].name.as_deref()),
            (&[0][..], Some("load"))
        );
        assert_eq!(sites[1].time.unwrap().0, 3_000_000);
        // One that is made of a later one, or of itself, is damage.
        for wrong in ["[6]", "[7]"] {
            let text = LOG.replace("\"inputs\": [4]", &format!("\"inputs\": {wrong}"));
            let trace = read(text.as_bytes());
            assert_eq!((trace.processes[0].sites.len(), trace.notes.len()), (1, 1));
        }
    }

    #[test]
    fn every_prefix_is_read_and_what_is_cut_off_is_counted() {
        for n in super::MAGIC.len() + 1..LOG.len() {
            let trace = read(&LOG.as_bytes()[..n]);
            let whole = LOG.as_bytes()[n - 1] == b'\n' || LOG.as_bytes()[n] == b'\n';
            assert_eq!(trace.notes.is_empty(), whole, "{:?}", &LOG[..n]);
        }
    }

    #[test]
    fn a_place_that_names_a_later_one_is_damage() {
        let text = LOG.replace("[\"node\", 0, null, 0, 5]", "[\"node\", 0, 1, 0, 5]");
        let trace = read(text.as_bytes());
        assert_eq!(trace.processes[0].stacks.places, []);
        assert_eq!(trace.notes[0].kind.name(), "malformed");
        // The place, the one below it, and the sample.
        assert_eq!(trace.notes[0].count, 3);
    }
}
