//! What the processes of a run said about themselves: `python-PID.jsonl`, without its samples.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

/// One Python process of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProcessLog {
    pub pid: i64,
    pub script: String,
    pub python: String,
    /// Name and version.
    pub frameworks: BTreeMap<String, String>,
    /// What counted as a step: its kind and its name.
    pub step: Option<(String, String)>,
    pub n_steps: i64,
    pub said: Vec<Said>,
}

/// A decision and its reason.
#[derive(Debug, Clone, PartialEq)]
pub struct Said {
    pub unix_ns: i64,
    pub what: String,
    pub text: String,
}

/// The processes that left a log, by their number. A line that cannot be read is passed over:
/// the report counts such damage.
pub fn process_logs(run: &Path) -> Vec<ProcessLog> {
    let Ok(entries) = fs::read_dir(run) else { return Vec::new() };
    let mut logs: Vec<ProcessLog> = entries
        .filter_map(|it| it.ok())
        .filter(|it| {
            let name = it.file_name().to_string_lossy().into_owned();
            name.starts_with("python-") && name.ends_with(".jsonl")
        })
        .filter_map(|it| fs::read_to_string(it.path()).ok())
        .map(|it| read(&it))
        .collect();
    logs.sort_by_key(|it| it.pid);
    logs
}

fn read(text: &str) -> ProcessLog {
    let mut log = ProcessLog::default();
    for line in text.lines() {
        // Most lines are samples.
        if line.starts_with("[\"sample\"") || line.starts_with("[\"node\"") {
            continue;
        }
        let Ok(record) = serde_json::from_str::<Value>(line) else { continue };
        let text = |at: usize| record[at].as_str().unwrap_or_default().to_owned();
        if record.get("strobe").is_some() {
            log.pid = record["pid"].as_i64().unwrap_or(0);
            log.script = record["script"].as_str().unwrap_or_default().to_owned();
            log.python = record["python"].as_str().unwrap_or_default().to_owned();
            continue;
        }
        match record[0].as_str() {
            Some("framework") => {
                log.frameworks.insert(text(1), text(2));
            }
            Some("step-key") => log.step = Some((text(2), text(3))),
            Some("step") => log.n_steps = record[2].as_i64().unwrap_or(log.n_steps),
            Some("said") => {
                let unix_ns = record[1].as_i64().unwrap_or(0);
                log.said.push(Said { unix_ns, what: text(2), text: text(3) });
            }
            _ => (),
        }
    }
    log
}

impl ProcessLog {
    /// The last thing said of this kind.
    pub fn last(&self, what: &str) -> Option<&Said> {
        self.said.iter().rev().find(|it| it.what == what)
    }
}

#[cfg(test)]
mod tests {
    use super::read;

    #[test]
    fn a_log_that_was_cut_off_says_what_it_can() {
        let log = read(
            "{\"strobe\":\"python\",\"pid\":7,\"script\":\"t.py\",\"python\":\"3.12.1\"}\n\
             [\"framework\",\"jax\",\"0.10.2\"]\n[\"step-key\",5,\"function\",\"f\"]\n\
             [\"step\",5,1]\n[\"step\",9,2]\n[\"said\",9,\"window-start\",\"steady\"]\n[\"step\",1",
        );
        assert_eq!((log.pid, log.n_steps), (7, 2));
        assert_eq!(log.frameworks["jax"], "0.10.2");
        assert_eq!(log.step, Some(("function".to_owned(), "f".to_owned())));
        assert_eq!(log.last("window-start").unwrap().text, "steady");
        assert_eq!(log.last("saved"), None);
    }
}
