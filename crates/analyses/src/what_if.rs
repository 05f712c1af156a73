//! Replays the steps with something taken away, to say what a fix would win.
//!
//! ```text
//! driving thread   input|python|call------|input|python|call------
//! device                        |=====|                 |=====|
//! without python   input|call------|input|call------     but never faster than the device,
//!                            |=====|           |=====|   nor than the pipeline makes batches
//! ```
//!
//! The unchanged step is replayed first; where that misses what was measured by more than a
//! tenth, nothing is predicted.

use crate::step_time::{CATEGORIES, StepTime};
use crate::{Analysis, Tables};

table! {
    /// What a step would take if something changed.
    ///
    /// Made by replaying the measured steps. A change is only there if replaying the unchanged
    /// steps comes within a tenth of what was measured.
    pub struct WhatIf = "what_if" {
        /// The change: `without python` takes that category away.
        change: String,
        /// The mean step as measured.
        step_ps: i64,
        /// The mean step as replayed, nothing changed.
        replayed_ps: i64,
        /// The mean step after the change.
        new_step_ps: i64,
        /// What bounds the step after the change.
        limited_by: String,
    }
}

/// Beyond this error of the unchanged replay nothing is predicted.
const TRUSTED: f64 = 0.10;

impl Analysis for WhatIf {
    fn run(tables: &Tables) -> Vec<WhatIf> {
        let steps = tables.get::<StepTime>();
        let steps: Vec<&StepTime> = steps.iter().filter(|it| it.counts).collect();
        let Ok(n) = i128::try_from(steps.len()) else { return Vec::new() };
        if n == 0 {
            return Vec::new();
        }
        let mean = |of: &dyn Fn(&StepTime) -> i64| {
            (steps.iter().map(|it| i128::from(of(it))).sum::<i128>() / n) as i64
        };
        let step_ps = mean(&|it| it.dur_ps);
        let replayed_ps = mean(&|it| CATEGORIES.iter().map(|of| of.1(it)).sum());
        if (replayed_ps - step_ps).abs() as f64 > TRUSTED * step_ps as f64 {
            return Vec::new();
        }
        let mut rows = Vec::new();
        for (category, of) in CATEGORIES {
            let taken = mean(&of);
            if taken > 0 {
                rows.push(WhatIf {
                    change: format!("without {category}"),
                    step_ps,
                    replayed_ps,
                    new_step_ps: step_ps - taken,
                    limited_by: "the rest of the step".to_owned(),
                });
            }
        }
        rows
    }
}
