//! What the processes of a run said about themselves: `python-PID.jsonl`, without its samples.

use std::collections::BTreeMap;
use std::path::Path;

use runlog::{Record, Said, StepKey};

/// One Python process of a run.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProcessLog {
    pub pid: i64,
    pub script: String,
    pub python: String,
    /// Name and version.
    pub frameworks: BTreeMap<String, String>,
    /// What counted as a step, at last.
    pub step: Option<StepKey>,
    pub n_steps: i64,
    pub said: Vec<Said>,
}

/// The processes that left a log, by their number. A line that cannot be read is passed over:
/// the report counts such damage.
pub fn process_logs(run: &Path) -> Vec<ProcessLog> {
    let read = |path: &Path| {
        let mut log = ProcessLog::default();
        runlog::each_line(path, |it| log.line(&it.bytes)).ok()?;
        Some(log)
    };
    let files = runlog::logs(run).unwrap_or_default();
    let mut logs: Vec<ProcessLog> = files.iter().filter_map(|it| read(it)).collect();
    logs.sort_by_key(|it| it.pid);
    logs
}

impl ProcessLog {
    fn line(&mut self, line: &[u8]) {
        if Record::is_of_stacks(line) {
            return;
        }
        match Record::parse(line) {
            Some(Record::Header(it)) => {
                self.pid = it.pid.unwrap_or(0);
                self.script = it.script.unwrap_or_default();
                self.python = it.python.unwrap_or_default();
            }
            Some(Record::Framework { name, version }) => {
                self.frameworks.insert(name, version);
            }
            Some(Record::StepKey(it)) => self.step = Some(it),
            Some(Record::Step { count, .. }) => self.n_steps = count,
            Some(Record::Said(it)) => self.said.push(it),
            _ => (),
        }
    }

    /// The last thing said of this kind.
    pub fn last(&self, what: &str) -> Option<&Said> {
        self.said.iter().rev().find(|it| it.what == what)
    }
}

#[cfg(test)]
mod tests {
    use super::process_logs;

    #[test]
    fn a_log_that_was_cut_off_says_what_it_can() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join("python-7.jsonl"),
            "{\"strobe\":\"python\",\"pid\":7,\"script\":\"t.py\",\"python\":\"3.12.1\"}\n\
             [\"framework\",\"jax\",\"0.10.2\"]\n[\"step-key\",5,\"function\",\"f\"]\n\
             [\"step\",5,1]\n[\"step\",9,2]\n[\"said\",9,\"window-start\",\"steady\"]\n[\"step\",1",
        )
        .unwrap();
        let logs = process_logs(folder.path());
        let [log] = logs.as_slice() else { panic!("{logs:?}") };
        assert_eq!((log.pid, log.n_steps), (7, 2));
        assert_eq!(log.frameworks["jax"], "0.10.2");
        let step = log.step.as_ref().unwrap();
        assert_eq!((step.kind.as_str(), step.name.as_str()), ("function", "f"));
        assert_eq!(log.last("window-start").unwrap().text, "steady");
        assert_eq!(log.last("saved"), None);
    }
}
