//! Writes stacks so that what they have in common is written once: functions, and places in a
//! tree of calls.

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};

use serde_json::{Value, json};

use super::{Frame, Place, Thread};

#[derive(Debug, Default)]
pub struct Stacks {
    /// File → function → its number.
    frames: HashMap<String, HashMap<String, usize>>,
    first_lines: HashMap<String, HashMap<String, i32>>,
    /// Caller, frame, line → its number.
    nodes: HashMap<(Option<usize>, usize, i32), usize>,
    /// For each frame its file and function.
    names: Vec<(String, String)>,
    places: Vec<Node>,
    /// Written so far.
    pub bytes: u64,
}

#[derive(Debug)]
struct Node {
    caller: Option<usize>,
    frame: usize,
    line: i32,
    /// Samples of the main thread that were in it, and in nothing that it called.
    samples: u64,
}

impl Stacks {
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
                    None => self.new_node(key, to)?,
                });
            }
            // A thread without Python frames is in nobody's code that could be named.
            let Some(node) = node else { continue };
            if thread.is_main {
                self.places[node].samples += 1;
            }
            self.record(&json!(["sample", time_ns, thread.id, node]), to)?;
        }
        Ok(())
    }

    fn new_frame(&mut self, frame: &Frame, to: &mut dyn Write) -> io::Result<usize> {
        let id = self.names.len();
        let Frame { file, function, .. } = frame;
        let first_line = self.first_lines.get(file).and_then(|it| it.get(function)).copied();
        self.names.push((file.clone(), function.clone()));
        self.frames.entry(file.clone()).or_default().insert(function.clone(), id);
        self.record(&json!(["frame", id, file, function, first_line]), to)?;
        Ok(id)
    }

    fn new_node(
        &mut self,
        key: (Option<usize>, usize, i32),
        to: &mut dyn Write,
    ) -> io::Result<usize> {
        let id = self.places.len();
        let (caller, frame, line) = key;
        self.places.push(Node { caller, frame, line, samples: 0 });
        self.nodes.insert(key, id);
        self.record(&json!(["node", id, caller, frame, known(line)]), to)?;
        Ok(id)
    }

    fn record(&mut self, record: &Value, to: &mut dyn Write) -> io::Result<()> {
        let line = format!("{record}\n");
        self.bytes += line.len() as u64;
        to.write_all(line.as_bytes())
    }

    /// Where the main thread was, most often first.
    pub fn places(&self) -> Vec<Place> {
        let mut samples: BTreeMap<(usize, i32, Option<usize>), u64> = BTreeMap::new();
        for leaf in self.places.iter().filter(|it| it.samples > 0) {
            let own = self.outwards(leaf).find(|it| is_own(&self.names[it.frame].0));
            let key = match own {
                Some(own) => {
                    let inside = (!std::ptr::eq(own, leaf)).then_some(leaf.frame);
                    (own.frame, own.line, inside)
                }
                None => (leaf.frame, leaf.line, None),
            };
            *samples.entry(key).or_default() += leaf.samples;
        }
        let mut places: Vec<Place> = samples
            .into_iter()
            .map(|((frame, line, inside), samples)| {
                let (file, function) = self.names[frame].clone();
                let inside = inside.map(|it| self.names[it].1.clone());
                Place { function, file, line: known(line), inside, samples }
            })
            .collect();
        places.sort_by_key(|it| std::cmp::Reverse(it.samples));
        places
    }

    /// A node, its caller, the caller's caller, …
    fn outwards<'a>(&'a self, node: &'a Node) -> impl Iterator<Item = &'a Node> {
        std::iter::successors(Some(node), |it| self.places.get(it.caller?))
    }
}

/// `py-spy` says 0 where it could not make out the line.
fn known(line: i32) -> Option<i32> {
    (line > 0).then_some(line)
}

/// Whether a file is the user's: not one of Python's own, nor installed.
fn is_own(file: &str) -> bool {
    let installed = ["/site-packages/", "/dist-packages/", "/lib/python3", "\\Lib\\"];
    !file.starts_with('<') && !installed.iter().any(|it| file.contains(it))
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
        let places: Vec<_> = stacks.places().iter().map(|it| (it.line, it.samples)).collect();
        assert_eq!(places, [(Some(14), 2), (None, 1)]);
    }

    #[test]
    fn time_in_libraries_belongs_to_the_line_that_called_them() {
        let mut stacks = Stacks::default();
        let execute = "/v/lib/python3.11/site-packages/tf/execute.py:execute:53";
        let frozen = "<frozen runpy>:run:1";
        written(&mut stacks, 1, &[thread(7, &[execute, "/me/a.py:step:14", frozen])]);
        written(&mut stacks, 2, &[thread(7, &[execute, "/me/a.py:step:14", frozen])]);
        written(&mut stacks, 3, &[thread(7, &["/me/a.py:step:15", frozen])]);
        written(&mut stacks, 4, &[thread(7, &[execute, frozen])]);
        written(&mut stacks, 5, &[thread(8, &["/me/a.py:other:1"])]);
        let places: Vec<String> = stacks
            .places()
            .iter()
            .map(|it| format!("{} {:?} {:?} {}", it.function, it.line, it.inside, it.samples))
            .collect();
        let expected = [
            r#"step Some(14) Some("execute") 2"#,
            "step Some(15) None 1",
            "execute Some(53) None 1",
        ];
        assert_eq!(places, expected);
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
