//! Ops so small that starting them takes longer than they do.

use analyses::Tables;
use analyses::kernel_time::KernelTime;
use analyses::op_time::OpTime;
use analyses::step::Step;
use analyses::what_if::Altered;
use trace::{Dur, OpKind};

use crate::dialect::Edit;
use crate::facts::{Facts, NO_STEPS, counted, facts, thousands};
use crate::launches::launches;
use crate::{Change, Evidence, Finding, Fix, Gain, Rule, Verdict, WORTH_SAYING};

rule! {
    /// Ops are so small that starting them takes longer than they do.
    ///
    /// ## Evidence
    /// On a GPU: hundreds of kernels a step, each about as short as a launch, with gaps between
    /// them in which the host prepares the next. On a CPU: a thousand ops or more a step, each a
    /// few microseconds, with the runtime busy between them.
    ///
    /// ## Fix
    /// Fuse them (`jit_compile=True`), run several steps in one call (`steps_per_execution`),
    /// replace loops over examples by ops over the batch; on a GPU, record launches as a graph.
    ///
    /// ## When it is wrong
    /// The profiler itself makes a launch and an op longer, by about a microsecond each: of ops
    /// this small, that is a visible part.
    pub struct TinyOps = "tiny-ops";
}

/// Launching takes 5 to 20 µs (the Holistic Trace Analysis guide); shorter work is not worth one.
/// Source: document, Holistic Trace Analysis: launching takes 5 to 20 µs.
const TINY: Dur = Dur(20_000_000);
/// The least that a launch takes.
/// Source: document, Holistic Trace Analysis: launching takes 5 to 20 µs.
const QUICK_LAUNCH: Dur = Dur(5_000_000);
/// Fewer kernels than this are no swarm: their launches are lost in the step.
/// Source: choice, a guess.
const MANY_KERNELS: usize = 200;
/// The runtime of a CPU dispatches an op in a few microseconds: it takes more of them.
/// Source: choice, five times as many as kernels.
const MANY_OPS: i64 = 1000;

impl Rule for TinyOps {
    fn check(&self, tables: &Tables) -> Verdict {
        let Some(facts) = facts(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        if facts.on_device { on_device(tables, &facts) } else { on_host(tables, &facts) }
    }

    fn in_headline(&self) -> Option<&'static str> {
        Some("is the overhead of starting many small ops")
    }
}

fn on_device(tables: &Tables, facts: &Facts) -> Verdict {
    let Some(found) = launches(tables) else {
        return Verdict::unknown(NO_STEPS);
    };
    let cost = found.between_kernels;
    let swarm = found.kernels >= MANY_KERNELS && found.typical_kernel <= TINY;
    if !swarm || facts.share_of(cost) < WORTH_SAYING {
        return Verdict::Clear;
    }
    let (n, typical) = (found.kernels, found.typical_kernel);
    let gain = gain(tables, facts);
    let kernels = thousands(n);
    let than_launch = match typical < QUICK_LAUNCH {
        true => "less than it takes to launch one",
        false => "about as long as it takes to launch one",
    };
    Finding::new(
        format!(
            "{kernels} kernels per step run for about {typical} each, {than_launch}: the gaps \
             between them take {}",
            facts.per_step(cost)
        ),
        cost,
        facts.step,
    )
    .evidence(
        Evidence::text(format!(
            "{kernels} kernels per step on the device that has most, in {}",
            counted(found.n_steps, "step")
        ))
        .rows("kernel_time", (0..tables.get::<KernelTime>().len()).collect()),
    )
    .fix(Fix::new(Change::Fuse, "Fuse small ops").edit(Edit::Fuse).gives(gain))
    .fix(
        Fix::new(Change::StepsPerCall, "Run several steps in one call")
            .edit(Edit::StepsPerCall)
            .untold("the gaps inside a step stay"),
    )
    .symptom_of(&["eager-ops"])
    .found()
}

/// At least the dispatch goes away. Fused, tiny ops also lose most of their own time, which is
/// beginning and ending: a function of 3000 ops of half a microsecond was 6.4 times as fast
/// compiled, where 3.0 were dispatch.
fn gain(tables: &Tables, facts: &Facts) -> Option<Gain> {
    /// At best, fusing takes away this part of the ops' own time.
    /// Source: choice, from that one function.
    const OWN: f64 = 0.8;
    /// Fusing likely takes away this part of the ops' own time.
    /// Source: choice, fitted to scripts of tiny ops and their fixed twins.
    const LIKELY_OWN: f64 = 0.6;
    /// Fusing makes the step at most so many times as fast as dropping the dispatch does.
    /// Source: choice, an order of magnitude.
    const AT_BEST: f64 = 10.0;
    let gain = Gain::of_change(tables, &Altered::Without("runtime"))?;
    let (step, compute) = (facts.step.0 as f64, facts.of("compute").0 as f64);
    let least = (step / gain.speedup - OWN * compute).max(step / gain.high / AT_BEST);
    if facts.on_device {
        return Some(gain);
    }
    let likely = (step - facts.of("runtime").0 as f64 - LIKELY_OWN * compute).max(least);
    Some(Gain {
        speedup: gain.speedup.max(step / likely.max(1.0)),
        high: gain.high.max(step / least.max(1.0)),
        ..gain
    })
}

fn on_host(tables: &Tables, facts: &Facts) -> Verdict {
    let n_steps = tables.get::<Step>().len().max(1) as i64;
    let rows = tables.get::<OpTime>();
    let is_op = |it: &&OpTime| {
        it.side == "host"
            && it.family != "tf.data"
            && OpKind::of_type(it.op_type.as_deref().unwrap_or("")) == OpKind::Op
    };
    let (mut n, mut own_ps) = (0_i64, 0_i64);
    for op in rows.iter().filter(is_op) {
        n += op.count;
        own_ps = own_ps.saturating_add(op.self_ps);
    }
    if n == 0 {
        return Verdict::unknown("no ops in this profile");
    }
    let mean = Dur(own_ps / n);
    let cost = facts.of("runtime");
    let per_step = n / n_steps;
    // Dispatch that is less than half the work is what executors cost.
    let dominates = cost.0 * 2 >= facts.of("compute").0;
    let small = facts.share_of(cost) < WORTH_SAYING;
    if per_step < MANY_OPS || mean > TINY || !dominates || small {
        return Verdict::Clear;
    }
    let gain = gain(tables, facts);
    Finding::new(
        format!(
            "{} ops per step run for {mean} each and take longer to dispatch than to run: {}",
            thousands(usize::try_from(per_step).unwrap_or(0)),
            facts.per_step(cost)
        ),
        cost,
        facts.step,
    )
    .evidence(
        Evidence::text(format!(
            "All ops together compute for {}",
            facts.per_step(facts.of("compute"))
        ))
        .rows("op_time", (0..rows.len()).filter(|&it| is_op(&&rows[it])).collect()),
    )
    .fix(
        Fix::new(Change::Fuse, "Compile the step into fewer, larger ops")
            .edit(Edit::Fuse)
            .gives(gain),
    )
    .fix(
        Fix::new(
            Change::CheaperOp,
            "Replace loops over examples or time steps with ops on the whole batch",
        )
        .gives(gain),
    )
    .symptom_of(&["eager-ops"])
    .found()
}

#[cfg(test)]
mod tests {
    use super::TinyOps;
    use crate::testing::{finding, missing, verdict};
    use crate::{Severity, Verdict};

    /// Steps of `n` kernels of `dur` µs, one every 20 µs.
    fn swarm(n: usize, dur: usize) -> String {
        let step = n * 20;
        let (mut host, mut device) = (Vec::new(), Vec::new());
        for at in 0..4 {
            let begin = at * step;
            host.push(format!("train#{at} {begin}..{}", begin + step));
            host.push(format!("EagerExecute {begin}..{}", begin + step));
            for kernel in 0..n {
                let (key, from) = (at * n + kernel, begin + kernel * 20);
                host.push(format!("cuLaunchKernel@{key} {from}..{}", from + 4));
                device.push(format!("k@{key} {}..{}", from + 5, from + 5 + dur));
            }
        }
        format!("host/python: {}\ngpu0/s: {}", host.join(", "), device.join(", "))
    }

    #[test]
    fn kernels_shorter_than_their_gaps_are_too_short() {
        let found = finding(&TinyOps, &swarm(300, 5));
        assert_eq!(found.severity, Severity::High);
        assert!(found.title.starts_with("300 kernels per step run for about 5 µs each"));
        let gain = found.gain.unwrap();
        assert!(gain.speedup > 2.5 && gain.speedup < 4.0, "{gain:?}");
    }

    #[test]
    fn kernels_end_to_end_are_clear() {
        assert_eq!(verdict(&TinyOps, &swarm(300, 20)), Verdict::Clear);
    }

    #[test]
    fn ops_shorter_than_their_dispatch_are_too_short_on_a_cpu() {
        let ops = (0..4).map(|step| {
            let ops = (0..1200).map(|it| {
                let at = step * 6000 + it * 5;
                format!("x/Mul:Mul {at}..{}", at + 1)
            });
            ops.collect::<Vec<_>>().join(", ")
        });
        let steps = (0..4).map(|it| {
            let at = it * 6000;
            format!("train#{it} {at}..{}, EagerExecute {at}..{}", at + 6000, at + 6000)
        });
        let picture = format!(
            "host/python: {}\nhost/tf_Compute/1: {}",
            steps.collect::<Vec<_>>().join(", "),
            ops.collect::<Vec<_>>().join(", ")
        );
        let found = finding(&TinyOps, &picture);
        assert!(found.title.starts_with("1,200 ops per step run for 1 µs each"), "{}", found.title);
    }

    #[test]
    fn without_ops_it_cannot_know() {
        let picture = "host/python: train#1 0..100, train#2 100..200, train#3 200..300";
        assert_eq!(missing(&TinyOps, picture), "no ops in this profile");
    }
}
