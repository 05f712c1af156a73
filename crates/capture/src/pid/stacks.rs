//! Writes stacks so that what they have in common is written once: functions, and places in a
//! tree of calls.

use std::collections::{HashMap, HashSet};
use std::io::{self, Write};

use serde_json::{Value, json};

use super::source::Sources;
use super::{Frame, Thread};

#[derive(Debug, Default)]
pub struct Stacks {
    /// File → function → its number.
    frames: HashMap<String, HashMap<String, usize>>,
    first_lines: HashMap<String, HashMap<String, i32>>,
    /// Caller, frame, line → its number.
    nodes: HashMap<(Option<usize>, usize, i32), usize>,
    /// Frame and line of what was noted of the source.
    noted: HashSet<(usize, i32)>,
    sources: Sources,
    n_frames: usize,
    /// Written so far.
    pub bytes: u64,
}

impl Stacks {
    pub fn new(sources: Sources) -> Stacks {
        Stacks { sources, ..Stacks::default() }
    }

    /// Whether a function was never seen before.
    pub fn is_news(&self, frames: &[Frame]) -> bool {
        frames.iter().any(|it| self.frame(it).is_none())
    }

    fn frame(&self, frame: &Frame) -> Option<usize> {
        self.frames.get(&frame.file)?.get(&frame.function).copied()
    }

    /// Takes the first lines of functions from a second look at the same stacks, as far from the
    /// outermost call as they are still the same.
    pub fn learn_first_lines(&mut self, threads: &[Thread], again: &[Thread]) {
        for (thread, again) in threads.iter().zip(again).filter(|(a, b)| a.id == b.id) {
            for (frame, again) in thread.frames.iter().rev().zip(again.frames.iter().rev()) {
                if (&frame.file, &frame.function) != (&again.file, &again.function) {
                    break;
                }
                if let (None, Some(line)) = (self.frame(frame), known(again.line)) {
                    let of_file = self.first_lines.entry(frame.file.clone()).or_default();
                    of_file.entry(frame.function.clone()).or_insert(line);
                }
            }
        }
    }

    pub fn write(
        &mut self,
        time_ns: u64,
        threads: &[Thread],
        to: &mut dyn Write,
    ) -> io::Result<()> {
        for thread in threads {
            let mut node = None;
            for frame in thread.frames.iter().rev() {
                let id = match self.frame(frame) {
                    Some(id) => id,
                    None => self.new_frame(frame, to)?,
                };
                let key = (node, id, frame.line);
                node = Some(match self.nodes.get(&key) {
                    Some(node) => *node,
                    None => {
                        self.note_source(id, frame, to)?;
                        self.new_node(key, to)?
                    }
                });
            }
            // A thread without Python frames is in nobody's code that could be named.
            let Some(node) = node else { continue };
            self.record(&json!(["sample", time_ns, thread.id, node]), to)?;
        }
        Ok(())
    }

    fn new_frame(&mut self, frame: &Frame, to: &mut dyn Write) -> io::Result<usize> {
        let id = self.n_frames;
        self.n_frames += 1;
        let Frame { file, function, .. } = frame;
        let first_line = self.first_lines.get(file).and_then(|it| it.get(function)).copied();
        self.frames.entry(file.clone()).or_default().insert(function.clone(), id);
        self.record(&json!(["frame", id, file, function, first_line]), to)?;
        Ok(id)
    }

    fn new_node(
        &mut self,
        key: (Option<usize>, usize, i32),
        to: &mut dyn Write,
    ) -> io::Result<usize> {
        let id = self.nodes.len();
        let (caller, frame, line) = key;
        self.nodes.insert(key, id);
        self.record(&json!(["node", id, caller, frame, known(line)]), to)?;
        Ok(id)
    }

    /// Each line once, before the first place that names it.
    fn note_source(&mut self, id: usize, frame: &Frame, to: &mut dyn Write) -> io::Result<()> {
        if frame.line <= 0 || !self.noted.insert((id, frame.line)) {
            return Ok(());
        }
        match self.sources.line(&frame.file, frame.line) {
            Some(text) => self.record(&json!(["source", id, frame.line, text]), to),
            None => Ok(()),
        }
    }

    fn record(&mut self, record: &Value, to: &mut dyn Write) -> io::Result<()> {
        let line = format!("{record}\n");
        self.bytes += line.len() as u64;
        to.write_all(line.as_bytes())
    }
}

/// `py-spy` says 0 where it could not make out the line.
fn known(line: i32) -> Option<i32> {
    (line > 0).then_some(line)
}

#[cfg(test)]
mod tests {
    use super::Stacks;
    use crate::pid::{Frame, Thread};

    /// Innermost first: `train.py:step:14`.
    fn thread(id: u64, stack: &[&str]) -> Thread {
        let frame = |text: &&str| {
            let mut parts = text.split(':');
            let mut part = || parts.next().unwrap().to_owned();
            Frame { file: part(), function: part(), line: part().parse().unwrap() }
        };
        Thread { id, is_main: id == 7, frames: stack.iter().map(frame).collect() }
    }

    fn written(stacks: &mut Stacks, time: u64, threads: &[Thread]) -> Vec<String> {
        let mut out = Vec::new();
        stacks.write(time, threads, &mut out).unwrap();
        String::from_utf8(out).unwrap().lines().map(str::to_owned).collect()
    }

    #[test]
    fn what_is_common_is_written_once() {
        let mut stacks = Stacks::default();
        let first = [thread(7, &["a.py:load:14", "a.py:main:3"])];
        let expected = [
            r#"["frame",0,"a.py","main",null]"#,
            r#"["node",0,null,0,3]"#,
            r#"["frame",1,"a.py","load",null]"#,
            r#"["node",1,0,1,14]"#,
            r#"["sample",100,7,1]"#,
        ];
        assert_eq!(written(&mut stacks, 100, &first), expected);
        assert_eq!(written(&mut stacks, 110, &first), [r#"["sample",110,7,1]"#]);
        let later = [thread(7, &["a.py:load:0", "a.py:main:3"]), thread(8, &[])];
        let expected = [r#"["node",2,0,1,null]"#, r#"["sample",120,7,2]"#];
        assert_eq!(written(&mut stacks, 120, &later), expected);
    }

    #[test]
    fn first_lines_are_taken_where_the_second_look_agrees() {
        let mut stacks = Stacks::default();
        let seen = [thread(7, &["a.py:gone:30", "a.py:load:14", "a.py:main:3"])];
        let again = [thread(7, &["a.py:other:40", "a.py:load:12", "a.py:main:1"])];
        assert!(stacks.is_news(&seen[0].frames));
        stacks.learn_first_lines(&seen, &again);
        let lines = written(&mut stacks, 1, &seen);
        assert!(!stacks.is_news(&seen[0].frames));
        assert_eq!(lines[0], r#"["frame",0,"a.py","main",1]"#);
        assert_eq!(lines[2], r#"["frame",1,"a.py","load",12]"#);
        assert_eq!(lines[4], r#"["frame",2,"a.py","gone",null]"#);
    }
}
