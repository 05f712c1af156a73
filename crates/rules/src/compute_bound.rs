//! The good end: the step is spent computing.

use analyses::Tables;

use crate::edits::{in_16_bits, is_jax};
use crate::facts::{Facts, NO_STEPS, Op, facts, percent};
use crate::{Change, Evidence, Finding, Fix, Rule, Severity, Verdict};

rule! {
    /// The step is spent computing, and only faster math helps.
    ///
    /// ## Evidence
    /// Most of the step is compute, and no other rule found anything that matters.
    ///
    /// ## Fix
    /// Nothing is wrong. What is left is cheaper math: mixed precision, a compiled step
    /// (`jit_compile=True`), a smaller model, a faster device.
    ///
    /// ## When it is wrong
    /// On a run without accelerator, compute is the time in which ops run: an op that wastes its
    /// time inside counts as compute.
    pub struct ComputeBound = "compute-bound";
}

/// More than half of the step computes: whatever else there is, it is less.
const MOSTLY: f64 = 0.5;

impl Rule for ComputeBound {
    fn check(&self, tables: &Tables) -> Verdict {
        let Some(facts) = facts(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        let share = facts.share("compute");
        if share < MOSTLY {
            return Verdict::Clear;
        }
        let mut finding = Finding::new(
            format!("{} of the step is compute; nothing else is in its way", percent(share)),
            facts.of("compute"),
            facts.step,
        )
        .severity(Severity::Low);
        if let Some(op) = Op::all(tables).first() {
            let text = format!("The largest op, {}, is {} of it", op.label(), percent(op.share));
            finding = finding.evidence(Evidence::text(text).rows("op_time", vec![op.row]));
        } else {
            let text = format!("Compute takes {}", facts.per_step(facts.of("compute")));
            finding = finding.evidence(Evidence::text(text).rows("step_time", Facts::rows(tables)));
        }
        let fix = if facts.on_device {
            Fix::new(Change::HalfPrecision, "Compute in 16 bits if the hardware supports it")
                .edit(in_16_bits(tables))
        } else if is_jax(tables) {
            Fix::new(Change::Machine, "Use a cheaper layer where one dominates, or faster hardware")
        } else {
            Fix::new(Change::Fuse, "Compile the step with XLA")
                .edit("@tf.function(jit_compile=True)")
        };
        finding.fix(fix.untold("it depends on what the ops compute")).found()
    }

    fn is_good_end(&self) -> bool {
        true
    }

    fn in_headline(&self) -> Option<&'static str> {
        Some("is compute")
    }
}

#[cfg(test)]
mod tests {
    use super::ComputeBound;
    use crate::testing::{finding, missing, verdict};
    use crate::{Severity, Verdict};

    #[test]
    fn a_busy_device_is_the_good_end() {
        let found = finding(
            &ComputeBound,
            "
            host/python: train#1 0..100, train#2 100..200, train#3 200..300
            gpu0/s: gemm 0..90, gemm 100..190, gemm 200..290
            ",
        );
        assert_eq!(found.severity, Severity::Low);
        assert_eq!(found.title, "90% of the step is compute; nothing else is in its way");
    }

    #[test]
    fn a_waiting_device_is_not() {
        let picture = "
            host/python: train#1 0..100, train#2 100..200, train#3 200..300
            gpu0/s: gemm 0..20, gemm 100..120, gemm 200..220
            ";
        assert_eq!(verdict(&ComputeBound, picture), Verdict::Clear);
    }

    #[test]
    fn what_jax_compiled_is_not_to_be_compiled_again() {
        let host = "
            host/python: train#1 0..100, PjitFunction(step) 1..99, train#2 100..200, \
            PjitFunction(step) 101..199, train#3 200..300, PjitFunction(step) 201..299
            host/tf_XLAEigen: dot.1{hlo_op=dot.1} 0..90, dot.1{hlo_op=dot.1} 100..190, \
            dot.1{hlo_op=dot.1} 200..290
            ";
        let edits = finding(&ComputeBound, host).fix;
        assert!(edits.iter().all(|it| it.edit.is_none()), "{edits:?}");
    }

    #[test]
    fn without_steps_it_cannot_know() {
        assert_eq!(missing(&ComputeBound, "gpu0/s: gemm 0..20"), "no steps could be identified");
    }
}
