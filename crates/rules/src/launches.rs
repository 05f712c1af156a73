//! How a device was kept busy in a few steps: its kernels, the gaps between them, and who waited.

use analyses::Tables;
use analyses::host_call::SOME_LINES_PS;
use analyses::replay::rows_in;
use analyses::span::{Span, covered, subtract, total, union};
use analyses::step::{HostSteps, Step, median};
use analyses::step_time::{HostTimes, busy_devices, host_compute, streams_of};
use trace::{Dur, EventId, OpKind, TrackId, TrackKind};

/// As many steps are looked at: more say no more.
/// Source: choice, a bound on the work.
const MOST_STEPS: usize = 20;
/// As many waits are shown.
/// Source: choice, some screens.
const MOST_WAITS: usize = 100;
/// Two clocks: an end this little after another is not after it.
/// Source: choice, a guess.
const CLOCKS: i64 = 1_000_000;

/// What is said of the mean of some neighbouring steps, of the host with most kernels.
#[derive(Debug, Default)]
pub struct Launches {
    pub n_steps: usize,
    /// Kernels a step, on the device that has most.
    pub kernels: usize,
    pub typical_kernel: Dur,
    /// Waits for the device a step, that saw work finish.
    pub waits: f64,
    /// What they are called: the most frequent.
    pub wait_name: Option<String>,
    pub wait_events: Vec<EventId>,
    /// A step's time in which the device was idle after a wait until the next work came, and
    /// the host was in the framework, or in Python in the middle of the step.
    pub after_waits: Dur,
    /// As before, with all of Python's time: what launching ahead would hide.
    pub hideable: Dur,
    /// A step's time between two kernels, no wait before it, with the host in the framework.
    pub between_kernels: Dur,
    /// The same with the Python that prepares the next call.
    pub dispatching: Dur,
}

/// `None` where no steps count.
pub fn launches(tables: &Tables) -> Option<Launches> {
    let trace = tables.trace();
    let steps = tables.model::<HostSteps>();
    let has_waits = trace.tracks.iter().any(|it| it.kinds.contains(OpKind::Sync));
    let times = tables.model::<HostTimes>();
    let mut most: Option<Launches> = None;
    for host in trace.tracks_of(TrackKind::Host) {
        let Some(time) = times.of(host) else { continue };
        let steps: Vec<&Step> = steps.counted(trace.track_name(host)).take(MOST_STEPS).collect();
        let (Some(first), Some(last)) = (steps.first(), steps.last()) else { continue };
        let window = (first.start_ps, last.span().1);
        let mut found = Launches { n_steps: steps.len(), ..Launches::default() };
        let busy = found.look_at_device(tables, host, window, has_waits);
        let waits = found.look_at_waits(tables, host, time.driver, &time.runtime, window, &busy);
        let starts: Vec<i64> = steps.iter().map(|it| it.start_ps).collect();
        found.look_at_gaps(window, &busy, &waits, &starts, &time.runtime, &time.python);
        if most.as_ref().is_none_or(|it| it.kernels < found.kernels) {
            most = Some(found);
        }
    }
    most
}

impl Launches {
    /// When the busiest device did anything; without a device, when ops ran on the host.
    fn look_at_device(
        &mut self,
        tables: &Tables,
        host: TrackId,
        window: Span,
        has_waits: bool,
    ) -> Vec<Span> {
        let (trace, events) = (tables.trace(), &tables.trace().events);
        let mut best: Vec<Span> = Vec::new();
        let devices = busy_devices(trace, host);
        for &device in &devices {
            let (mut busy, mut durs) = (Vec::new(), Vec::new());
            for stream in streams_of(trace, device) {
                for row in rows_in(trace, stream, window) {
                    let span = (events.start[row].0, events.end(EventId(row as u32)).0);
                    if events.kind[row] == OpKind::Kernel {
                        durs.push(span.1 - span.0);
                    }
                    busy.push(span);
                }
            }
            let (kernels, busy) = (durs.len() / self.n_steps.max(1), union(busy));
            // Of devices with equally many, the one that works longest: not the last in the file.
            if (kernels, total(&busy)) > (self.kernels, total(&best)) {
                self.kernels = kernels;
                self.typical_kernel = Dur(median(&mut durs).unwrap_or(0));
                best = busy;
            }
        }
        // Ops of a host are only asked for where something waits for them.
        match devices.is_empty() && has_waits {
            true => host_compute(tables, host),
            false => best,
        }
    }

    /// The waits that saw work finish, of any thread while the driving one was in the framework.
    fn look_at_waits(
        &mut self,
        tables: &Tables,
        host: TrackId,
        driver: Option<TrackId>,
        runtime: &[Span],
        window: Span,
        busy: &[Span],
    ) -> Vec<Span> {
        let (trace, events) = (tables.trace(), &tables.trace().events);
        let mut waits: Vec<(Span, u32)> = Vec::new();
        for track in trace.tracks_below(host, TrackKind::Thread) {
            for row in rows_in(trace, track, window) {
                if events.kind[row] != OpKind::Sync {
                    continue;
                }
                let span = (events.start[row].0, events.end(EventId(row as u32)).0);
                let holds = driver == Some(track) || covered(span, runtime) * 2 > span.1 - span.0;
                // The device worked when it began, and had nothing left when it was over.
                let before = busy.partition_point(|it| it.0 < span.1.saturating_sub(CLOCKS));
                let last = before.checked_sub(1).and_then(|it| busy.get(it));
                let saw =
                    last.is_some_and(|it| it.1 > span.0 && it.1 <= span.1.saturating_add(CLOCKS));
                if holds && saw {
                    waits.push((span, row as u32));
                }
            }
        }
        waits.sort_unstable();
        self.waits = waits.len() as f64 / self.n_steps.max(1) as f64;
        self.wait_events = waits.iter().take(MOST_WAITS).map(|it| EventId(it.1)).collect();
        self.wait_name = waits.first().map(|it| trace.name(EventId(it.1)).to_owned());
        union(waits.into_iter().map(|it| it.0).collect())
    }

    fn look_at_gaps(
        &mut self,
        window: Span,
        busy: &[Span],
        waits: &[Span],
        steps: &[i64],
        runtime: &[Span],
        python: &[Span],
    ) {
        let gaps = subtract(&[window], busy);
        let (mut after_waits, mut hideable, mut between) = (0_i64, 0_i64, 0_i64);
        let mut dispatching = 0_i64;
        for gap in gaps {
            let wait = waits.partition_point(|it| it.1 < gap.0.saturating_sub(CLOCKS));
            let follows = waits.get(wait).is_some_and(|it| it.0 <= gap.0 && it.1 < gap.1);
            let step = steps.partition_point(|&it| it <= gap.0);
            let within = steps.get(step).is_none_or(|&it| it >= gap.1);
            if follows {
                after_waits += covered(gap, runtime);
                hideable += covered(gap, runtime) + covered(gap, python);
                // Between steps, Python is the training loop's own: another rule speaks of it.
                if within && gap.1 < window.1 {
                    after_waits += covered(gap, python);
                }
            } else if within && gap.0 > window.0 && gap.1 < window.1 {
                let launching = covered(gap, runtime);
                between += launching;
                dispatching += launching + covered(gap, python).min(SOME_LINES_PS);
            }
        }
        let n = self.n_steps.max(1) as i64;
        self.after_waits = Dur(after_waits / n);
        self.hideable = Dur(hideable / n);
        self.between_kernels = Dur(between / n);
        self.dispatching = Dur(dispatching / n);
    }
}
