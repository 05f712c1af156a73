//! Checks that the declared truth of every scenario is what its written bytes imply.
//!
//! The bytes are decoded by a few lines of their own, and each step of each
//! device is cut at every event boundary; each piece is classified by looking
//! at all events. Slow and plain, where the generator is neither.

#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests are tests")]

use std::collections::BTreeMap;

use synth::{Category, FoundBy, Scenario, Shape, scenarios, write_big};

#[test]
fn events_imply_the_declared_breakdown() {
    for scenario in scenarios() {
        let truth = &scenario.truth;
        let mut by_device = Vec::new();
        let mut step_ms = Vec::new();
        for host in hosts(&scenario) {
            for device in host.devices() {
                let starts = host.step_starts(device, truth.found_by);
                let complete = truth.steps + truth.warmup_steps;
                assert_eq!(starts.len() as u64, complete + 1, "{}", scenario.name);
                let steady = &starts[truth.warmup_steps as usize..];
                let mut spent = BTreeMap::new();
                for step in steady.windows(2) {
                    host.sweep(device, step[0], step[1], &mut spent);
                }
                let n = truth.steps as f64;
                by_device
                    .push(spent.into_iter().map(|(it, ps)| (it, ps as f64 / 1e9 / n)).collect());
                step_ms = steady.windows(2).map(|it| (it[1] - it[0]) as f64 / 1e9).collect();
            }
        }
        assert_eq!(step_ms, truth.step_ms_each, "{}", scenario.name);
        assert_eq!(by_device.len() as u64, truth.devices, "{}", scenario.name);
        for (implied, declared) in by_device.iter().zip(&truth.breakdown_ms_by_device) {
            same(scenario.name, implied, declared);
        }
        let mut mean = BTreeMap::new();
        for (category, ms) in by_device.iter().flatten() {
            *mean.entry(*category).or_insert(0.0) += ms / by_device.len() as f64;
        }
        same(scenario.name, &mean, &truth.breakdown_ms);
    }
}

fn same(name: &str, implied: &BTreeMap<&str, f64>, declared: &BTreeMap<&str, f64>) {
    for category in Category::ALL.map(Category::name) {
        let implied = implied.get(category).copied().unwrap_or(0.0);
        let declared = declared[category];
        assert!(
            (implied - declared).abs() < 1e-9,
            "{name}: events imply {implied} ms of {category}, declared are {declared}"
        );
    }
}

#[test]
fn events_imply_the_declared_work() {
    for scenario in scenarios() {
        let mut kernels: BTreeMap<String, (u64, u64)> = BTreeMap::new();
        let mut copies: BTreeMap<&str, (u64, u64, u64)> = BTreeMap::new();
        let mut memsets = 0;
        for host in hosts(&scenario) {
            for event in host.devices().flat_map(Plane::work) {
                let dur_ns = event.dur_ps / 1000;
                if let Some(direction) = copy_direction(&event.name) {
                    let size = event.text("memcpy_details");
                    let size = size.split(' ').find_map(|it| it.strip_prefix("size:")).unwrap();
                    let sum = copies.entry(direction).or_default();
                    *sum = (sum.0 + 1, sum.1 + size.parse::<u64>().unwrap(), sum.2 + dur_ns);
                } else if event.name == "Memset" {
                    memsets += 1;
                } else if event.stats.get("hlo_category").is_none_or(|it| it != "infeed") {
                    let sum = kernels.entry(event.name.clone()).or_default();
                    *sum = (sum.0 + 1, sum.1 + dur_ns);
                }
            }
        }
        let truth = &scenario.truth;
        let declared = truth.kernels.iter().map(|it| (it.name.clone(), (it.count, it.total_ns)));
        assert_eq!(kernels, declared.collect(), "{}", scenario.name);
        let declared =
            truth.copies.iter().map(|it| (it.direction.name(), (it.count, it.bytes, it.total_ns)));
        assert_eq!(copies, declared.collect(), "{}", scenario.name);
        assert_eq!(memsets, truth.memsets, "{}", scenario.name);
    }
}

#[test]
fn events_of_a_line_nest() {
    for scenario in scenarios() {
        for plane in hosts(&scenario).iter().flat_map(|it| &it.planes) {
            for events in plane.lines.values() {
                let mut open: Vec<u64> = Vec::new();
                let mut events: Vec<&Event> = events.iter().collect();
                events.sort_by_key(|it| (it.start_ps, u64::MAX - it.dur_ps));
                for event in events {
                    while open.last().is_some_and(|end| *end <= event.start_ps) {
                        open.pop();
                    }
                    let fits = open.last().is_none_or(|end| event.end_ps() <= *end);
                    assert!(fits, "{}: {} sticks out", scenario.name, event.name);
                    open.push(event.end_ps());
                }
            }
        }
    }
}

/// Every work of a GPU with a host was launched by exactly one call before it.
#[test]
fn launches_precede_their_kernels() {
    for scenario in scenarios().iter().filter(|it| it.truth.found_by != FoundBy::Period) {
        for host in hosts(scenario) {
            let Some(cpu) = host.plane("/host:CPU") else {
                continue;
            };
            let mut launched = BTreeMap::new();
            for event in cpu.lines.values().flatten() {
                if let Some(id) = event.stats.get("correlation_id").map(String::as_str) {
                    assert!(launched.insert(id, event.start_ps).is_none(), "{}", scenario.name);
                }
            }
            for event in host.devices().flat_map(Plane::work) {
                let at_ps = launched[event.text("correlation_id")];
                assert!(at_ps < event.start_ps, "{}: {}", scenario.name, event.name);
            }
        }
    }
}

#[test]
fn big_profiles_have_the_events_and_the_truth_they_claim() {
    for (shape, breakdown) in [
        (Shape::Gpu, Some([("compute", 2.5), ("input", 7.0), ("python", 0.35), ("runtime", 0.15)])),
        (
            Shape::OneLine,
            Some([("compute", 2.5), ("input", 7.0), ("python", 0.35), ("runtime", 0.15)]),
        ),
        (Shape::TfOps, None),
    ] {
        let mut bytes = Vec::new();
        let written = write_big(&mut bytes, shape, 5000).unwrap();
        assert_eq!(written.bytes, bytes.len() as u64);
        let host = Host::decode(&bytes);
        let events = host.planes.iter().flat_map(|it| it.lines.values()).flatten();
        assert_eq!(written.events, events.count() as u64);
        assert!(written.events >= 5000);
        for device in host.devices() {
            let starts = host.step_starts(device, FoundBy::Markers);
            assert_eq!(written.steps, starts.len() as u64);
            let mut spent = BTreeMap::new();
            host.sweep(device, starts[1], starts[2], &mut spent);
            let spent = spent.into_iter().map(|(it, ps)| (it, ps as f64 / 1e9)).collect::<Vec<_>>();
            assert_eq!(Some(&spent[..]), breakdown.as_ref().map(|it| &it[..]));
        }
    }
}

// ---- classification, over everything at once ----

fn copy_direction(name: &str) -> Option<&'static str> {
    Some(match name {
        "MemcpyH2D" | "MemcpyHToD" => "h2d",
        "MemcpyD2H" | "MemcpyDToH" => "d2h",
        "MemcpyD2D" => "d2d",
        "MemcpyP2P" => "p2p",
        _ => return None,
    })
}

fn device_category(event: &Event) -> Category {
    if let Some(category) = event.stats.get("hlo_category") {
        return match category.as_str() {
            "infeed" => Category::Input,
            "all-reduce" => Category::Collective,
            _ => Category::Compute,
        };
    }
    match copy_direction(&event.name) {
        Some("h2d") => Category::TransferIn,
        Some("d2h") => Category::TransferOut,
        Some("p2p") => Category::Collective,
        _ if event.name.starts_with("nccl") => Category::Collective,
        _ => Category::Compute,
    }
}

fn host_category(event: &Event) -> Category {
    match event.name.as_str() {
        it if it.starts_with("IteratorGetNext") => Category::Input,
        "tf.function-graph_building" | "XlaCompile" => Category::Compile,
        it if it.starts_with("save/SaveV2") || it.starts_with("MergeV2") => Category::Output,
        _ if is_marker(event) => Category::Python,
        _ => Category::Runtime,
    }
}

fn is_marker(event: &Event) -> bool {
    event.stats.contains_key("step_num")
}

const DEVICE_ORDER: [Category; 5] = [
    Category::Compute,
    Category::Collective,
    Category::TransferIn,
    Category::TransferOut,
    Category::Input,
];
const HOST_ORDER: [Category; 4] =
    [Category::Input, Category::Compile, Category::Output, Category::Runtime];

struct Host {
    planes: Vec<Plane>,
}

struct Plane {
    name: String,
    /// By id and name, parts of one line joined.
    lines: BTreeMap<(i64, String), Vec<Event>>,
}

struct Event {
    name: String,
    start_ps: u64,
    dur_ps: u64,
    /// The event's own and those of its metadata, all as text.
    stats: BTreeMap<String, String>,
}

impl Event {
    fn end_ps(&self) -> u64 {
        self.start_ps + self.dur_ps
    }

    fn covers(&self, start_ps: u64, end_ps: u64) -> bool {
        self.start_ps <= start_ps && end_ps <= self.end_ps()
    }

    fn text(&self, key: &str) -> &str {
        &self.stats[key]
    }
}

impl Plane {
    /// What truly ran: no steps, modules or other lines derived from it.
    fn work(&self) -> impl Iterator<Item = &Event> {
        let ran = |name: &str| name.starts_with("Stream #") || name == "XLA Ops";
        self.lines.iter().filter(move |it| ran(&it.0.1)).flat_map(|it| it.1)
    }
}

impl Host {
    fn plane(&self, name: &str) -> Option<&Plane> {
        self.planes.iter().find(|it| it.name == name)
    }

    fn devices(&self) -> impl Iterator<Item = &Plane> {
        self.planes.iter().filter(|it| it.name.starts_with("/device:"))
    }

    fn python(&self) -> Vec<&Event> {
        let lines = self.plane("/host:CPU").into_iter().flat_map(|it| &it.lines);
        lines.filter(|it| it.0.1 == "python").flat_map(|it| it.1).collect()
    }

    fn step_starts(&self, device: &Plane, found_by: FoundBy) -> Vec<u64> {
        let is_call = |it: &Event| it.stats.get("is_func").is_some_and(|it| it == "1");
        let mut starts: Vec<u64> = match found_by {
            FoundBy::Markers if device.name.contains("TPU") => {
                device.lines[&(1, "Steps".to_owned())].iter().map(|it| it.start_ps).collect()
            }
            FoundBy::Markers => {
                self.python().iter().filter(|it| is_marker(it)).map(|it| it.start_ps).collect()
            }
            FoundBy::Calls => {
                assert!(!self.python().iter().any(|it| is_marker(it)));
                self.python().iter().filter(|it| is_call(it)).map(|it| it.start_ps).collect()
            }
            FoundBy::Period => {
                let first = &device.work().next().unwrap().name;
                device.work().filter(|it| it.name == *first).map(|it| it.start_ps).collect()
            }
        };
        starts.sort_unstable();
        starts
    }

    fn sweep(&self, device: &Plane, from: u64, to: u64, spent: &mut BTreeMap<&str, u64>) {
        let python = self.python();
        let near = |it: &&Event| it.start_ps < to && from < it.end_ps();
        let running: Vec<&Event> = device.work().filter(near).collect();
        let driving: Vec<&Event> = python.iter().copied().filter(near).collect();
        let mut cuts: Vec<u64> =
            running.iter().chain(&driving).flat_map(|it| [it.start_ps, it.end_ps()]).collect();
        cuts.extend([from, to]);
        cuts.retain(|it| (from..=to).contains(it));
        cuts.sort_unstable();
        cuts.dedup();
        for piece in cuts.windows(2) {
            let on_device: Vec<Category> = running
                .iter()
                .filter(|it| it.covers(piece[0], piece[1]))
                .map(|it| device_category(it))
                .collect();
            let on_host: Vec<Category> = driving
                .iter()
                .filter(|it| it.covers(piece[0], piece[1]))
                .map(|it| host_category(it))
                .collect();
            let nobody = if python.is_empty() { Category::Idle } else { Category::Python };
            let category = DEVICE_ORDER
                .into_iter()
                .find(|it| on_device.contains(it))
                .or_else(|| HOST_ORDER.into_iter().find(|it| on_host.contains(it)))
                .unwrap_or(nobody);
            *spent.entry(category.name()).or_default() += piece[1] - piece[0];
        }
    }
}

// ---- decoding ----

fn hosts(scenario: &Scenario) -> Vec<Host> {
    scenario.files.iter().map(|it| Host::decode(&it.1)).collect()
}

#[derive(Clone, Copy)]
enum Field<'a> {
    Number(u64),
    Data(&'a [u8]),
}

impl<'a> Field<'a> {
    fn number(self) -> u64 {
        let Field::Number(it) = self else { panic!("a number is wanted") };
        it
    }

    fn data(self) -> &'a [u8] {
        let Field::Data(it) = self else { panic!("data is wanted") };
        it
    }

    fn string(self) -> String {
        String::from_utf8(self.data().to_vec()).unwrap()
    }
}

fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let mut value = 0;
        for shift in (0..70).step_by(7) {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        value
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let tag = varint(&mut bytes);
        let value = match tag & 7 {
            0 => Field::Number(varint(&mut bytes)),
            wire_type => {
                let len = match wire_type {
                    1 => 8,
                    5 => 4,
                    _ => varint(&mut bytes) as usize,
                };
                let (data, rest) = bytes.split_at(len);
                bytes = rest;
                Field::Data(data)
            }
        };
        found.push((tag >> 3, value));
    }
    found
}

fn all<'a>(message: &[(u64, Field<'a>)], field: u64) -> Vec<Field<'a>> {
    message.iter().filter(|it| it.0 == field).map(|it| it.1).collect()
}

fn one<'a>(message: &[(u64, Field<'a>)], field: u64) -> Field<'a> {
    let found = all(message, field);
    assert_eq!(found.len(), 1, "field {field}");
    found[0]
}

impl Host {
    fn decode(bytes: &[u8]) -> Host {
        let planes = all(&fields(bytes), 1).into_iter().map(|it| Plane::decode(it.data()));
        Host { planes: planes.collect() }
    }
}

impl Plane {
    fn decode(bytes: &[u8]) -> Plane {
        let plane = fields(bytes);
        let map = |field| {
            all(&plane, field).into_iter().map(|it| {
                let entry = fields(it.data());
                let value = fields(one(&entry, 2).data());
                assert_eq!(one(&entry, 1).number(), one(&value, 1).number());
                (one(&entry, 1).number(), value)
            })
        };
        let names: BTreeMap<u64, String> =
            map(5).map(|(id, value)| (id, one(&value, 2).string())).collect();
        let kinds: BTreeMap<u64, (String, BTreeMap<String, String>)> = map(4)
            .map(|(id, value)| (id, (one(&value, 2).string(), stats(&value, 5, &names))))
            .collect();
        let mut lines: BTreeMap<(i64, String), Vec<Event>> = BTreeMap::new();
        for line in all(&plane, 3) {
            let line = fields(line.data());
            let key = (one(&line, 1).number().cast_signed(), one(&line, 2).string());
            let origin_ns = one(&line, 3).number();
            // Epoch times in picoseconds do not fit: count from the generator's start instead.
            let origin_ns = origin_ns % 1_000_000_000_000_000;
            for event in all(&line, 4) {
                let event = fields(event.data());
                let (name, constants) = &kinds[&one(&event, 1).number()];
                let mut own = constants.clone();
                own.extend(stats(&event, 4, &names));
                lines.entry(key.clone()).or_default().push(Event {
                    name: name.clone(),
                    start_ps: origin_ns * 1000 + one(&event, 2).number(),
                    dur_ps: one(&event, 3).number(),
                    stats: own,
                });
            }
        }
        Plane { name: one(&plane, 2).string(), lines }
    }
}

fn stats(
    message: &[(u64, Field<'_>)],
    field: u64,
    names: &BTreeMap<u64, String>,
) -> BTreeMap<String, String> {
    all(message, field)
        .into_iter()
        .map(|it| {
            let stat = fields(it.data());
            let (which, value) = stat.iter().find(|it| (2..=7).contains(&it.0)).unwrap();
            let value = match which {
                3 | 4 => value.number().to_string(),
                5 => value.string(),
                7 => names[&value.number()].clone(),
                _ => "a double".to_owned(),
            };
            (names[&one(&stat, 1).number()].clone(), value)
        })
        .collect()
}
