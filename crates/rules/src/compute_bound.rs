//! The good end: the step is spent computing.

use analyses::Tables;
use analyses::kernel_time::KernelTime;
use analyses::op_tensor::OpTensor;
use trace::Dur;

use crate::dialect::{Edit, Words};
use crate::facts::{Facts, NO_STEPS, Op, facts, percent};
use crate::gpu::{Precision, precision};
use crate::{Change, Evidence, Finding, Fix, Gain, Rule, Severity, Verdict};

rule! {
    /// The step is spent computing, and only faster math helps.
    ///
    /// ## Evidence
    /// Most of the step is compute, and no other rule found anything that matters. Where the
    /// profile shows the types that ops compute with, 64-bit floats are named.
    ///
    /// ## Fix
    /// 64-bit floats: compute in 32 bits. Otherwise nothing is wrong, and what is left is cheaper
    /// math: mixed precision, a compiled step (`jit_compile=True`), a smaller model, a faster
    /// device.
    ///
    /// ## When it is wrong
    /// On a run without accelerator, compute is the time in which ops run: an op that wastes its
    /// time inside counts as compute.
    pub struct ComputeBound = "compute-bound";
}

/// More than half of the step computes: whatever else there is, it is less.
/// Source: physical, nothing else can be more.
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
        if let Some(found) = in_64_bits(tables, &facts) {
            return found;
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
            finding = finding.evidence(Evidence::text(text).steps("compute", Facts::rows(tables)));
        }
        let in_half = |it: &KernelTime| precision(&it.name) == Some(Precision::Half);
        let fix = if facts.on_device && tables.get::<KernelTime>().iter().any(in_half) {
            Fix::new(Change::Machine, "Use a cheaper layer where one dominates, or faster hardware")
        } else if facts.on_device {
            Fix::new(Change::HalfPrecision, "Compute in 16 bits if the hardware supports it")
                .edit(Edit::HalfPrecision)
        } else if Words::of(tables).has(Edit::FuseModel) {
            Fix::new(Change::Fuse, "Compile the step").edit(Edit::FuseModel)
        } else {
            Fix::new(Change::Machine, "Use a cheaper layer where one dominates, or faster hardware")
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

/// What is left of an op's time in 32 bits, at worst, likely, at best: half as many bytes to move
/// and twice as many numbers in a vector register, but a short op also has a beginning and an end.
/// Source: physical, half the bytes; processors' caches make it somewhat better than half.
const LEFT_IN_32_BITS: [f64; 3] = [0.75, 0.5, 0.4];

/// Most of the computing is in 64-bit floats.
fn in_64_bits(tables: &Tables, facts: &Facts) -> Option<Verdict> {
    let rows = tables.get::<OpTensor>();
    let time = |it: &&OpTensor| it.total_ps as f64;
    let known: f64 = rows.iter().map(|it| time(&it)).sum();
    let doubles: Vec<usize> =
        (0..rows.len()).filter(|&it| rows[it].element_type == "float64").collect();
    let part = doubles.iter().map(|&it| time(&&rows[it])).sum::<f64>() / known.max(1.0);
    if part < MOSTLY {
        return None;
    }
    let compute = facts.of("compute").0 as f64 * part;
    let takes = Dur((compute * (1.0 - LEFT_IN_32_BITS[1])) as i64);
    let after = LEFT_IN_32_BITS.map(|left| facts.step.0 - (compute * (1.0 - left)) as i64);
    let title =
        format!("The model computes in 64-bit floats: {} of the compute time", percent(part));
    let longest = &rows[doubles[0]];
    let shape = longest.shape.as_deref().unwrap_or_default();
    let text = format!("{} produces float64{shape}", longest.op);
    let fix = Fix::new(Change::Float32, "Compute in 32 bits").edit(Edit::Float32);
    let fix = match facts.on_device {
        // A data centre's GPU computes half as many of them, another one a sixty-fourth.
        true => fix.untold("it depends on how many 64-bit units the device has"),
        false => fix.gives(Some(Gain::of_range(facts.step.0, after))),
    };
    let finding = Finding::new(title, takes, facts.step)
        .headline("is the price of computing in 64 bits instead of 32")
        .evidence(Evidence::text(text).rows("op_tensor", doubles))
        .fix(fix);
    Some(finding.found())
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
    fn what_was_compiled_is_not_to_be_compiled_again() {
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
    fn math_in_64_bits_has_a_cheaper_equal() {
        let block =
            "MemoryAllocation{allocator_name=cpu;bytes_allocated=8;allocation_bytes=8;addr=1";
        let picture = |data_type: u8| {
            let ops = (0..4).map(|it| {
                let at = it * 100;
                format!(
                    "a/MatMul:MatMul {at}..{}, {block};data_type={data_type};shape=[9,9]}} {at}..{at}",
                    at + 90
                )
            });
            let steps = (0..4).map(|it| {
                format!("train#{it} {0}..{1}, EagerExecute {0}..{1}", it * 100, it * 100 + 100)
            });
            let [ops, steps] = [ops.collect::<Vec<_>>(), steps.collect()].map(|it| it.join(", "));
            format!("host/python: {steps}\nhost/tf_Compute: {ops}")
        };
        let found = finding(&ComputeBound, &picture(2));
        assert!(found.title.starts_with("The model computes in 64-bit floats"), "{}", found.title);
        let gain = found.gain.unwrap();
        assert!(gain.low < gain.speedup && gain.speedup > 1.7 && gain.high > 2.0, "{gain:?}");
        assert_eq!(found.severity, Severity::High);
        assert_eq!(finding(&ComputeBound, &picture(1)).severity, Severity::Low);
    }

    #[test]
    fn without_steps_it_cannot_know() {
        assert_eq!(missing(&ComputeBound, "gpu0/s: gemm 0..20"), "no steps could be identified");
    }
}
