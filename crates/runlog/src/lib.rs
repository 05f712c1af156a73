//! Makes records of the lines of `python-PID.jsonl` (`docs/run-folder.md`).
//!
//! ```text
//! python-PID.jsonl ──line──▶ Record ──▶ trace (sources), step times (session),
//!                                       manifest and live view (capture)
//! ```
//!
//! What a record means is up to who reads it; so is what to do about a line that is none.

use std::fs::{self, File, Metadata};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

/// One line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Record {
    Header(Header),
    /// A function of Python.
    Frame {
        id: i64,
        file: String,
        function: String,
        first_line: Option<u32>,
    },
    /// A place in a stack: a frame, its line, and who called it.
    Node {
        id: i64,
        parent: Option<i64>,
        frame: i64,
        line: Option<u32>,
    },
    /// What a line of a frame's file says.
    Source {
        frame: i64,
        line: u32,
        text: String,
    },
    /// Where a thread was.
    Sample {
        unix_ns: i64,
        thread: i64,
        node: i64,
    },
    /// So many steps had begun.
    Step {
        unix_ns: i64,
        count: i64,
    },
    StepKey(StepKey),
    Framework {
        name: String,
        version: String,
    },
    /// Examples in a step.
    Examples(i64),
    Site(Box<Site>),
    Said(Said),
    /// Of a later version.
    Other,
}

/// The first line: whose file this is. A damaged one may lack anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Header {
    pub host: Option<String>,
    pub pid: Option<i64>,
    /// The main thread, as the operating system calls it.
    pub thread: Option<i64>,
    pub python: Option<String>,
    pub script: Option<String>,
}

/// What counts as a step from now on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StepKey {
    pub kind: String,
    pub name: String,
    /// The thread that takes the steps.
    pub thread: Option<i64>,
}

/// A line of the user's code that makes something: a stage of a dataset, a compiled function.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Site {
    pub id: i64,
    /// `dataset.map`, `tf.function`, `keras.fit`, …
    pub kind: String,
    /// Of the function that is passed, or of the class.
    pub name: Option<String>,
    pub file: String,
    /// The line of the call, and the last one of it.
    pub line: u32,
    pub end_line: u32,
    /// The whole statement; empty where the file could not be read.
    pub text: String,
    /// Where that begins.
    pub text_line: u32,
    /// Bytes of the last line up to the end of the call.
    pub end_col: Option<u32>,
    /// Its short form: `ds.map(augment)`.
    pub call: Option<String>,
    /// Arguments that matter for speed, as given: `num_parallel_calls`, `AUTOTUNE`.
    pub args: Vec<(String, String)>,
    /// Sites of what it is made of.
    pub inputs: Vec<i64>,
    /// The site whose function made it.
    pub inside: Option<i64>,
    /// Where the function that is passed begins, or what a class is there for.
    pub defined: Option<Definition>,
    pub unix_ns: Option<i64>,
}

/// Where a function of the user's begins, its decorators included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definition {
    pub file: String,
    pub line: u32,
}

/// A decision and its reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Said {
    pub unix_ns: i64,
    pub what: String,
    pub text: String,
}

/// Longer lines are no records; without a limit one could fill the memory.
pub const LONGEST_LINE: usize = 1 << 20;

impl Record {
    /// `None`: not what the format promises.
    pub fn parse(line: &[u8]) -> Option<Record> {
        // Most lines of a long run are of this kind.
        if let Some(step) = plain_step(line) {
            return Some(step);
        }
        match serde_json::from_slice(line).ok()? {
            Value::Object(header) => Some(Record::Header(Header::of(&header))),
            Value::Array(fields) => Record::of(fields),
            _ => None,
        }
    }

    fn of(mut fields: Vec<Value>) -> Option<Record> {
        let name = text(&mut fields, 0)?;
        let fields = &mut fields;
        Some(match name.as_str() {
            "frame" => Record::Frame {
                id: number(fields, 1)?,
                file: text(fields, 2)?,
                function: text(fields, 3)?,
                first_line: line_number(fields, 4)?,
            },
            "node" => Record::Node {
                id: number(fields, 1)?,
                parent: match fields.get(2)? {
                    Value::Null => None,
                    parent => Some(parent.as_i64()?),
                },
                frame: number(fields, 3)?,
                line: line_number(fields, 4)?,
            },
            "source" => Record::Source {
                frame: number(fields, 1)?,
                line: line_number(fields, 2)??,
                text: text(fields, 3)?,
            },
            "sample" => Record::Sample {
                unix_ns: number(fields, 1)?,
                thread: number(fields, 2)?,
                node: number(fields, 3)?,
            },
            "step" => Record::Step { unix_ns: number(fields, 1)?, count: count(fields, 2)? },
            "step-key" => Record::StepKey(StepKey {
                kind: text(fields, 2)?,
                name: text(fields, 3)?,
                thread: number(fields, 4),
            }),
            "framework" => Record::Framework { name: text(fields, 1)?, version: text(fields, 2)? },
            "examples" => Record::Examples(count(fields, 1)?),
            "site" => Record::Site(Box::new(Site::of(fields)?)),
            "said" => Record::Said(Said {
                unix_ns: number(fields, 1)?,
                what: text(fields, 2)?,
                text: text(fields, 3).unwrap_or_default(),
            }),
            _ => Record::Other,
        })
    }

    /// Whether a line is of the stacks, which are by far the most while a capture goes on, and of
    /// no interest to many: told by its beginning alone.
    pub fn is_of_stacks(line: &[u8]) -> bool {
        let kinds: [&[u8]; 4] = [b"[\"sample\"", b"[\"node\"", b"[\"frame\"", b"[\"source\""];
        kinds.iter().any(|it| line.starts_with(it))
    }
}

/// `["step",TIME,N]` as the hook writes it, without a parser's help.
fn plain_step(line: &[u8]) -> Option<Record> {
    let line = line.strip_prefix(b"[\"step\",")?.strip_suffix(b"]")?;
    let (time, count) = str::from_utf8(line).ok()?.split_once(',')?;
    let number = |it: &str| it.trim_ascii().parse::<i64>().ok();
    let count = number(count).filter(|&it| it >= 0)?;
    Some(Record::Step { unix_ns: number(time)?, count })
}

impl Header {
    fn of(header: &Map<String, Value>) -> Header {
        let text = |key: &str| header.get(key)?.as_str().map(str::to_owned);
        let number = |key: &str| header.get(key)?.as_i64();
        Header {
            host: text("host"),
            pid: number("pid"),
            thread: number("thread"),
            python: text("python"),
            script: text("script"),
        }
    }
}

impl Site {
    fn of(fields: &mut [Value]) -> Option<Site> {
        let line = line_number(fields, 5)??;
        let mut site = Site {
            id: count(fields, 1)?,
            kind: text(fields, 2)?,
            name: match fields.get(3)? {
                Value::Null => None,
                _ => Some(text(fields, 3)?),
            },
            file: text(fields, 4)?,
            line,
            end_line: line_number(fields, 6)??.max(line),
            text: text(fields, 7)?,
            text_line: line,
            ..Site::default()
        };
        let Some(Value::Object(more)) = fields.get(8) else { return Some(site) };
        let small = |key: &str| more.get(key)?.as_i64().and_then(|it| u32::try_from(it).ok());
        site.text_line = small("text_line").unwrap_or(line);
        site.end_col = small("end_col");
        site.call = more.get("call").and_then(Value::as_str).map(str::to_owned);
        site.unix_ns = more.get("time").and_then(Value::as_i64);
        site.inside = more.get("inside").and_then(Value::as_i64);
        if let Some(inputs) = more.get("inputs").and_then(Value::as_array) {
            site.inputs = inputs.iter().filter_map(Value::as_i64).collect();
        }
        if let Some(args) = more.get("args").and_then(Value::as_object) {
            site.args = args.iter().map(|(name, it)| (name.clone(), as_python(it))).collect();
        }
        if let Some([Value::String(file), line]) =
            more.get("defined").and_then(Value::as_array).map(Vec::as_slice)
        {
            let line = line.as_i64().and_then(|it| u32::try_from(it).ok());
            site.defined = line.map(|line| Definition { file: file.clone(), line });
        }
        Some(site)
    }
}

/// A value in the words of the program.
fn as_python(value: &Value) -> String {
    match value {
        Value::Bool(true) => "True".to_owned(),
        Value::Bool(false) => "False".to_owned(),
        Value::Null => "None".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn number(fields: &[Value], at: usize) -> Option<i64> {
    fields.get(at)?.as_i64()
}

fn count(fields: &[Value], at: usize) -> Option<i64> {
    number(fields, at).filter(|&it| it >= 0)
}

fn text(fields: &mut [Value], at: usize) -> Option<String> {
    match fields.get_mut(at)? {
        Value::String(text) => Some(std::mem::take(text)),
        _ => None,
    }
}

/// Lines count from 1; a sampler that cannot know one says null.
fn line_number(fields: &[Value], at: usize) -> Option<Option<u32>> {
    match fields.get(at)? {
        Value::Null => Some(None),
        line => Some(Some(u32::try_from(line.as_i64()?).ok()?)),
    }
}

/// Whether a file of this name is what a process of a run said about itself.
pub fn is_log(name: &str) -> bool {
    name.starts_with("python-") && name.ends_with(".jsonl")
}

/// Such files of a run folder, by their names.
pub fn logs(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files: Vec<PathBuf> = folder
        .read_dir()?
        .filter_map(|it| it.ok())
        // A pipe of that name would wait for ever.
        .filter(|it| is_log(&it.file_name().to_string_lossy()) && it.path().is_file())
        .map(|it| it.path())
        .collect();
    files.sort();
    Ok(files)
}

/// Opens a file, and nothing else: opening a pipe waits until somebody writes to it, and what a
/// device gives may have no end.
pub fn open(path: &Path) -> io::Result<File> {
    let only_files = |about: Metadata| match about.is_file() {
        true => Ok(()),
        false => Err(io::Error::other("this is no regular file\n  hint: copy it into one")),
    };
    only_files(fs::metadata(path)?)?;
    let file = File::open(path)?;
    // Another may have taken its place.
    only_files(file.metadata()?)?;
    Ok(file)
}

/// One line, without its end.
#[derive(Debug)]
pub struct Line {
    pub bytes: Vec<u8>,
    /// It has an end: a writer that was killed leaves a last line without.
    pub is_whole: bool,
}

/// Tells of each line of a file. Of one that is too long only the beginning is told.
pub fn each_line(path: &Path, mut each: impl FnMut(&Line)) -> io::Result<()> {
    let mut file = BufReader::new(open(path)?);
    let mut line = Line { bytes: Vec::new(), is_whole: true };
    loop {
        line.bytes.clear();
        let n = (&mut file).take(LONGEST_LINE as u64).read_until(b'\n', &mut line.bytes)?;
        if n == 0 {
            return Ok(());
        }
        line.is_whole = line.bytes.pop_if(|it| *it == b'\n').is_some();
        if !line.is_whole && n == LONGEST_LINE {
            file.skip_until(b'\n')?;
            line.is_whole = true;
        }
        each(&line);
    }
}

#[cfg(test)]
mod tests {
    use super::{Definition, Header, LONGEST_LINE, Record, Said, Site, StepKey, each_line, logs};

    fn parse(line: &str) -> Option<Record> {
        Record::parse(line.as_bytes())
    }

    #[test]
    fn every_record_that_is_documented_is_known() {
        let text = include_str!("../../../docs/run-folder.md");
        let (_, section) = text.split_once("## python-PID.jsonl").unwrap();
        let (_, example) = section.split_once("```json\n").unwrap();
        let (example, table) = example.split_once("```").unwrap();
        let records: Vec<Record> = example.lines().map(|it| parse(it).unwrap()).collect();
        assert_eq!(records.len(), 8);
        assert!(matches!(&records[0], Record::Header(it) if it.pid == Some(4712)));
        assert!(!records.contains(&Record::Other));
        let names = table.lines().filter_map(|it| it.strip_prefix("| `[\"")?.split('"').next());
        let mut n = 0;
        for name in names {
            n += 1;
            let known = parse(&format!("[\"{name}\"]")) != Some(Record::Other);
            assert!(known, "{name}");
        }
        assert_eq!(n, 10);
    }

    #[test]
    fn records_hold_what_was_written() {
        let key = StepKey { kind: "function".into(), name: "f".into(), thread: Some(9) };
        let said = Said { unix_ns: 5, what: "saved".into(), text: "0.1 s".into() };
        let node = |parent, line| Record::Node { id: 1, parent, frame: 3, line };
        for (line, expected) in [
            (r#"["step",17,2]"#, Record::Step { unix_ns: 17, count: 2 }),
            (r#" [ "step" , -17, 2 ] "#, Record::Step { unix_ns: -17, count: 2 }),
            (r#"["step-key",1,"function","f",9]"#, Record::StepKey(key.clone())),
            (r#"["step-key",1,"function","f"]"#, Record::StepKey(StepKey { thread: None, ..key })),
            (r#"["said",5,"saved","0.1 s"]"#, Record::Said(said)),
            (r#"["node",1,null,3,null]"#, node(None, None)),
            (r#"["node",1,0,3,14]"#, node(Some(0), Some(14))),
            (
                r#"["source",3,14,"a = b"]"#,
                Record::Source { frame: 3, line: 14, text: "a = b".into() },
            ),
            (r#"["sample",5,7,1]"#, Record::Sample { unix_ns: 5, thread: 7, node: 1 }),
            (r#"["examples",64]"#, Record::Examples(64)),
            (r#"["weather","fine"]"#, Record::Other),
            ("{}", Record::Header(Header::default())),
        ] {
            assert_eq!(parse(line), Some(expected), "{line}");
        }
    }

    #[test]
    fn a_site_holds_what_was_written() {
        let line = r#"["site",3,"dataset.map","augment","/me/train.py",42,43,"ds = ds.map(\n  augment)",
            {"text_line":42,"end_col":10,"call":"ds.map(augment)","time":5,"inputs":[2,1],"inside":0,
             "args":{"num_parallel_calls":"AUTOTUNE","deterministic":false,"n":8},
             "defined":["/me/data.py",7]}]"#;
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = Site {
            id: 3,
            kind: "dataset.map".into(),
            name: Some("augment".into()),
            file: "/me/train.py".into(),
            line: 42,
            end_line: 43,
            text: "ds = ds.map(\n  augment)".into(),
            text_line: 42,
            end_col: Some(10),
            call: Some("ds.map(augment)".into()),
            args: vec![
                pair("num_parallel_calls", "AUTOTUNE"),
                pair("deterministic", "False"),
                pair("n", "8"),
            ],
            inputs: vec![2, 1],
            inside: Some(0),
            defined: Some(Definition { file: "/me/data.py".into(), line: 7 }),
            unix_ns: Some(5),
        };
        assert_eq!(parse(line), Some(Record::Site(Box::new(expected))));
        let bare = parse(r#"["site",0,"keras.fit",null,"t.py",9,9,""]"#);
        assert!(
            matches!(bare, Some(Record::Site(it)) if it.name.is_none() && it.text_line == 9 && it.inputs.is_empty())
        );
    }

    #[test]
    fn what_breaks_its_promise_is_no_record() {
        for line in [
            r#"["site",0,"keras.fit",null,"t.py",null,9,""]"#,
            r#"["site",-1,"keras.fit",null,"t.py",9,9,""]"#,
            r#"["site",0,"keras.fit",7,"t.py",9,9,""]"#,
            "",
            "7",
            "nonsense",
            "[]",
            "[7]",
            r#"["step"]"#,
            r#"["step",1,-2]"#,
            r#"["step",1e30,2]"#,
            r#"["step",1,99999999999999999999]"#,
            r#"["node",1,"x",3,4]"#,
            r#"["node",1,null,3,-4]"#,
            r#"["node",1,null,3]"#,
            r#"["examples",-1]"#,
            r#"["said","now","saved"]"#,
            r#"["frame",0,"a.py",7,1]"#,
            r#"["step",5,1"#,
        ] {
            assert_eq!(parse(line), None, "{line}");
        }
    }

    #[test]
    fn lines_are_told_with_or_without_their_end() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("python-0.jsonl")).unwrap();
        std::fs::write(folder.path().join("stacks-7.jsonl"), "").unwrap();
        let path = folder.path().join("python-7.jsonl");
        let long = "x".repeat(3 * LONGEST_LINE);
        std::fs::write(&path, format!("one\n{long}\n\ntwo")).unwrap();
        assert_eq!(logs(folder.path()).unwrap(), std::slice::from_ref(&path));
        let mut lines = Vec::new();
        each_line(&path, |it| lines.push((it.bytes.len(), it.is_whole))).unwrap();
        assert_eq!(lines, [(3, true), (LONGEST_LINE, true), (0, true), (3, false)]);
    }
}
