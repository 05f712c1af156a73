//! Memory is nearly full, or a step keeps far more of it than its weights need.

use std::collections::HashMap;

use analyses::Tables;
use analyses::memory::{self, Memory};
use analyses::memory_peak::MemoryPeak;
use analyses::program_memory::ProgramMemory;
use analyses::step::Step;
use trace::{Dur, EventId};

use crate::confidence;
use crate::dialect::{Edit, no_memory_events};
use crate::facts::{TWO_DIGITS, facts, percent};
use crate::samples::Samples;
use crate::{Change, Evidence, Finding, Fix, Rule, Severity, Verdict, WORTH_SAYING};

rule! {
    /// Memory is nearly full, or a step keeps far more intermediate results than weights.
    ///
    /// ## Evidence
    /// A runtime that stopped to defragment, an allocator at 90 % of its capacity or more, or a
    /// host of whose memory so much is in use, by tf.data's word. Without an accelerator also a
    /// step that at its peak keeps more than caches hold and eight times what stays between steps;
    /// for programs of XLA the compiler's own plan stands for the allocator. That is low where
    /// twice as much would still fit. Who holds most at the peak is named. Where the host was sampled,
    /// also a container at 90 % of its limit, a host with less than 5 % left, and time in which
    /// something waited for memory, as for pages that were swapped out.
    ///
    /// ## Fix
    /// Recompute activations in the backward pass instead of keeping them (`tf.recompute_grad`,
    /// `jax.checkpoint`; about a third more compute), take a smaller batch, compute in 16 bits.
    ///
    /// ## When it is wrong
    /// Time is not the price: a step that keeps much may be as fast as it gets. A pool that is
    /// full by design (a serving cache) is no problem. What stays may be little because the model
    /// is small. Allocations that fail and are tried again leave no event, so a full allocator is
    /// all that shows of them. Memory outside the allocators is not seen.
    pub struct MemoryPressure = "memory-pressure";
}

/// Why fixes that are about memory have no gain.
pub(crate) const MEMORY_NOT_TIME: &str = "it saves memory, not time";

/// Above this, fragmentation and the next larger batch fail; allocators start to retry.
/// Source: choice, a guess.
const NEARLY_FULL: f64 = 0.90;
/// Above this, nothing is left for a single large tensor.
/// Source: choice, a guess.
const FULL: f64 = 0.97;
/// The largest caches of common servers: what is more must go to memory and come back.
/// Source: choice, the last-level cache of large servers.
const BEYOND_CACHES_BYTES: i64 = 256 << 20;
/// Weights, gradients and an optimizer's state are up to four times the weights, and activations
/// of a balanced model about as much: eight times is out of balance.
/// Source: physical, four and about as much again.
const OUT_OF_BALANCE: i64 = 8;

impl Rule for MemoryPressure {
    fn check(&self, tables: &Tables) -> Verdict {
        let rows = tables.get::<Memory>();
        let stops = memory::defragmentations(tables.trace());
        if !stops.is_empty() {
            return defragmented(tables, stops);
        }
        let share = |it: &Memory| it.peak_share.unwrap_or(0.0);
        let fullest = (0..rows.len()).max_by(|&a, &b| share(&rows[a]).total_cmp(&share(&rows[b])));
        if let Some(at) = fullest.filter(|&it| share(&rows[it]) >= NEARLY_FULL) {
            return full(tables, &rows[at], at, share(&rows[at]));
        }
        // tf.data counts as used what the kernel would give back: samples know better.
        let sampled = of_samples(tables);
        let ram = memory::host_ram(tables.trace()).filter(|_| sampled.is_none());
        if let Some((used, all)) = ram.filter(|it| it.0 as f64 >= it.1 as f64 * NEARLY_FULL) {
            return host_full(tables, used, all);
        }
        if let Some(found @ Verdict::Found(_)) = sampled {
            return found;
        }
        // With an accelerator the host's memory holds no activations.
        let on_host = facts(tables).is_some_and(|it| !it.on_device);
        let mut hosts = rows.iter().enumerate().filter(|it| on_host && it.1.memory == "host");
        if let Some(found) = hosts.find_map(|(at, it)| out_of_balance(tables, it, at)) {
            return found;
        }
        let programs = tables.get::<ProgramMemory>();
        if !rows.is_empty() {
            Verdict::Clear
        } else if on_host && programs.iter().any(|it| it.ran) {
            programs_out_of_balance(&programs)
        } else {
            sampled.unwrap_or_else(|| Verdict::Unknown(no_memory_events(tables)))
        }
    }
}

/// Less swapped out than this is not mentioned.
/// Source: choice, a guess.
const WORTH_A_WORD_BYTES: f64 = 1e6;
/// Of the machine's memory, caches that can be dropped counted as free: below this the kernel frees
/// pages while programs wait.
/// Source: choice, a guess.
const HARDLY_ANY_LEFT: f64 = 0.05;

/// What samples of the host say; `None` where there are none.
fn of_samples(tables: &Tables) -> Option<Verdict> {
    let samples = Samples::of(tables)?;
    let available = samples.mean("memory/available")?;
    let step = facts(tables)?.step;
    let waited = samples.pressure("memory").unwrap_or(0.0);
    let swapped = samples.mean("memory/swap").unwrap_or(0.0);
    let used = samples.mean("memory/container").zip(samples.mean("memory/limit"));
    let (share, title) = match (used, samples.fact("memory_bytes")) {
        (Some((used, limit)), _) if limit > 0.0 && used / limit >= NEARLY_FULL => {
            let (share, used, limit) = (used / limit, size(used as i64), size(limit as i64));
            (
                share,
                format!("The container's memory is {} full ({used} of {limit})", percent(share)),
            )
        }
        (_, Some(all)) if all > 0.0 && available / all <= HARDLY_ANY_LEFT => {
            let (left, of) = (size(available as i64), size(all as i64));
            (1.0 - available / all, format!("The host has {left} of {of} of memory left"))
        }
        _ if waited >= WORTH_SAYING => {
            (0.0, format!("Waiting for memory takes {} of the time", percent(waited)))
        }
        _ => return Some(Verdict::Clear),
    };
    let mut text = format!("Something waited for memory {} of the time", percent(waited));
    if swapped >= WORTH_A_WORD_BYTES {
        text += &format!("; {} of the processes are swapped out", size(swapped as i64));
    }
    if let Some(faults) = samples.mean("memory/major_faults").filter(|&it| it >= 1.0) {
        text += &format!("; {faults:.0} pages per second are read back from storage");
    }
    let cost = Dur((step.0 as f64 * waited) as i64);
    let full = if share >= FULL { Severity::High } else { Severity::Medium };
    let severity = if share > 0.0 { full } else { Severity::of(cost, step) };
    let counters = [
        "memory/available",
        "memory/container",
        "memory/limit",
        "memory/process",
        "memory/swap",
        "memory/major_faults",
        "pressure/memory",
        "pressure/own/memory",
    ];
    let finding = Finding::new(title, cost, step)
        .severity(severity)
        .confidence(confidence::LIKELY)
        .evidence(samples.evidence(text, &counters));
    let smaller = "Use a smaller batch, shuffle buffer or cache, or fewer workers";
    Some(finding.fix(Fix::new(Change::LessMemory, smaller).untold(MEMORY_NOT_TIME)).found())
}

/// A runtime that found no block large enough and stopped to make one.
fn defragmented(tables: &Tables, stops: Vec<EventId>) -> Verdict {
    let trace = tables.trace();
    let all: Dur = stops.iter().map(|it| trace.events.dur[it.row()]).sum();
    let rows = tables.get::<Memory>();
    let fullest = rows.iter().filter(|it| it.memory == "device").max_by_key(|it| it.peak_bytes);
    let holders = fullest.map(|it| Holders::of(tables, it));
    let title = format!(
        "Device memory was too full or fragmented: compacting it took {all}{}",
        holders.as_ref().map(Holders::most).unwrap_or_default()
    );
    let (cost, step) = in_steps(tables, &stops);
    let times = if stops.len() == 1 { "once".to_owned() } else { format!("{} times", stops.len()) };
    let mut finding = Finding::new(title, cost, step)
        .evidence(Evidence::text(format!("The runtime compacted memory {times}")).events(stops));
    if let Some(holders) = holders {
        finding = finding.evidence(holders.evidence());
    }
    with_fixes(finding).found()
}

/// Time of events in a mean step that counts, and that step's time.
fn in_steps(tables: &Tables, events: &[EventId]) -> (Dur, Dur) {
    let trace = tables.trace();
    let steps = tables.get::<Step>();
    let counted: Vec<&Step> = steps.iter().filter(|it| it.counts()).collect();
    let inside = |it: &&EventId| {
        let start = trace.events.start[it.row()].0;
        counted.iter().any(|it| it.span().0 <= start && start < it.span().1)
    };
    let time: Dur = events.iter().filter(inside).map(|it| trace.events.dur[it.row()]).sum();
    let all = counted.iter().fold(0_i64, |sum, it| sum.saturating_add(it.dur_ps));
    let n_steps = counted.len().max(1) as i64;
    (Dur(time.0 / n_steps), Dur(all / n_steps))
}

/// An allocator at its limit.
fn full(tables: &Tables, row: &Memory, at: usize, share: f64) -> Verdict {
    let holders = Holders::of(tables, row);
    let title = format!(
        "Memory of {} is {} full at its peak ({} of {}){}",
        row.allocator,
        percent(share),
        size(row.peak_bytes),
        size(row.capacity_bytes.unwrap_or(0)),
        holders.most()
    );
    let severity = if share >= FULL { Severity::High } else { Severity::Medium };
    let text = format!("The peak is {}", when(row));
    let finding = Finding::new(title, Dur(0), Dur(1))
        .severity(severity)
        .confidence(confidence::STRONG)
        .evidence(Evidence::text(text).rows("memory", vec![at]))
        .evidence(holders.evidence());
    with_fixes(finding).found()
}

/// A host without memory to spare.
fn host_full(tables: &Tables, used: i64, all: i64) -> Verdict {
    let share = used as f64 / all.max(1) as f64;
    let title =
        format!("The host's memory is {} full ({} of {})", percent(share), size(used), size(all));
    let rows = tables.get::<Memory>();
    let mut finding = Finding::new(title, Dur(0), Dur(1))
        .severity(if share >= FULL { Severity::High } else { Severity::Medium })
        .confidence(confidence::RATHER)
        .evidence(Evidence::text("As tf.data reports it, for all processes of the host"));
    let largest = rows.iter().filter(|it| it.memory == "host").max_by_key(|it| it.peak_bytes);
    if let Some(row) = largest {
        finding = finding.evidence(Holders::of(tables, row).evidence());
    }
    let less = |text: &str| Fix::new(Change::LessMemory, text).untold(MEMORY_NOT_TIME);
    finding
        .fix(less("Let the input pipeline buffer less").edit(Edit::LessBuffering))
        .fix(less("Use a smaller batch, shuffle buffer or cache"))
        .found()
}

/// A step on the host that keeps far more than stays.
fn out_of_balance(tables: &Tables, row: &Memory, at: usize) -> Option<Verdict> {
    let stays = row.floor_bytes?;
    let kept = row.peak_bytes.saturating_sub(stays);
    if !is_out_of_balance(kept, stays) {
        return None;
    }
    let holders = Holders::of(tables, row);
    let title = format!(
        "Intermediate results peak at {} in each step; {} stays allocated between steps{}",
        size(kept),
        size(stays),
        holders.most()
    );
    let of = row.capacity_bytes.map(|it| format!(" of {}", size(it))).unwrap_or_default();
    let text = format!(
        "The peak, {}{of}, is {}; each step allocates {}",
        size(row.peak_bytes),
        when(row),
        size(row.allocated_bytes_per_step.unwrap_or(0)),
    );
    // Twice the batch, or twice the image, does not fit.
    let fits_twice = row.capacity_bytes.is_none_or(|it| row.peak_bytes.saturating_add(kept) < it);
    let finding = Finding::new(title, Dur(0), Dur(1))
        .severity(if fits_twice { Severity::Low } else { Severity::Medium })
        .confidence(confidence::RATHER)
        .evidence(Evidence::text(text).rows("memory", vec![at]))
        .evidence(holders.evidence());
    Some(with_fixes(finding).found())
}

fn is_out_of_balance(kept: i64, stays: i64) -> bool {
    kept >= BEYOND_CACHES_BYTES && kept / OUT_OF_BALANCE >= stays
}

/// The same question, of what the compiler planned.
fn programs_out_of_balance(rows: &[ProgramMemory]) -> Verdict {
    let ran = rows.iter().enumerate().filter(|it| it.1.ran);
    let Some((at, row)) = ran.max_by_key(|it| it.1.temp_bytes) else { return Verdict::Clear };
    if !is_out_of_balance(row.temp_bytes, row.argument_bytes) {
        return Verdict::Clear;
    }
    let title = format!(
        "Program {} holds {} of intermediate results for {} of arguments{}",
        row.program,
        size(row.temp_bytes),
        size(row.argument_bytes),
        row.largest_temp
            .as_ref()
            .map(|it| format!("; the largest comes from {it}"))
            .unwrap_or_default()
    );
    let text = "This is the compiler's plan; the profile does not show the host's memory";
    let finding = Finding::new(title, Dur(0), Dur(1))
        .severity(Severity::Low)
        .confidence(confidence::EVEN)
        .evidence(Evidence::text(text).rows("program_memory", vec![at]));
    with_fixes(finding).found()
}

fn when(row: &Memory) -> String {
    match row.peak_step {
        Some(step) => format!("at {}, in step {step}", Dur(row.peak_ps)),
        None => format!("at {}, outside the steps", Dur(row.peak_ps)),
    }
}

fn with_fixes(finding: Finding) -> Finding {
    let recompute = "Recompute activations in the backward pass instead of keeping them; this costs \
                     about a third more compute";
    let smaller = "Use a smaller batch: activations shrink with it, weights do not";
    let half = "Compute in 16 bits if the hardware supports it: half the bytes";
    let less = |change, text: &str| Fix::new(change, text).untold(MEMORY_NOT_TIME);
    finding
        .fix(less(Change::LessMemory, recompute).edit(Edit::Recompute))
        .fix(less(Change::LessMemory, smaller))
        .fix(less(Change::HalfPrecision, half).edit(Edit::HalfPrecision))
}

/// Who holds an allocator's memory at the peak, by scope or, without scopes, by kind of op.
struct Holders {
    /// The largest first.
    groups: Vec<Holder>,
    peak_bytes: i64,
    event: Option<EventId>,
    largest: Option<String>,
}

struct Holder {
    name: String,
    /// A person can look for it in the code.
    is_code: bool,
    bytes: i64,
    /// Of `memory_peak`.
    rows: Vec<usize>,
}

/// Less than one part in so many of the peak hardly counts.
/// Source: choice, a hundredth.
const HARDLY_COUNTS: i64 = 100;
/// So many holders make up a sentence.
/// Source: choice, as many as a sentence takes.
const SAID: usize = 3;

impl Holders {
    fn of(tables: &Tables, row: &Memory) -> Holders {
        let rows = tables.get::<MemoryPeak>();
        let mut groups: Vec<Holder> = Vec::new();
        let mut place: HashMap<&str, usize> = HashMap::new();
        let (mut event, mut largest) = (None, None);
        for (at, it) in rows.iter().enumerate() {
            if it.host != row.host || it.allocator != row.allocator {
                continue;
            }
            let name = match (&it.scope, &it.op, it.held_by) {
                (Some(scope), _, _) => scope,
                (None, Some(op), _) => kind_of(op),
                (None, None, "before") => "memory from before the capture",
                (None, None, "reserved") => "memory reserved for programs",
                _ => "memory of unknown holders",
            };
            if largest.is_none() && it.op.is_some() {
                let shape = it.shape.as_deref().map(|it| format!(" {it}")).unwrap_or_default();
                largest = it.op.as_ref().map(|op| format!("{op}{shape}, {}", size(it.bytes)));
                event = it.event.and_then(|it| u32::try_from(it).ok()).map(EventId);
            }
            let of = *place.entry(name).or_insert(groups.len());
            if of == groups.len() {
                let (name, is_code) = (name.to_owned(), it.op.is_some());
                groups.push(Holder { name, is_code, bytes: 0, rows: Vec::new() });
            }
            groups[of].bytes = groups[of].bytes.saturating_add(it.bytes);
            groups[of].rows.push(at);
        }
        groups.sort_by(|a, b| b.bytes.cmp(&a.bytes).then_with(|| a.name.cmp(&b.name)));
        Holders { groups, peak_bytes: row.peak_bytes, event, largest }
    }

    /// For the end of a title: what stands in the code comes first, unless it hardly counts.
    fn most(&self) -> String {
        let counts = |it: &&Holder| it.is_code && it.bytes >= self.peak_bytes / HARDLY_COUNTS;
        let (first, named) = (self.groups.first(), self.groups.iter().find(counts));
        match (named, first) {
            (Some(it), Some(first)) if it.bytes < first.bytes => {
                format!("; after {}, {} uses most ({})", first.name, it.name, size(it.bytes))
            }
            (Some(it), _) | (None, Some(it)) => {
                format!("; {} uses most ({})", it.name, size(it.bytes))
            }
            (None, None) => String::new(),
        }
    }

    fn evidence(&self) -> Evidence {
        let share = |bytes: i64| percent(bytes as f64 / self.peak_bytes.max(1) as f64);
        let first = || self.groups.iter().take(SAID);
        let said: Vec<String> =
            first().map(|it| format!("{} {}", it.name, share(it.bytes))).collect();
        let largest = self.largest.as_ref().map(|it| format!("; the largest op is {it}"));
        Evidence::text(format!("At the peak: {}{}", said.join(", "), largest.unwrap_or_default()))
            .rows("memory_peak", first().flat_map(|it| it.rows.iter().copied()).collect())
            .events(self.event.into_iter().collect())
    }
}

/// `Tanh_7` is a `Tanh`.
fn kind_of(op: &str) -> &str {
    match op.rsplit_once('_') {
        Some((kind, number)) if number.bytes().all(|it| it.is_ascii_digit()) => kind,
        _ => op,
    }
}

/// Bytes of a kilobyte.
/// Source: document, the International System of Units.
const NEXT_UNIT: u64 = 1000;
/// From here on a number rounds to the next unit.
/// Source: physical, 999.5 is written as 1000.
const ROUNDS_UP: f64 = 999.5;

/// Bytes, as a person says them.
pub(crate) fn size(bytes: i64) -> String {
    const UNITS: [&str; 4] = ["kB", "MB", "GB", "TB"];
    if bytes.unsigned_abs() < NEXT_UNIT {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1000.0;
    let mut unit = 0;
    while value.abs() >= ROUNDS_UP && unit + 1 < UNITS.len() {
        value /= 1000.0;
        unit += 1;
    }
    let digits = usize::from(value.abs() < TWO_DIGITS);
    format!("{value:.digits$} {}", UNITS[unit])
}

#[cfg(test)]
pub(crate) mod tests {
    use super::{MemoryPressure, size};
    use crate::testing::{Beside, finding, missing, verdict};
    use crate::{Severity, Verdict};

    const MB: i64 = 1_000_000;

    /// Drawn moves: µs, taken or (negative) given back, level afterwards, address, op.
    pub(crate) fn moves(
        allocator: &str,
        capacity: i64,
        moves: &[(i64, i64, i64, i64, &str)],
    ) -> String {
        let mut picture = String::new();
        for (at, bytes, level, address, op) in moves {
            let name = if *bytes > 0 { "MemoryAllocation" } else { "MemoryDeallocation" };
            picture += &format!(
                "host/pool: {name}{{allocator_name={allocator};bytes_allocated={level};\
                 bytes_available={};allocation_bytes={};addr={address};tf_op={op}}} {at}..{at}\n",
                capacity - level,
                bytes.abs(),
            );
        }
        picture
    }

    /// Steps of 100 ms in which two activations are kept for the backward pass.
    fn steps(allocator: &str, stays: i64, kept: i64, capacity: i64) -> String {
        let mut steps = Vec::new();
        let mut all = Vec::new();
        for step in 0..5 {
            let at = step * 100_000;
            steps.push(format!("train#{step} {at}..{}", at + 100_000));
            all.push((at + 10, kept, stays + kept, 1, "model/conv/Relu"));
            all.push((at + 20, kept / 2, stays + kept + kept / 2, 2, "model/dense/Relu"));
            all.push((at + 60, -kept / 2, stays + kept, 2, ""));
            all.push((at + 70, -kept, stays, 1, ""));
        }
        format!("host/python: {}\n{}", steps.join(", "), moves(allocator, capacity, &all))
    }

    #[test]
    fn a_device_that_is_nearly_full_is_under_pressure() {
        let found =
            finding(&MemoryPressure, &steps("GPU_0_bfc", 6000 * MB, 6000 * MB, 16_000 * MB));
        assert_eq!(
            found.title,
            "Memory of GPU_0_bfc is 94% full at its peak (15 GB of 16 GB); model/conv uses most (6.0 GB)"
        );
        assert_eq!((found.severity, found.cost.0), (Severity::Medium, 0));
        assert_eq!(
            found.evidence[1].text,
            "At the peak: memory from before the capture 40%, model/conv 40%, model/dense 20%; the \
             largest op is model/conv/Relu, 6.0 GB"
        );
        let found =
            finding(&MemoryPressure, &steps("GPU_0_bfc", 7000 * MB, 6000 * MB, 16_000 * MB));
        assert_eq!(found.severity, Severity::High);
        let after = "after memory from before the capture, model/conv uses most (6.0 GB)";
        assert!(found.title.ends_with(after), "{}", found.title);
    }

    #[test]
    fn a_host_that_keeps_far_more_than_stays_is_out_of_balance() {
        let found = finding(&MemoryPressure, &steps("mklcpu", 10 * MB, 600 * MB, 25_000 * MB));
        assert_eq!(
            found.title,
            "Intermediate results peak at 900 MB in each step; 10 MB stays allocated between \
             steps; model/conv uses most (600 MB)"
        );
        assert_eq!((found.severity, found.cost.0), (Severity::Low, 0), "there is room");
        let found = finding(&MemoryPressure, &steps("mklcpu", 10 * MB, 600 * MB, 1500 * MB));
        assert_eq!(found.severity, Severity::Medium, "twice as much does not fit");
    }

    #[test]
    fn room_to_spare_is_clear() {
        for picture in [
            steps("GPU_0_bfc", 10 * MB, 6000 * MB, 16_000 * MB),
            // As much stays as is kept for the backward pass.
            steps("mklcpu", 600 * MB, 600 * MB, 25_000 * MB),
            // Caches hold it.
            steps("mklcpu", 10 * MB, 100 * MB, 25_000 * MB),
        ] {
            assert_eq!(verdict(&MemoryPressure, &picture), Verdict::Clear, "{picture}");
        }
    }

    #[test]
    fn a_runtime_that_stops_to_defragment_has_no_room() {
        let picture = "host/python: train#1 0..100, train#2 100..200, train#3 200..300
            host/execute: TfrtTpuClient::DefragmentMemory 110..170";
        let found = finding(&MemoryPressure, picture);
        assert_eq!((found.cost.0, found.severity), (20_000_000, Severity::Medium));
        assert_eq!(found.evidence[0].text, "The runtime compacted memory once");
    }

    #[test]
    fn a_full_host_is_under_pressure() {
        let picture = "host/python: train#1 0..100, Iterator::Root{ram_usage_megabytes=24000 out of \
                       25000 (96.00%)} 0..10, train#2 100..200";
        let found = finding(&MemoryPressure, picture);
        assert_eq!(found.title, "The host's memory is 96% full (25 GB of 26 GB)");
    }

    fn host(available: f64) -> Beside {
        Beside::cpu().fact("memory_bytes", 32e9).counter("memory/available", &[available; 8])
    }

    #[test]
    fn samples_tell_of_a_full_container_host_and_of_waiting() {
        let found = host(20e9)
            .counter("memory/container", &[3.9e9; 8])
            .counter("memory/limit", &[4e9; 8])
            .finding(&MemoryPressure);
        assert_eq!(found.title, "The container's memory is 98% full (3.9 GB of 4.0 GB)");
        assert_eq!((found.severity, found.cost.0), (Severity::High, 0));
        let found = host(1e9).finding(&MemoryPressure);
        assert_eq!(found.title, "The host has 1.0 GB of 32 GB of memory left");
        let found = host(3e9)
            .counter("pressure/memory", &[0.2; 8])
            .counter("memory/swap", &[2e9; 8])
            .counter("memory/major_faults", &[500.0; 8])
            .finding(&MemoryPressure);
        assert_eq!(found.title, "Waiting for memory takes 20% of the time");
        assert_eq!(
            found.evidence[0].text,
            "Something waited for memory 20% of the time; 2.0 GB of the processes are swapped out; \
             500 pages per second are read back from storage"
        );
        assert_eq!(
            (found.severity, found.cost.to_string()),
            (Severity::Medium, "200 µs".to_owned())
        );
    }

    #[test]
    fn samples_of_a_host_with_room_are_clear() {
        for beside in [
            host(20e9),
            host(20e9).counter("memory/container", &[2e9; 8]).counter("memory/limit", &[4e9; 8]),
            // Swapped out long ago, and not missed.
            host(3e9).counter("memory/swap", &[2e9; 8]).counter("pressure/memory", &[0.001; 8]),
        ] {
            assert_eq!(beside.verdict(&MemoryPressure), Verdict::Clear);
        }
    }

    #[test]
    fn without_allocators_it_cannot_know() {
        let why = missing(&MemoryPressure, "host/python: train#1 0..100, train#2 100..200");
        assert!(why.starts_with("this profile has no memory events"), "{why}");
    }

    #[test]
    fn sizes_are_said_in_two_digits() {
        let said = [0, 999, 1000, 999_999, 33_554_432, 9_940_000_000].map(size);
        assert_eq!(said, ["0 B", "999 B", "1.0 kB", "1.0 MB", "34 MB", "9.9 GB"]);
    }
}
