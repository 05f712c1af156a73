//! What was profiled, in a line: frameworks, hosts or ranks, devices, steps.

use std::collections::BTreeSet;

use analyses::run_info::Part;
use trace::{FactValue, Trace, TrackKind, dialect};

use super::Report;

/// Who took part, as far as the profile says it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ranks {
    /// Their numbers, of hosts that have one.
    pub numbers: Vec<i64>,
    /// How many the job has.
    pub world_size: Option<i64>,
    /// How many machines are named; `None` where a host does not say on which it is.
    pub machines: Option<usize>,
}

impl Ranks {
    pub fn of(trace: &Trace) -> Ranks {
        let hosts: Vec<_> = trace.tracks_of(TrackKind::Host).collect();
        let number = |host, key| match trace.fact(host, key) {
            Some(FactValue::Int(it)) => Some(*it),
            _ => None,
        };
        let mut numbers: Vec<i64> = hosts.iter().filter_map(|&it| number(it, "rank")).collect();
        numbers.sort_unstable();
        let machine = |host| match trace.fact(host, "machine") {
            Some(FactValue::Text(it)) => Some(it.as_str()),
            _ => None,
        };
        let machines: Option<BTreeSet<&str>> = hosts.iter().map(|&it| machine(it)).collect();
        Ranks {
            numbers,
            world_size: hosts.iter().filter_map(|&it| number(it, "world_size")).max(),
            machines: machines.map(|it| it.len()),
        }
    }
}

/// `PyTorch`, `8 ranks of 128, 8 × Tesla V100`, `5 steady steps of 5`.
pub fn facts(report: &Report) -> Vec<String> {
    let run = &report.run;
    let mut parts = Vec::new();
    if !run.frameworks.is_empty() {
        let titles: Vec<&str> = run.frameworks.iter().map(|it| dialect::title(it)).collect();
        parts.push(titles.join(", "));
    }
    // Which devices there were is not known without a profile; a training log knows neither.
    parts.extend(hosts(report).map(|it| match run.has(Part::Events) {
        true => format!("{it}, {}", devices(report)),
        false => it,
    }));
    if let Some(steps) = &report.steps {
        let all = steps.count + steps.warmup_skipped + steps.partial;
        let word = if steps.count == 1 { "step" } else { "steps" };
        parts.push(format!("{} steady {word} of {all}", steps.count));
    }
    parts
}

fn hosts(report: &Report) -> Option<String> {
    let (n, ranks) = (report.run.hosts.len(), &report.run.ranks);
    let all_have_rank = ranks.numbers.len() == n;
    let of_all = match ranks.world_size {
        Some(size) if size > n as i64 => format!(" of {size}"),
        _ => String::new(),
    };
    let on_machines = match ranks.machines {
        Some(1) if n > 1 => " on 1 host".to_owned(),
        Some(it) if it < n => format!(" on {it} hosts"),
        _ => String::new(),
    };
    Some(match n {
        0 => return None,
        1 if all_have_rank && !of_all.is_empty() => format!("rank {}{of_all}", ranks.numbers[0]),
        1 => "1 host".to_owned(),
        n if all_have_rank => format!("{n} ranks{of_all}{on_machines}"),
        n if !on_machines.is_empty() => format!("{n} processes{on_machines}"),
        n => format!("{n} hosts"),
    })
}

fn devices(report: &Report) -> String {
    let mut kinds: Vec<(String, usize)> = Vec::new();
    for device in &report.run.devices {
        let name = without_number(&device.name);
        match kinds.iter_mut().find(|it| it.0 == name) {
            Some(it) => it.1 += 1,
            None => kinds.push((name, 1)),
        }
    }
    if kinds.is_empty() {
        return match report.run.silent_devices.first() {
            Some(it) => format!("{}, of which nothing was recorded", it.name),
            None => "CPU only".to_owned(),
        };
    }
    let word = |(name, n): &(String, usize)| match n {
        1 => name.clone(),
        n => format!("{n} × {name}"),
    };
    kinds.iter().map(word).collect::<Vec<_>>().join(", ")
}

/// `Nvidia GPU:0, 8.0` and `GPU 3`: the number of a device is not part of what it is.
fn without_number(name: &str) -> String {
    let is_digit = |it: char| it.is_ascii_digit();
    match (name.split_once(':'), name.rsplit_once(' ')) {
        (Some((kind, rest)), _) => format!("{kind}{}", rest.trim_start_matches(is_digit)),
        (None, Some((kind @ ("GPU" | "TPU"), number))) if number.chars().all(is_digit) => {
            kind.to_owned()
        }
        _ => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use trace::{Identity, TraceBuilder};

    use super::{Ranks, without_number};

    #[test]
    fn ranks_and_machines_are_counted() {
        let mut out = TraceBuilder::new();
        for rank in [1, 0, 5] {
            out.new_host(&Identity {
                machine: Some("box".to_owned()),
                rank: Some(rank),
                world_size: Some(16),
                ..Identity::default()
            });
        }
        let ranks = Ranks::of(&out.finish());
        assert_eq!(
            (ranks.numbers, ranks.world_size, ranks.machines),
            (vec![0, 1, 5], Some(16), Some(1))
        );
    }

    #[test]
    fn who_does_not_name_a_machine_counts_none() {
        let mut out = TraceBuilder::new();
        out.new_host(&Identity { machine: Some("box".to_owned()), ..Identity::default() });
        out.new_host(&Identity { file: "trace".to_owned(), ..Identity::default() });
        assert_eq!(Ranks::of(&out.finish()), Ranks::default());
    }

    #[test]
    fn the_number_of_a_device_is_no_part_of_its_name() {
        assert_eq!(without_number("Nvidia GPU:0, 8.0"), "Nvidia GPU, 8.0");
        assert_eq!(without_number("GPU 3"), "GPU");
        assert_eq!(without_number("Tesla V100-SXM2-32GB"), "Tesla V100-SXM2-32GB");
        assert_eq!(without_number("NVIDIA A100 80"), "NVIDIA A100 80");
    }
}
