//! One device, or process without one, comes late to the collectives, and the others wait for it.

use analyses::Tables;
use analyses::step::{HostSteps, Step, median};
use analyses::step_time::{CATEGORIES, StepTime, busy_devices, streams_of};
use hashbrown::HashMap;
use trace::{Dur, OpKind, StrId, Trace, TrackId, TrackKind};

use crate::facts::{Facts, MOST_ROWS, NO_STEPS, facts, percent};
use crate::{Change, Evidence, Finding, Fix, Gain, Rule, Verdict, WORTH_SAYING};

rule! {
    /// One device comes late to the collectives, and the others wait for it. So may a process that
    /// computes on its CPU.
    ///
    /// ## Evidence
    /// A collective ends for all when the last has come. So of the same collective on several
    /// devices, the shortest is that of the device that came last, and what the others have beyond
    /// it is waiting: no clocks are compared. Said of a device that stands out among three or more
    /// (modified z-score over 3.5, which XProf also uses), or that is the later one of two nearly
    /// always; with the category in which it spends the longer time.
    ///
    /// ## Fix
    /// Make its share equal: the same number of examples, the same lengths, the same input
    /// pipeline; look at what else runs on that host, and at the device's clocks.
    ///
    /// ## When it is wrong
    /// Devices that reduce among subgroups do not all take part in each collective. A link that is
    /// slow looks like a device that is late for the others of its ring.
    pub struct Straggler = "straggler";
}

/// The usual bound for a modified z-score (Iglewicz and Hoaglin), XProf's too.
/// Source: document, Iglewicz and Hoaglin, How to Detect and Handle Outliers.
const STANDS_OUT: f64 = 3.5;
/// Of two devices the later one must be so nearly always, else they take turns.
/// Source: choice, four in five.
const NEARLY_ALWAYS: f64 = 0.8;

impl Rule for Straggler {
    fn check(&self, tables: &Tables) -> Verdict {
        let Some(facts) = facts(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        match late(tables, &facts) {
            Err(why) => Verdict::unknown(why),
            Ok(None) => Verdict::Clear,
            Ok(Some(late)) => late.finding(tables, &facts),
        }
    }

    fn in_headline(&self) -> Option<&'static str> {
        Some("is spent waiting for a late device")
    }
}

/// Who comes late.
#[derive(Debug)]
pub struct Late {
    host: String,
    /// As in the table `step_time`: `cpu` where a process has no device.
    device: String,
    n_devices: usize,
    /// In how many of the collectives it came last.
    last_in: f64,
    /// How long the others wait for it, in a mean step.
    pub time: Dur,
}

/// A median distance is this part of a standard deviation, where values are spread normally.
/// Source: physical, the upper quartile of the normal distribution.
const AS_DEVIATION: f64 = 0.6745;
/// Devices agree that differ by less than one part in so many of a step.
/// Source: choice, a hundredth.
const AGREE: i64 = 100;
/// A category explains why a device is late from one part in so many of that time on.
/// Source: choice, a guess: a quarter.
const PART_OF_LATE: i64 = 4;

/// Why nobody can be late.
const ALONE: &str = "this profile shows no collectives on two or more devices or processes";

/// `None` where nobody stands out by enough.
pub fn late(tables: &Tables, facts: &Facts) -> Result<Option<Late>, &'static str> {
    let trace = tables.trace();
    let (waits, last_in) = waits(tables).ok_or(ALONE)?;
    let steps = tables.get::<Step>();
    let hosts = steps.iter().map(|it| &it.host).collect::<std::collections::BTreeSet<_>>().len();
    let n_steps = (steps.iter().filter(|it| it.counts()).count() / hosts.max(1)).max(1) as i64;
    let Some((at, own)) = waits.iter().map(|it| it.1).enumerate().min_by_key(|it| it.1) else {
        return Err(ALONE);
    };
    let mut others: Vec<i64> =
        waits.iter().enumerate().filter(|it| it.0 != at).map(|it| it.1.1 - own).collect();
    let time = Dur(median(&mut others).unwrap_or(0) / n_steps);
    let stands_out = if waits.len() > 2 {
        let mut all: Vec<i64> = waits.iter().map(|it| it.1).collect();
        let middle = median(&mut all).unwrap_or(0);
        let mut away: Vec<i64> = all.iter().map(|it| (it - middle).abs()).collect();
        // Devices that agree to the microsecond make any difference look large.
        let floor = facts.step.0 / AGREE * n_steps;
        let spread = median(&mut away).unwrap_or(0).max(floor).max(1);
        AS_DEVIATION * (middle - own) as f64 / spread as f64 > STANDS_OUT
    } else {
        last_in[at] >= NEARLY_ALWAYS
    };
    if !stands_out || facts.share_of(time) < WORTH_SAYING {
        return Ok(None);
    }
    let who = waits[at].0;
    let host = trace.ancestor(who, TrackKind::Host).unwrap_or(who);
    let device = if host == who { CPU } else { trace.track_name(who) };
    Ok(Some(Late {
        host: trace.track_name(host).to_owned(),
        device: device.to_owned(),
        n_devices: waits.len(),
        last_in: last_in[at],
        time,
    }))
}

/// What `step_time` calls the device of a process that has none.
const CPU: &str = "cpu";

/// Devices, or hosts without one, how long each waited in collectives for the others, and in what
/// part of them it came last.
type Waits = (Vec<(TrackId, i64)>, Vec<f64>);

fn waits(tables: &Tables) -> Option<Waits> {
    let trace = tables.trace();
    let steps = tables.model::<HostSteps>();
    let mut devices: Vec<TrackId> = Vec::new();
    let mut durs: HashMap<(StrId, u32), Vec<(usize, i64)>> = HashMap::new();
    for host in trace.tracks_of(TrackKind::Host) {
        let mut counted = steps.counted(trace.track_name(host));
        let Some(first) = counted.next() else { continue };
        let window = (first.start_ps, counted.next_back().unwrap_or(first).span().1);
        let mut members = busy_devices(trace, host);
        if members.is_empty() {
            members.push(host);
        }
        for device in members {
            let found = collectives(trace, device, window);
            if found.is_empty() {
                continue;
            }
            let mut nth: HashMap<StrId, u32> = HashMap::new();
            for (name, dur) in found {
                let nth = nth.entry(name).or_default();
                durs.entry((name, *nth)).or_default().push((devices.len(), dur));
                *nth += 1;
            }
            devices.push(device);
        }
    }
    if devices.len() < 2 {
        return None;
    }
    let mut waits: Vec<(TrackId, i64)> = devices.iter().map(|&it| (it, 0)).collect();
    let mut last: Vec<usize> = vec![0; devices.len()];
    let mut n = 0;
    for members in durs.values().filter(|it| it.len() == devices.len()) {
        let shortest = members.iter().min_by_key(|it| it.1)?;
        last[shortest.0] += 1;
        n += 1;
        for &(device, dur) in members {
            waits[device].1 = waits[device].1.saturating_add(dur - shortest.1);
        }
    }
    if n == 0 {
        return None;
    }
    Some((waits, last.iter().map(|&it| it as f64 / n as f64).collect()))
}

/// Collectives of a device, or of a host's threads, that begin in a window, by name and length, in
/// order on each stream.
fn collectives(trace: &Trace, device: TrackId, window: (i64, i64)) -> Vec<(StrId, i64)> {
    let events = &trace.events;
    let mut found = Vec::new();
    let tracks: Vec<TrackId> = match trace.tracks[device.row()].kind {
        TrackKind::Host => trace.tracks_below(device, TrackKind::Thread).collect(),
        _ => streams_of(trace, device).collect(),
    };
    for track in tracks {
        for row in trace.rows_of(track, OpKind::Collective) {
            if (window.0..window.1).contains(&events.start[row].0) {
                found.push((events.start[row], events.name[row], events.dur[row].0));
            }
        }
    }
    found.sort_unstable();
    found.into_iter().map(|it| (it.1, it.2)).collect()
}

impl Late {
    fn finding(&self, tables: &Tables, facts: &Facts) -> Verdict {
        let Late { host, device, time, .. } = self;
        let (who, kind) = match device.as_str() {
            CPU => (host.clone(), "processes"),
            _ => (format!("{device} of {host}"), "devices"),
        };
        let mut finding = Finding::new(
            format!("{who} is late: the others wait {} for it", facts.per_step(*time)),
            *time,
            facts.step,
        );
        // Work that is shared out again is still done by somebody; only what was slow for another
        // reason, as a clock that was held down, goes as a whole.
        let shared = time.0 - time.0 / self.n_devices.max(1) as i64;
        let new = [shared, shared, time.0].map(|it| facts.step.0 - it);
        let gain = Some(Gain::of_range(facts.step.0, new));
        let rows = tables.get::<StepTime>();
        let own =
            |it: &usize| rows[*it].counts && rows[*it].host == *host && rows[*it].device == *device;
        let own: Vec<usize> = (0..rows.len()).filter(own).take(MOST_ROWS).collect();
        let last = match self.last_in {
            it if it >= 1.0 => "It was the last to arrive at every collective".to_owned(),
            it => format!("It was the last to arrive at {} of the collectives", percent(it)),
        };
        finding = finding.evidence(
            Evidence::text(format!("{last} of {} {kind}", self.n_devices))
                .steps("collective", own.clone()),
        );
        if let Some((category, longer)) = self.spends_longer(tables) {
            finding = finding.evidence(
                Evidence::text(format!("It spends {longer} more per step on {category}"))
                    .steps(category, own),
            );
            let text = match category {
                "input" => format!("Give {host} the same input pipeline as the others"),
                "compute" if *device == CPU => {
                    format!("Give {host} the same share of the work")
                }
                "compute" => {
                    format!("Give {device} the same share of the work, and check its clocks")
                }
                _ => format!("Check what else runs on {host}"),
            };
            finding = finding.fix(Fix::new(Change::BalanceWork, text).gives(gain));
        }
        finding
            .fix(
                Fix::new(
                    Change::BalanceWork,
                    format!("Make the shares of all {kind} equal: examples, lengths, files"),
                )
                .gives(gain),
            )
            .found()
    }

    /// The category in which it spends more time than the others, and how much.
    fn spends_longer(&self, tables: &Tables) -> Option<(&'static str, Dur)> {
        let rows = tables.get::<StepTime>();
        let counted = || rows.iter().filter(|it| it.counts);
        let is_it = |it: &&StepTime| it.host == self.host && it.device == self.device;
        let mean = |of: fn(&StepTime) -> i64, rows: &mut dyn Iterator<Item = &StepTime>| {
            let (sum, n) =
                rows.fold((0_i128, 0_i128), |(sum, n), it| (sum + i128::from(of(it)), n + 1));
            (sum / n.max(1)) as i64
        };
        CATEGORIES
            .iter()
            .filter(|it| !["collective", "idle"].contains(&it.0))
            .map(|&(name, of)| {
                let own = mean(of, &mut counted().filter(is_it));
                let others = mean(of, &mut counted().filter(|it| !is_it(it)));
                (name, Dur(own - others))
            })
            .max_by_key(|it| it.1)
            .filter(|it| it.1.0 * PART_OF_LATE >= self.time.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Straggler;
    use std::sync::Arc;

    use analyses::Tables;
    use trace::{Dur, Identity, NumberKey, Time, TraceBuilder, TrackKind};

    use crate::testing::{finding, missing, settled, verdict};
    use crate::{Severity, Verdict};

    const HOST: &str =
        "host/python: train#1 0..100, train#2 100..200, train#3 200..300, train#4 300..400";

    fn device(name: &str, late: i64) -> String {
        let steps = (0..3).map(|it| {
            let at = it * 100;
            format!("k {at}..{}, ncclAllReduce {}..{}", at + 40 + late, at + 40 + late, at + 90)
        });
        format!("{name}/s: {}", steps.collect::<Vec<_>>().join(", "))
    }

    #[test]
    fn the_later_of_two_is_named_and_what_it_does_longer() {
        let found =
            finding(&Straggler, &[HOST, &device("gpu0", 0), &device("gpu1", 30)].join("\n"));
        assert!(found.title.starts_with("gpu1 of drawn is late"), "{}", found.title);
        assert_eq!(found.severity, Severity::Medium);
        assert_eq!(found.evidence[1].text, "It spends 22.5 µs more per step on compute");
    }

    #[test]
    fn among_many_it_must_stand_out() {
        let even: Vec<String> =
            (0..6).map(|it| device(&format!("gpu{it}"), it * 2)).chain([HOST.to_owned()]).collect();
        assert_eq!(verdict(&Straggler, &even.join("\n")), Verdict::Clear);
        let mut one = even;
        one[3] = device("gpu3", 40);
        let found = finding(&Straggler, &one.join("\n"));
        assert!(found.title.starts_with("gpu3 of drawn is late"), "{}", found.title);
    }

    #[test]
    fn a_single_device_has_nobody_to_wait_for() {
        let picture = [HOST, &device("gpu0", 0)].join("\n");
        assert_eq!(
            missing(&Straggler, &picture),
            "this profile shows no collectives on two or more devices or processes"
        );
    }

    /// Processes that compute on their CPUs: the one that comes late waits for nobody.
    #[test]
    fn a_late_process_is_found_without_a_device() {
        let us = |it: i64| it * 1_000_000;
        let mut out = TraceBuilder::new();
        for (rank, late) in [(0, 0), (1, 40)] {
            let host = out.new_host(&Identity {
                machine: Some("box".to_owned()),
                rank: Some(rank),
                ..Identity::default()
            });
            let process = out.track(Some(host), TrackKind::Process, "python");
            let main = out.track(Some(process), TrackKind::Thread, "python");
            let pool = out.track(Some(process), TrackKind::Thread, "tf_Compute");
            for step in 0..6 {
                let at = step * 100;
                let id = out.event(main, "train", Time(us(at)), Dur(us(100)));
                out.number(id, NumberKey::Step, step);
                out.event(pool, "MatMul:MatMul", Time(us(at)), Dur(us(40 + late)));
                let began = Time(us(at + 40 + late));
                out.event(pool, "sum:CollectiveReduceV2", began, Dur(us(50 - late)));
            }
        }
        let found = settled(&Straggler, &Tables::new(Arc::new(out.finish())));
        assert!(found.title.starts_with("box (rank 1) is late"), "{}", found.title);
        assert!(found.evidence[0].text.ends_with("of 2 processes"), "{:?}", found.evidence);
        // Of two that share the work, half of the wait goes: the work itself stays.
        let gain = found.gain.unwrap();
        assert!((gain.speedup - 1.25).abs() < 0.01 && gain.high < 1.9, "{gain:?}");
    }
}
