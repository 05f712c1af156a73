//! How fast a job trains by its own log, to hold against the steps of a profile.
//!
//! ```text
//! batch_steps_per_second 212, 209, 214 …             1 / their median
//! batch_loss             step 10, 20, 30 at times    time from point to point / steps between
//! epoch_loss             at times, an epoch apart    time of an epoch / its steps, which
//! evaluation_loss_vs_iterations   step 782, 1564 …   … its iterations tell
//! ```
//!
//! A profile holds few steps, and recording slows them; a log covers the run, and says nothing of
//! where the time goes.

use trace::Dur;

use crate::Tables;
use crate::scalar::Scalar;
use crate::step::median;

/// The time of a step by the job's own log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pace {
    pub step: Dur,
    pub from: PaceSource,
    /// Points of the log that it rests on.
    pub n_points: usize,
}

/// What of a log tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PaceSource {
    /// The log says so: steps per second.
    Rate,
    /// Values logged every so many batches.
    Batches,
    /// The ends of epochs, and how many steps these have; validation is in it.
    Epochs,
}

/// Fewer points of single batches say little of the run.
/// Source: choice, a guess.
const FEWEST_BATCHES: usize = 3;

/// Of two figures this near nobody asks why they differ.
/// Source: choice, a guess.
const ALIKE: f64 = 0.2;

impl Pace {
    pub fn of(tables: &Tables) -> Option<Pace> {
        let scalars = tables.get::<Scalar>();
        let mut curves: Vec<&[Scalar]> = Vec::new();
        let mut rest = &scalars[..];
        while let Some(first) = rest.first() {
            let n = rest.iter().take_while(|it| it.run == first.run && it.tag == first.tag).count();
            let (curve, others) = rest.split_at(n);
            curves.push(curve);
            rest = others;
        }
        // The longest of a kind says most.
        curves.sort_by_key(|it| std::cmp::Reverse(it.len()));
        curves
            .iter()
            .find_map(|it| by_rate(it))
            .or_else(|| curves.iter().find_map(|it| by_batches(it)).or_else(|| by_epochs(&curves)))
    }

    /// The sentence that holds it against profiled steps.
    pub fn beside(&self, profiled: Dur, n_steps: usize) -> String {
        let who = match n_steps {
            1 => format!("The profiled step took {profiled}"),
            _ => format!("The profiled steps took {profiled} on average"),
        };
        let ratio = profiled.0 as f64 / (self.step.0 as f64).max(1.0);
        let alike = (ratio - 1.0).abs() <= ALIKE;
        let step = self.step;
        match (self.from, alike) {
            (_, true) => format!("{who}, and the training log agrees: {step} per step."),
            (PaceSource::Epochs, false) => {
                format!("{who}; your epochs take {step} per step, validation included.")
            }
            (_, false) => format!("{who}; the training log says {step} per step."),
        }
    }
}

/// Evaluation runs at a pace of its own.
fn is_of_training(point: &Scalar) -> bool {
    let evaluates = |it: &str| ["valid", "eval", "test"].iter().any(|word| it.contains(word));
    !evaluates(&point.run.to_ascii_lowercase()) && !evaluates(&point.tag.to_ascii_lowercase())
}

fn by_rate(curve: &[Scalar]) -> Option<Pace> {
    let first = curve.first()?;
    let tells = first.tag.ends_with("steps_per_second") || &*first.tag == "global_step/sec";
    if !tells || !is_of_training(first) {
        return None;
    }
    let rates = curve.iter().filter(|it| !it.superseded).map(|it| it.value.0);
    let mut steps: Vec<i64> = rates
        .filter(|it| it.is_finite() && *it > 0.0)
        .map(|it| (1e12 / it) as i64)
        .filter(|&it| it > 0)
        .collect();
    let n_points = steps.len();
    Some(Pace { step: Dur(median(&mut steps)?), from: PaceSource::Rate, n_points })
}

fn by_batches(curve: &[Scalar]) -> Option<Pace> {
    let first = curve.first()?;
    if !first.tag.starts_with("batch_") || !is_of_training(first) {
        return None;
    }
    let mut steps: Vec<i64> = pairs(curve)
        .filter(|it| it.steps > 0)
        .map(|it| it.time_ps / it.steps)
        .filter(|&it| it > 0)
        .collect();
    let n_points = steps.len() + 1;
    let step = median(&mut steps)?;
    (n_points > FEWEST_BATCHES).then_some(Pace {
        step: Dur(step),
        from: PaceSource::Batches,
        n_points,
    })
}

fn by_epochs(curves: &[&[Scalar]]) -> Option<Pace> {
    let of = |test: &dyn Fn(&Scalar) -> bool| {
        curves.iter().copied().find(|it| it.first().is_some_and(test))
    };
    let epochs = of(&|it| it.tag.starts_with("epoch_") && is_of_training(it))?;
    let iterations = of(&|it| it.tag.ends_with("_vs_iterations"))?;
    // Epochs are counted one by one; a gap is an epoch that was not logged.
    let mut times: Vec<i64> = pairs(epochs)
        .filter(|it| it.steps > 0)
        .map(|it| it.time_ps / it.steps)
        .filter(|&it| it > 0)
        .collect();
    let mut counts: Vec<i64> = pairs(iterations).map(|it| it.steps).filter(|&it| it > 0).collect();
    let n_points = times.len() + 1;
    let per_epoch = median(&mut counts)?;
    let step = median(&mut times)? / per_epoch;
    (step > 0).then_some(Pace { step: Dur(step), from: PaceSource::Epochs, n_points })
}

/// From one point of a curve to the next.
struct Stretch {
    steps: i64,
    time_ps: i64,
}

fn pairs(curve: &[Scalar]) -> impl Iterator<Item = Stretch> {
    let points = curve.iter().filter(|it| !it.superseded);
    points.clone().zip(points.skip(1)).filter_map(|(one, next)| {
        let time_ns = next.wall_unix_ns?.checked_sub(one.wall_unix_ns?)?;
        Some(Stretch {
            steps: next.step.checked_sub(one.step)?,
            time_ps: time_ns.checked_mul(1000)?,
        })
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::{Dur, Scalar as Point, TraceBuilder};

    use super::{Pace, PaceSource};
    use crate::Tables;

    /// Curves as `run/tag step@milliseconds=value …`, one a line.
    fn pace(curves: &str) -> Option<Pace> {
        let mut out = TraceBuilder::new();
        for line in curves.lines().map(str::trim).filter(|it| !it.is_empty()) {
            let (name, points) = line.split_once(' ').unwrap();
            let (run, tag) = name.split_once('/').unwrap();
            let series = out.series(&Arc::from(run), tag);
            for point in points.split_whitespace() {
                let (step, rest) = point.split_once('@').unwrap();
                let (ms, value) = rest.split_once('=').unwrap();
                let unix_ns =
                    Some(1_794_806_400_000_000_000 + ms.parse::<i64>().unwrap() * 1_000_000);
                let (step, value) = (step.parse().unwrap(), value.parse().unwrap());
                out.scalar(Point { series, step, unix_ns, value });
            }
        }
        Pace::of(&Tables::new(Arc::new(out.finish())))
    }

    fn check(curves: &str, step_us: i64, from: PaceSource) {
        let found = pace(curves).map(|it| (it.step, it.from));
        assert_eq!(found, Some((Dur(step_us * 1_000_000), from)));
    }

    #[test]
    fn a_log_that_says_steps_per_second_is_believed_first() {
        check(
            "train/batch_steps_per_second 0@0=10 1@5=200 2@10=200 3@15=250
             train/batch_loss 0@0=1 1@9=1 2@18=1 3@27=1",
            5_000,
            PaceSource::Rate,
        );
    }

    #[test]
    fn values_of_batches_tell_by_their_times() {
        check(
            "train/batch_loss 10@0=1 20@50=1 30@100=1 40@900=1 50@950=1
             validation/batch_loss 1@0=1 2@90=1 3@180=1 4@270=1",
            5_000,
            PaceSource::Batches,
        );
        assert_eq!(pace("train/batch_loss 10@0=1 20@50=1"), None, "too few");
    }

    #[test]
    fn epochs_tell_where_their_steps_are_known() {
        let epochs = "train/epoch_loss 0@0=1 1@4700=1 2@9400=1";
        let iterations =
            "validation/evaluation_loss_vs_iterations 1000@0=1 2000@4700=1 3000@9400=1";
        check(&format!("{epochs}\n{iterations}"), 4_700, PaceSource::Epochs);
        assert_eq!(pace(epochs), None, "how many steps an epoch has is not known");
    }

    #[test]
    fn it_is_held_against_the_profile() {
        let pace = Pace { step: Dur(4_700_000_000), from: PaceSource::Epochs, n_points: 3 };
        assert_eq!(
            pace.beside(Dur(33_500_000_000), 1),
            "The profiled step took 33.5 ms; your epochs take 4.7 ms per step, validation included."
        );
        assert_eq!(
            pace.beside(Dur(5_000_000_000), 9),
            "The profiled steps took 5 ms on average, and the training log agrees: 4.7 ms per step."
        );
    }
}
