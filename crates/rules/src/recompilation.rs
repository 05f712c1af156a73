//! Programs are compiled in steps that should only run them.

use analyses::Tables;
use analyses::compile::{Changed, Compile, Kind};
use trace::{Dur, EventId};

use crate::confidence;
use crate::dialect::Edit;
use crate::facts::{
    MOST_NAMED, NO_STEPS, counted, counted_steps, facts, has_host_events, without_compile,
};
use crate::{Change, Evidence, Finding, Fix, Gain, Rule, Severity, Verdict, WORTH_SAYING};

rule! {
    /// XLA or `jax.jit` compiles again and again.
    ///
    /// ## Evidence
    /// Compilations inside steps that count, by function, and what differs between the programs
    /// that were compiled for it, read from the programs kept in the profile: the shapes of the
    /// arrays they take, or not the shapes.
    ///
    /// ## Fix
    /// Where shapes differ, pad or bucket them to a few. Where they do not, make the compiled
    /// function once, outside the loop, and pass what changes as an array, not as a static
    /// argument.
    ///
    /// ## When it is wrong
    /// The first call with a shape has to compile: a compilation in a single step is never more
    /// than low, and those of the warm-up do not count. A profiler that records every Python call
    /// makes tracing look longer than it is.
    pub struct Recompilation = "recompilation";
}

impl Rule for Recompilation {
    fn check(&self, tables: &Tables) -> Verdict {
        let Some(facts) = facts(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        if !has_host_events(tables) {
            return Verdict::unknown("no host events in this profile");
        }
        let all = tables.get::<Compile>();
        let compiled = || {
            let here =
                |it: &Compile| matches!(it.kind, Kind::Compile | Kind::Autotune) && it.steps > 0;
            all.iter().enumerate().filter(move |it| here(it.1))
        };
        let Some((row, main)) = compiled().max_by_key(|it| it.1.step_ps) else {
            return Verdict::Clear;
        };
        let cost = compiled().map(|it| Dur(it.1.own_step_ps)).sum();
        if facts.share_of(cost) < WORTH_SAYING {
            return Verdict::Clear;
        }
        let n_steps = counted_steps(tables, &main.host);
        let function = main.function.as_deref().unwrap_or("A part of the program");
        let verb = if main.kind == Kind::Autotune { "tuned" } else { "compiled" };
        // A first call always compiles, and a single step may be the first.
        let is_only = n_steps == 1;
        let mut finding = Finding::new(
            match is_only {
                true => format!("{function} was {verb} in the only step that was captured"),
                false => format!(
                    "{function} was {verb} again in {} of {n_steps} steps ({} each)",
                    main.steps,
                    main.per_step_with(n_steps)
                ),
            },
            cost,
            facts.step,
        );
        let gain = without_compile(tables, &facts, cost);
        if main.steps < 2 {
            finding = finding.severity(Severity::Low).confidence(confidence::EVEN);
        }
        let mut seen = format!("Compiling takes {}", facts.per_step(cost));
        if let Some(calls) = main.calls {
            seen += &format!("; {} of {calls} calls compiled", main.count);
        }
        let events = vec![EventId(main.event as u32)];
        finding = finding.evidence(Evidence::text(seen).rows("compile", vec![row]).events(events));
        if let Some(changed) = &main.changed {
            finding = finding.evidence(Evidence::text(changed.words()).rows("compile", vec![row]));
        }
        for (row, other) in compiled().filter(|it| it.0 != row).take(MOST_NAMED) {
            let name = other.function.as_deref().unwrap_or("Another part of the program");
            let steps = counted(usize::try_from(other.steps).unwrap_or(0), "step");
            let text = format!("{name} was compiled too, in {steps} ({} each)", Dur(other.mean_ps));
            finding = finding.evidence(Evidence::text(text).rows("compile", vec![row]));
        }
        if main.inside_trace * 2 >= main.count {
            finding = finding.symptom_of(&["retracing"]);
        }
        if is_only {
            let why = "a first call always compiles: only later steps show what each step costs";
            return finding
                .headline("is spent compiling, as in every first call")
                .fix(Fix::new(Change::Capture, "Capture some later steps").untold(why))
                .found();
        }
        fixes(finding, main, gain).found()
    }

    fn in_headline(&self) -> Option<&'static str> {
        Some("is spent compiling again")
    }
}

fn fixes(finding: Finding, main: &Compile, gain: Option<Gain>) -> Finding {
    let fix = |change, text: &str, edit| Fix::new(change, text).edit(edit).gives(gain);
    let differ = main.changed.as_deref().map(|it| matches!(it, Changed::Shapes { .. }));
    let finding = match differ {
        Some(false) => finding,
        _ => finding
            .fix(fix(
                Change::RelaxShapes,
                "Compile once for inputs of any shape",
                Edit::CompileAnyShape,
            ))
            .fix(fix(
                Change::PadShapes,
                "Pad or bucket the inputs to a few shapes",
                Edit::PadShapes,
            )),
    };
    if differ == Some(true) {
        return finding;
    }
    finding
        .fix(fix(
            Change::CreateOnce,
            "Create the compiled function once, before the loop",
            Edit::CompiledOnce,
        ))
        .fix(fix(
            Change::TensorArguments,
            "Pass what changes as an array: every new static argument is a new program",
            Edit::ArrayArgument,
        ))
}

#[cfg(test)]
mod tests {
    use super::Recompilation;
    use crate::testing::{finding, missing, verdict};
    use crate::{Severity, Verdict};

    fn steps(compiles: &[bool]) -> String {
        let mut picture = "host/python: ".to_owned();
        for (step, compiles) in compiles.iter().enumerate() {
            let at = step * 100;
            picture += &format!(
                "train#{step} {at}..{}, PjitFunction(update) {at}..{}, ",
                at + 100,
                at + 90
            );
            if *compiles {
                picture += &format!("backend_compile_and_load {}..{}, ", at + 10, at + 60);
            }
            picture += &format!("ExecuteReplicated.__call__ {}..{}, ", at + 70, at + 90);
        }
        picture
    }

    #[test]
    fn a_function_compiled_in_every_step_is_found() {
        let found = finding(&Recompilation, &steps(&[true; 6]));
        assert_eq!(found.title, "update was compiled again in 6 of 6 steps (70 µs each)");
        assert_eq!(found.severity, Severity::High);
        assert!(found.evidence[0].text.contains("6 of 6 calls compiled"));
        assert!(found.symptom_of.is_empty());
    }

    #[test]
    fn what_a_tracing_makes_necessary_hangs_below_it() {
        let step = |at: i64| {
            format!(
                "train#{at} {at}..{0}, f{{traced=true}} {at}..{0}, EagerKernelExecute {1}..{0}, \
                 __inference_f_1:__inference_f_1 {1}..{0}, CpuCompiler::RunBackend {1}..{2}, ",
                at + 100,
                at + 20,
                at + 80
            )
        };
        let picture = format!("host/python: {}{}{}{}", step(0), step(100), step(200), step(300));
        let found = finding(&Recompilation, &picture);
        assert!(found.title.starts_with("f was compiled again in 4 of 4 steps"), "{}", found.title);
        assert_eq!(found.symptom_of, ["retracing"]);
    }

    #[test]
    fn one_compilation_among_steady_steps_is_low() {
        let mut compiles = [false; 8];
        compiles[6] = true;
        assert_eq!(finding(&Recompilation, &steps(&compiles)).severity, Severity::Low);
    }

    #[test]
    fn steps_that_only_run_are_clear() {
        assert_eq!(verdict(&Recompilation, &steps(&[false; 6])), Verdict::Clear);
    }

    #[test]
    fn without_steps_or_host_it_cannot_know() {
        assert_eq!(missing(&Recompilation, "gpu0/s: k 0..1"), "no steps could be identified");
    }
}
