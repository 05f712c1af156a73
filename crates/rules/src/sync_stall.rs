//! The host waits for the device, so that the device then waits for the host.

use analyses::Tables;
use analyses::code_site::Doing;
use analyses::replay::Replay;
use analyses::what_if::{Altered, WhatIf};
use trace::Dur;

use crate::dialect::Edit;
use crate::facts::{NO_STEPS, counted, facts};
use crate::launches::launches;
use crate::lines::line_of_loop;
use crate::{Change, Evidence, Finding, Fix, Gain, Rule, Verdict, WORTH_SAYING};

rule! {
    /// The host waits for the device in every step, and the device then waits for the host.
    ///
    /// ## Evidence
    /// Waits that saw the device's work finish (`cuStreamSynchronize`, `block_until_ready`, a
    /// blocking copy as `.numpy()` or `float(loss)` make it), and the time after each in which the
    /// device had nothing to do until the next work was launched. Without the wait, launches run
    /// ahead of the device and hide that time.
    ///
    /// ## Fix
    /// Look at results every N steps; keep metrics on the device and fetch them once; fetch the
    /// loss of the step before.
    ///
    /// ## When it is wrong
    /// A loop that must look at a result before it continues (early stopping each step, dynamic
    /// shapes) has to wait. Input, compiling and saving after a wait are not counted here: they
    /// have rules of their own.
    pub struct SyncStall = "sync-stall";
}

/// A wait less often than this is one every N steps, as it should be.
/// Source: choice, more often than every other step.
const EVERY_STEP: f64 = 0.5;

impl Rule for SyncStall {
    fn check(&self, tables: &Tables) -> Verdict {
        let Some(facts) = facts(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        let replay = tables.model::<Replay>();
        let Some(found) = launches(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        if found.waits == 0.0 && !facts.on_device {
            return Verdict::unknown("this profile shows no waits for a device");
        }
        // Where the host is slower than the device, it has nothing to run ahead with.
        let rows = tables.get::<WhatIf>();
        let replayed = rows.iter().find(|it| *it.change == Altered::WithoutWaits);
        let new_ps = match facts.on_device && replay.is_trusted() {
            true => Some(replayed.map_or(facts.step.0, |it| it.new_step_ps)),
            false => None,
        };
        let won = new_ps.map_or(found.after_waits, |it| Dur((facts.step.0 - it).max(0)));
        let cost = found.after_waits.min(won);
        if found.waits < EVERY_STEP || facts.share_of(cost) < WORTH_SAYING {
            return Verdict::Clear;
        }
        let name = found.wait_name.unwrap_or_default();
        // Replaying hides all that the host does; input, compiling and saving may need the wait.
        let hidden = (facts.step.0 - found.hideable.0).max(1);
        let gain = new_ps.map(|it| Gain::of_times(facts.step.0, it.max(hidden)));
        let n_waits = found.waits * found.n_steps as f64;
        Finding::new(
            format!(
                "The host waits for the device {}; the device is then idle for {}",
                how_often(found.waits),
                facts.per_step(cost)
            ),
            cost,
            facts.step,
        )
        .evidence(
            Evidence::text(format!(
                "{name}: {n_waits:.0} waits in {}",
                counted(found.n_steps, "step")
            ))
            .events(found.wait_events),
        )
        .fix(
            Fix::new(
                Change::EveryNSteps,
                "Read the loss and metrics every N steps: printing them waits",
            )
            .edit(Edit::ReadSeldom)
            .gives(gain)
            .at(line_of_loop(tables, Doing::Framework).map(|it| it.site)),
        )
        .fix(
            Fix::new(
                Change::FewerCopies,
                "Keep metrics on the device, and fetch them at the end of the epoch",
            )
            .gives(gain),
        )
        .found()
    }

    fn in_headline(&self) -> Option<&'static str> {
        Some("is lost because the host waits for the device")
    }
}

/// From here on a wait is in every step rather than in every other one.
/// Source: physical, half-way between the two.
const NEARLY_EVERY: f64 = 0.75;

fn how_often(waits: f64) -> String {
    match waits.round() {
        n if n > 1.0 => format!("{n} times per step"),
        _ if waits < NEARLY_EVERY => "in about half of the steps".to_owned(),
        _ => "once per step".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::SyncStall;
    use crate::testing::{finding, missing, verdict};
    use crate::{Severity, Verdict};

    #[test]
    fn a_wait_in_every_step_leaves_the_device_idle() {
        let found = finding(
            &SyncStall,
            "
            host/python: train#1 0..100, EagerExecute 0..99, cuLaunchKernel@1 40..44, \
            cuStreamSynchronize 50..70, train#2 100..200, EagerExecute 100..199, \
            cuLaunchKernel@2 140..144, cuStreamSynchronize 150..170, train#3 200..300, \
            EagerExecute 200..299, cuLaunchKernel@3 240..244, cuStreamSynchronize 250..270
            gpu0/s: k@1 45..68, k@2 145..168, k@3 245..268
            ",
        );
        // Of 100 the host needs 80 itself: running ahead wins the 20 it waited.
        assert_eq!(found.severity, Severity::Medium);
        assert_eq!(found.cost.0, 20_000_000);
        assert!(found.title.contains("waits for the device once per step"), "{}", found.title);
        assert!(found.evidence[0].text.starts_with("cuStreamSynchronize: "));
    }

    #[test]
    fn a_device_that_is_never_idle_is_clear() {
        let picture = "
            host/python: train#1 0..100, train#2 100..200, cuStreamSynchronize 150..180, \
            train#3 200..300
            gpu0/s: k 0..99, k 99..199, k 199..299
            ";
        assert_eq!(verdict(&SyncStall, picture), Verdict::Clear);
    }

    #[test]
    fn without_device_or_waits_it_cannot_know() {
        let picture = "host/python: train#1 0..100, train#2 100..200, train#3 200..300";
        assert_eq!(missing(&SyncStall, picture), "this profile shows no waits for a device");
    }
}
