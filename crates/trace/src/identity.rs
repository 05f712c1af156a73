//! Who wrote a file: a machine has many processes, a job many ranks, and each has its own steps.
//!
//! ```text
//! box.pb                       box
//! box_17.pt.trace.json         box                  alone, and
//! box_18.pt.trace.json         box (process 18)     beside another of the same machine
//! rank0.json {"rank": 0}       rank0 (rank 0)
//! ```

use crate::{FactValue, TraceBuilder, TrackId, TrackKind};

/// What tells two processes of one machine apart.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Identity {
    /// What the machine calls itself, where the file says so.
    pub machine: Option<String>,
    /// Its number on that machine.
    pub process: Option<i64>,
    /// Its place among the processes of a job, and how many these are.
    pub rank: Option<i64>,
    pub world_size: Option<i64>,
    /// The file's name without its endings: what is left where nothing is said.
    pub file: String,
}

/// Hosts stand in every row of a table.
const LONGEST_NAME: usize = 256;

impl Identity {
    /// Names from the plainest on.
    fn names(&self) -> impl Iterator<Item = String> {
        let said = self.machine.as_deref().unwrap_or(&self.file);
        let base: String = said.chars().take(LONGEST_NAME).collect();
        let base = if base.is_empty() { "host".to_owned() } else { base };
        let (plain, by_process) = match (self.rank, self.process) {
            (Some(rank), _) => (format!("{base} (rank {rank})"), None),
            (None, Some(process)) => (base.clone(), Some(format!("{base} (process {process})"))),
            (None, None) => (base.clone(), None),
        };
        let tells = self.machine.is_some() && !self.file.is_empty() && self.file != base;
        let by_file = tells.then(|| format!("{plain} ({})", self.file));
        let numbered = plain.clone();
        [Some(plain), by_process, by_file]
            .into_iter()
            .flatten()
            .chain((2..).map(move |n: u64| format!("{numbered} ({n})")))
    }
}

impl TraceBuilder {
    /// The host that a file's events are of: a new one for each file, told apart by its name.
    pub fn new_host(&mut self, who: &Identity) -> TrackId {
        let free = who.names().find(|it| !self.has_track(None, TrackKind::Host, it));
        let host = self.track(None, TrackKind::Host, &free.unwrap_or_default());
        if let Some(machine) = &who.machine {
            self.fact(host, "machine", FactValue::Text(machine.clone()));
        }
        let numbers =
            [("process", who.process), ("rank", who.rank), ("world_size", who.world_size)];
        for (key, number) in numbers {
            if let Some(it) = number {
                self.fact(host, key, FactValue::Int(it));
            }
        }
        host
    }
}

#[cfg(test)]
mod tests {
    use super::Identity;
    use crate::{FactValue, TraceBuilder, TrackKind};

    fn names(all: &[Identity]) -> Vec<String> {
        let mut out = TraceBuilder::new();
        for who in all {
            out.new_host(who);
        }
        let trace = out.finish();
        trace.tracks_of(TrackKind::Host).map(|it| trace.track_name(it).to_owned()).collect()
    }

    fn process(machine: &str, process: i64, file: &str) -> Identity {
        let machine = Some(machine.to_owned());
        Identity { machine, process: Some(process), file: file.to_owned(), ..Identity::default() }
    }

    #[test]
    fn processes_of_one_machine_stay_apart() {
        let all = [process("box", 17, "a"), process("box", 18, "b"), process("box", 18, "c")];
        assert_eq!(names(&all), ["box", "box (process 18)", "box (c)"]);
    }

    #[test]
    fn ranks_are_told_by_their_number() {
        let rank =
            |it| Identity { rank: Some(it), file: "trace".to_owned(), ..Identity::default() };
        let all = [rank(0), rank(1), rank(1)];
        assert_eq!(names(&all), ["trace (rank 0)", "trace (rank 1)", "trace (rank 1) (2)"]);
    }

    #[test]
    fn who_says_nothing_has_a_name_too() {
        let all = [Identity::default(), Identity::default()];
        assert_eq!(names(&all), ["host", "host (2)"]);
    }

    #[test]
    fn what_is_known_is_a_fact() {
        let mut out = TraceBuilder::new();
        let who = Identity { world_size: Some(8), rank: Some(3), ..process("box", 17, "a") };
        let host = out.new_host(&who);
        let trace = out.finish();
        assert_eq!(trace.track_name(host), "box (rank 3)");
        assert_eq!(trace.fact(host, "machine"), Some(&FactValue::Text("box".to_owned())));
        assert_eq!(trace.fact(host, "world_size"), Some(&FactValue::Int(8)));
    }
}
