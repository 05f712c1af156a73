//! Profiles that are other bytes and the same run.
//!
//! | transformation | what it changes                                                           |
//! |----------------|---------------------------------------------------------------------------|
//! | `rewrite`      | nothing but the bytes                                                     |
//! | `shuffle`      | the order of planes, lines and events                                     |
//! | `rename`       | the host, the user's functions and marks, the numbers of metadata         |
//! | `shift`        | when the clock began                                                      |
//! | `idle`         | threads with no event during the steps: some go, others come              |
//! | `extra`        | stats and fields that nobody knows                                        |
//! | `all`          | all of the above                                                          |
//! | `cut`          | the capture ended earlier: at least the first half of the steps is left   |

use std::collections::{BTreeMap, BTreeSet};

use crate::space::{Data, Event, EventMetadata, Line, Plane, Space, Stat, StatMetadata, StatValue};

/// Small and the same on every machine: xorshift.
#[derive(Debug)]
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Random {
        // Seeds that differ by one bit give unlike numbers only after some mixing.
        let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
        (0..4).for_each(|_| _ = random.next());
        random
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, n: usize) -> usize {
        (self.next() % n.max(1) as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transformation {
    Rewrite,
    Shuffle,
    Rename,
    Shift,
    Idle,
    Extra,
    All,
    Cut,
}

impl Transformation {
    /// Those that differ from seed to seed.
    pub const ALL: [Transformation; 7] = [
        Transformation::Shuffle,
        Transformation::Rename,
        Transformation::Shift,
        Transformation::Idle,
        Transformation::Extra,
        Transformation::All,
        Transformation::Cut,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Transformation::Rewrite => "rewrite",
            Transformation::Shuffle => "shuffle",
            Transformation::Rename => "rename",
            Transformation::Shift => "shift",
            Transformation::Idle => "idle",
            Transformation::Extra => "extra",
            Transformation::All => "all",
            Transformation::Cut => "cut",
        }
    }
}

/// A run's files as messages, with what is known of its steps.
#[derive(Debug, Clone)]
pub struct Run {
    /// One for each host, with the name of its file.
    pub files: Vec<(String, Space)>,
    /// Starts of the steps that count and the end of the last, since the start of the trace;
    /// empty where several hosts would have to agree.
    pub steps: Vec<i64>,
}

/// The transformed run; `None` where there is nothing to change.
pub fn transform(run: &Run, how: Transformation, seed: u64) -> Option<Run> {
    let mut random = Random::new(seed);
    let mut new = run.clone();
    let changed = match how {
        Transformation::Rewrite => true,
        Transformation::Shuffle => new.shuffle(&mut random),
        Transformation::Rename => new.rename(&mut random),
        Transformation::Shift => new.shift(&mut random),
        Transformation::Idle => new.change_idle(&mut random),
        Transformation::Extra => new.add_unknown(&mut random),
        Transformation::Cut => new.cut(seed, &mut random),
        Transformation::All => {
            // Before the clock: it tells what is idle by the steps' times.
            new.change_idle(&mut random);
            new.shift(&mut random);
            new.rename(&mut random);
            new.add_unknown(&mut random);
            new.shuffle(&mut random)
        }
    };
    changed.then_some(new)
}

/// A line that begins later carries Unix time, which the reader takes off.
const UNIX_TIME_NS: i64 = 1 << 50;

/// What the reader takes off all timestamps of a file.
fn base_ns(space: &Space) -> i64 {
    let lines = space.planes.iter().flat_map(|it| &it.lines).filter(|it| !it.events.is_empty());
    lines.map(|it| it.timestamp_ns).min().filter(|it| *it > UNIX_TIME_NS).unwrap_or(0)
}

impl Run {
    fn spaces(&mut self) -> impl Iterator<Item = &mut Space> {
        self.files.iter_mut().map(|it| &mut it.1)
    }

    fn shuffle(&mut self, random: &mut Random) -> bool {
        for space in self.spaces() {
            random.shuffle(&mut space.planes);
            for plane in &mut space.planes {
                random.shuffle(&mut plane.lines);
                for line in &mut plane.lines {
                    shuffle_events(&mut line.events, random);
                }
            }
        }
        true
    }

    fn shift(&mut self, random: &mut Random) -> bool {
        let later_ns = 1 + random.below(10_000_000_000) as i64;
        for space in self.spaces() {
            let is_unix = base_ns(space) != 0;
            for plane in &mut space.planes {
                for line in &mut plane.lines {
                    line.timestamp_ns += later_ns;
                }
                // Unix time: everything happened later. Else the profiler was started earlier, and
                // what its lines count from with it.
                if plane.name == "Task Environment" {
                    let (start, stop) =
                        (plane.stat_id(b"profile_start_time"), plane.stat_id(b"profile_stop_time"));
                    for stat in &mut plane.stats {
                        let is = |it: Option<i64>| it == Some(stat.metadata_id);
                        if is(start) && !is_unix {
                            add_to(stat, -later_ns);
                        } else if (is(start) || is(stop)) && is_unix {
                            add_to(stat, later_ns);
                        }
                    }
                }
            }
        }
        true
    }

    /// Each of the threads that do nothing during the steps goes, or stays, and new ones come.
    fn change_idle(&mut self, random: &mut Random) -> bool {
        let (Some(&first), Some(&last), [(_, space)]) =
            (self.steps.first(), self.steps.last(), &mut self.files[..])
        else {
            return false;
        };
        let base_ns = base_ns(space);
        for plane in space.planes.iter_mut().filter(|it| it.is_host() && !it.lines.is_empty()) {
            // Lines of one id continue one another: they go together or not at all.
            let mut busy = BTreeSet::new();
            for line in &plane.lines {
                let start = |it: &Event| (line.timestamp_ns - base_ns) * 1000 + it.offset_ps();
                let during = |it: &Event| start(it) < last && start(it) + it.duration_ps >= first;
                if line.events.iter().any(during) {
                    busy.insert(line.id);
                }
            }
            let idle: BTreeSet<i64> =
                plane.lines.iter().map(|it| it.id).filter(|it| !busy.contains(it)).collect();
            let goes: BTreeSet<i64> = idle.into_iter().filter(|_| !random.one_in(3)).collect();
            plane.lines.retain(|it| !goes.contains(&it.id));
            for _ in 0..random.below(3) + 1 {
                add_idle_thread(plane, base_ns, first, random);
            }
        }
        true
    }

    /// Ends the capture behind at least half of the steps: first at the start of each of those
    /// that follow, then anywhere.
    fn cut(&mut self, seed: u64, random: &mut Random) -> bool {
        let n = self.steps.len().saturating_sub(1);
        let ([(_, space)], 2..) = (&mut self.files[..], n) else { return false };
        let (half, last) = (n.div_ceil(2), self.steps[n]);
        let end = match usize::try_from(seed).ok().map(|it| half + it).filter(|it| *it < n) {
            Some(step) => self.steps[step],
            None => self.steps[half] + random.below((last - self.steps[half]) as usize) as i64,
        };
        let base_ns = base_ns(space);
        for plane in &mut space.planes {
            for line in &mut plane.lines {
                let zero = (line.timestamp_ns - base_ns) * 1000;
                // What was open when the profiler stopped was never recorded, but for frames of
                // Python, which end there.
                line.events.retain_mut(|it| {
                    let left = end - zero - it.offset_ps();
                    let frame = plane.event_metadata.get(&it.metadata_id);
                    let is_frame = frame.is_some_and(|it| it.name.starts_with(b"$"));
                    if left > 0 && is_frame {
                        it.duration_ps = it.duration_ps.min(left);
                    }
                    left > 0 && it.duration_ps <= left
                });
            }
            if plane.name == "Task Environment" {
                // When it was stopped is no longer true.
                let stop = plane.stat_id(b"profile_stop_time");
                plane.stats.retain(|it| Some(it.metadata_id) != stop);
            }
        }
        true
    }

    fn add_unknown(&mut self, random: &mut Random) -> bool {
        for space in self.spaces() {
            space.later_bytes = Some(b"\x0a\x03odd".to_vec());
            for plane in &mut space.planes {
                plane.later_number = Some(random.next());
                let ids = add_stat_names(plane, random);
                for line in &mut plane.lines {
                    if random.one_in(2) {
                        line.later_bytes = Some(b"later".to_vec());
                    }
                    for event in &mut line.events {
                        if !random.one_in(3) {
                            continue;
                        }
                        let at = random.below(event.stats.len() + 1);
                        let stat = any_stat(&ids, random);
                        event.stats.insert(at, stat);
                        event.later_number = random.one_in(2).then(|| random.next());
                    }
                }
                let stat = any_stat(&ids, random);
                plane.stats.push(stat);
            }
        }
        true
    }

    fn rename(&mut self, random: &mut Random) -> bool {
        let mut words: BTreeMap<Vec<u8>, Vec<u8>> = BTreeMap::new();
        for space in self.spaces() {
            for plane in &space.planes {
                let names =
                    plane.event_metadata.values().flat_map(|it| [&it.name, &it.display_name]);
                for name in names.chain(plane.stat_metadata.values().map(|it| &it.name)) {
                    for word in functions_in(name) {
                        words.entry(word.to_vec()).or_insert_with(|| other_word(word, random));
                    }
                }
            }
        }
        let host = format!("host-{:x}", random.below(1 << 20));
        for (at, (file, space)) in self.files.iter_mut().enumerate() {
            *file = format!("{host}-{at}.xplane.pb");
            for name in &mut space.hostnames {
                *name = format!("{host}-{at}");
            }
            for plane in &mut space.planes {
                rename_marks(plane, random);
                let rename = |it: &mut Vec<u8>| replace_functions(it, &words);
                for it in plane.event_metadata.values_mut() {
                    rename(&mut it.name);
                    rename(&mut it.display_name);
                    rename(&mut it.metadata);
                }
                plane.stat_metadata.values_mut().for_each(|it| rename(&mut it.name));
                for stat in plane.all_stats() {
                    if let Some(StatValue::Text(it) | StatValue::Bytes(it)) = &mut stat.value {
                        rename(it);
                    }
                }
                renumber(plane, random);
            }
        }
        true
    }
}

/// Events of equal times keep their order: it tells which is around the other.
fn shuffle_events(events: &mut [Event], random: &mut Random) {
    let times = |it: &Event| (it.offset_ps(), it.duration_ps);
    let mut in_order: BTreeMap<(i64, i64), Vec<Event>> = BTreeMap::new();
    for event in events.iter().rev() {
        in_order.entry(times(event)).or_default().push(event.clone());
    }
    random.shuffle(events);
    for event in events {
        if let Some(next) = in_order.get_mut(&times(event)).and_then(Vec::pop) {
            *event = next;
        }
    }
}

fn add_to(stat: &mut Stat, ns: i64) {
    match &mut stat.value {
        Some(StatValue::Uint(it)) => *it = it.wrapping_add_signed(ns),
        Some(StatValue::Int(it)) => *it += ns,
        _ => (),
    }
}

/// A thread without events, or with a few of nobody's interest before the first step.
fn add_idle_thread(plane: &mut Plane, base_ns: i64, first_step_ps: i64, random: &mut Random) {
    let above = |ids: &mut dyn Iterator<Item = i64>| ids.max().unwrap_or(0).max(0) + 1;
    let id = above(&mut plane.lines.iter().map(|it| it.id));
    let name = format!("idle_thread/{:x}", random.next());
    let mut line = Line { id, name, timestamp_ns: base_ns, ..Line::default() };
    // A stretch of time that ends well before the step.
    let room = first_step_ps / 2;
    if room > 1000 && random.one_in(2) {
        let metadata_id = above(&mut plane.event_metadata.keys().copied());
        let name = format!("of_nobodys_interest_{id}").into_bytes();
        let named = EventMetadata { id: metadata_id, name, ..EventMetadata::default() };
        plane.event_metadata.insert(metadata_id, named);
        for nth in 0..4 {
            let data = Some(Data::OffsetPs(nth * room / 4));
            let duration_ps = room / 8;
            line.events.push(Event { metadata_id, data, duration_ps, ..Event::default() });
        }
    }
    let at = random.below(plane.lines.len() + 1);
    plane.lines.insert(at, line);
}

/// Names of stats that no reader knows; the last is a text to refer to.
fn add_stat_names(plane: &mut Plane, random: &mut Random) -> [i64; 4] {
    let free = plane.stat_metadata.keys().last().copied().unwrap_or(0).max(0) + 1;
    [0, 1, 2, 3].map(|nth| {
        let id = free + nth;
        let name = format!("later_stat_{:x}", random.below(1 << 30)).into_bytes();
        plane.stat_metadata.insert(id, StatMetadata { id, name, ..StatMetadata::default() });
        id
    })
}

fn any_stat(ids: &[i64; 4], random: &mut Random) -> Stat {
    let value = match random.below(6) {
        0 => StatValue::Double(random.below(1000) as f64 / 7.0),
        1 => StatValue::Uint(random.next()),
        2 => StatValue::Int(-(random.below(1000) as i64)),
        3 => StatValue::Text(b"a text".to_vec()),
        4 => StatValue::Bytes(vec![0xff; 5]),
        _ => StatValue::Ref(ids[3].unsigned_abs()),
    };
    Stat { metadata_id: ids[random.below(3)], value: Some(value) }
}

/// Metadata ids are arbitrary keys: gives all of them new ones.
fn renumber(plane: &mut Plane, random: &mut Random) {
    let events = new_ids(plane.event_metadata.keys(), random);
    let stats = new_ids(plane.stat_metadata.keys(), random);
    let of = |ids: &BTreeMap<i64, i64>, id: i64| ids.get(&id).copied().unwrap_or(id);
    let event_metadata = std::mem::take(&mut plane.event_metadata);
    plane.event_metadata = event_metadata
        .into_iter()
        .map(|(id, it)| {
            let id = of(&events, id);
            let child_id = it.child_id.iter().map(|it| of(&events, *it)).collect();
            (id, EventMetadata { id, child_id, ..it })
        })
        .collect();
    let stat_metadata = std::mem::take(&mut plane.stat_metadata);
    plane.stat_metadata = stat_metadata
        .into_iter()
        .map(|(id, it)| (of(&stats, id), StatMetadata { id: of(&stats, id), ..it }))
        .collect();
    for event in plane.lines.iter_mut().flat_map(|it| &mut it.events) {
        event.metadata_id = of(&events, event.metadata_id);
    }
    for stat in plane.all_stats() {
        stat.metadata_id = of(&stats, stat.metadata_id);
        if let Some(StatValue::Ref(it)) = &mut stat.value {
            *it = of(&stats, it.cast_signed()).cast_unsigned();
        }
    }
}

/// Ids in another order, some of them far apart. Ids that metadata lacks are not touched, and
/// must not be given to others.
fn new_ids<'a>(ids: impl Iterator<Item = &'a i64>, random: &mut Random) -> BTreeMap<i64, i64> {
    let ids: Vec<i64> = ids.copied().collect();
    let mut new = ids.clone();
    if random.one_in(3) {
        let above = ids.iter().copied().max().unwrap_or(0).max(0) + 1_000_000;
        new = (0..ids.len() as i64).map(|it| above + 97 * it).collect();
    }
    random.shuffle(&mut new);
    ids.into_iter().zip(new).collect()
}

/// What stands before the name of a function of the user's.
const BEFORE: [&[u8]; 7] =
    [b"__inference_", b"__forward_", b"__backward_", b"PjitFunction(", b"jit_", b"jit(", b"pmap_"];

/// Names that the framework itself gives to functions: they mean something.
const OF_FRAMEWORK: [&[u8]; 8] = [
    b"Dataset_",
    b"one_step_on_",
    b"multi_step_on_",
    b"train_function",
    b"test_function",
    b"predict_function",
    b"_",
    b"<",
];

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// `train_step` of `__inference_train_step_53` and of `PjitFunction(train_step)`.
fn functions_in(name: &[u8]) -> Vec<&[u8]> {
    let mut found = Vec::new();
    for before in [&b"__inference_"[..], b"PjitFunction("] {
        for at in 0..name.len() {
            let Some(rest) = name[at..].strip_prefix(before) else { continue };
            let end = rest.iter().position(|it| !is_word(*it)).unwrap_or(rest.len());
            let mut word = &rest[..end];
            if before.starts_with(b"__") {
                // Without the number behind it.
                let Some(last) = word.iter().rposition(|it| *it == b'_') else { continue };
                word = &word[..last];
            }
            let of_framework = OF_FRAMEWORK.iter().any(|it| word.starts_with(it));
            if !word.is_empty() && !of_framework {
                found.push(word);
            }
        }
    }
    found
}

/// As long as the other, since compiled programs hold names with their lengths.
fn other_word(word: &[u8], random: &mut Random) -> Vec<u8> {
    word.iter()
        .map(|&it| match it {
            b'_' => b'_',
            b'0'..=b'9' => it,
            _ => b'a' + random.below(26) as u8,
        })
        .collect()
}

fn replace_functions(text: &mut [u8], words: &BTreeMap<Vec<u8>, Vec<u8>>) {
    for at in 0..text.len() {
        let Some(before) = BEFORE.iter().find(|it| text[at..].starts_with(it)) else { continue };
        let at = at + before.len();
        // The longest: `step` must not be taken for the beginning of `step_2`.
        let fits = |it: &&(&Vec<u8>, &Vec<u8>)| {
            let rest = text[at..].strip_prefix(&it.0[..]);
            rest.is_some_and(|rest| match rest {
                [] => true,
                // A function's number.
                [b'_', b'0'..=b'9', ..] => before.starts_with(b"__"),
                [next, ..] => !is_word(*next),
            })
        };
        let all: Vec<(&Vec<u8>, &Vec<u8>)> = words.iter().collect();
        if let Some((_, new)) = all.iter().filter(fits).max_by_key(|it| it.0.len()) {
            text[at..at + new.len()].copy_from_slice(new);
        }
    }
}

/// What the user calls a step in `Trace("train", step_num=…)` is the user's own business.
fn rename_marks(plane: &mut Plane, random: &mut Random) {
    let Some(number) = plane.stat_id(b"step_num") else { return };
    let events = plane.lines.iter().flat_map(|it| &it.events);
    let marks: BTreeSet<i64> = events
        .filter(|it| it.stats.iter().any(|it| it.metadata_id == number))
        .map(|it| it.metadata_id)
        .collect();
    for mark in marks {
        if let Some(it) = plane.event_metadata.get_mut(&mark)
            && it.name.iter().all(|it| it.is_ascii_lowercase() || *it == b'_')
        {
            it.name = other_word(&it.name, random);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use crate::space::{Data, Event};

    use super::{Random, functions_in, replace_functions, shuffle_events};

    fn event(offset_ps: i64, metadata_id: i64) -> Event {
        let data = Some(Data::OffsetPs(offset_ps));
        Event { metadata_id, data, duration_ps: 5, ..Event::default() }
    }

    #[test]
    fn events_of_equal_times_keep_their_order() {
        let before: Vec<Event> = (0..40).map(|it| event(it % 4, it)).collect();
        let mut after = before.clone();
        shuffle_events(&mut after, &mut Random::new(1));
        assert_ne!(before, after);
        for time in 0..4 {
            let of = |events: &[Event]| -> Vec<i64> {
                let same = events.iter().filter(|it| it.offset_ps() == time);
                same.map(|it| it.metadata_id).collect()
            };
            assert_eq!(of(&before), of(&after));
        }
    }

    #[test]
    fn functions_are_found_and_replaced() {
        assert_eq!(functions_in(b"EagerLocalExecute: __inference_train_step_53"), [b"train_step"]);
        assert_eq!(functions_in(b"PjitFunction(update)"), [b"update"]);
        assert!(functions_in(b"__inference_one_step_on_data_7").is_empty());
        let words = BTreeMap::from([
            (b"step".to_vec(), b"abcd".to_vec()),
            (b"step_two".to_vec(), b"efgh_ijk".to_vec()),
        ]);
        let replaced = |text: &str| {
            let mut bytes = text.as_bytes().to_vec();
            replace_functions(&mut bytes, &words);
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(
            replaced("__inference_step_7:__forward_step_two_8"),
            "__inference_abcd_7:__forward_efgh_ijk_8"
        );
        assert_eq!(
            replaced("jit(step)/mul jit_step.3 jit_steps"),
            "jit(abcd)/mul jit_abcd.3 jit_steps"
        );
    }
}
