//! A `tf.function` is traced again in steps that should only run it.

use analyses::Tables;
use analyses::code_site::{Site, site_of_function};
use analyses::compile::{Changed, Compile, Kind};
use analyses::python_line::PythonLine;
use trace::{Dur, EventId};

use crate::confidence;
use crate::dialect::{Advice, Edit};
use crate::facts::{
    MOST_NAMED, NO_STEPS, counted, counted_steps, facts, has_host_events, without_compile,
};
use crate::lines::{busiest, place};
use crate::small_batch::set_up;
use crate::{Change, Evidence, Finding, Fix, Gain, Rule, Severity, Verdict, WORTH_SAYING};

rule! {
    /// A `tf.function` is traced again and again.
    ///
    /// ## Evidence
    /// Tracings inside steps that count, by function: how many of its calls traced, how many
    /// tracings TensorFlow has counted since the program began, and what that says of the cause.
    /// A count that goes up is one function called with arguments of a new kind each time; a count
    /// that stays at one is a new function each time.
    ///
    /// ## Fix
    /// Pass tensors, not Python numbers: each new number is a new trace. Give the function an
    /// `input_signature`, or `reduce_retracing=True`, so that shapes may vary. Make the function
    /// once, outside the loop. Pad or bucket batches to a few shapes.
    ///
    /// ## When it is wrong
    /// Some tracing is meant: one for training, one for evaluation, one for the shorter last
    /// batch. So a tracing in a single step is never more than low, and those of the warm-up do not
    /// count. Which argument changed is not in the profile.
    pub struct Retracing = "retracing";
}

impl Rule for Retracing {
    fn check(&self, tables: &Tables) -> Verdict {
        let Some(facts) = facts(tables) else {
            return Verdict::unknown(NO_STEPS);
        };
        if !has_host_events(tables) {
            return Verdict::unknown("no host events in this profile");
        }
        let all = tables.get::<Compile>();
        let traced =
            || all.iter().enumerate().filter(|it| it.1.kind == Kind::Trace && it.1.steps > 0);
        let Some((row, main)) = traced().max_by_key(|it| it.1.step_ps) else {
            return Verdict::Clear;
        };
        // What compiles because of a new trace is part of its cost; tracings hold each other.
        let cost = all.iter().fold(Dur(0), |sum, it| match it.kind {
            Kind::Trace => sum + Dur(it.own_step_ps),
            _ if it.inside_trace * 2 >= it.count => sum + Dur(it.own_step_ps),
            _ => sum,
        });
        if facts.share_of(cost) < WORTH_SAYING {
            return Verdict::Clear;
        }
        let n_steps = counted_steps(tables, &main.host);
        // What a library makes for itself at every call, as for a new pipeline, has no name.
        let is_named = main.function.is_some();
        let function = main.function.as_deref().unwrap_or("A function without a name");
        let is_new = !is_named || main.changed.as_deref() == Some(&Changed::Function);
        let again = match main.tracing_count {
            _ if is_new => "created and traced again",
            Some(1) => "traced for the first time",
            _ => "retraced",
        };
        let mut finding = Finding::new(
            format!(
                "{function} was {again} in {} of {n_steps} steps ({} each)",
                main.steps,
                main.per_step_with(n_steps)
            ),
            cost,
            facts.step,
        );
        let gain = without_compile(tables, &facts, cost);
        if main.steps < 2 {
            finding = finding.severity(Severity::Low).confidence(confidence::EVEN);
        }
        let mut seen = format!("Tracing and what follows it take {}", facts.per_step(cost));
        if let Some(calls) = main.calls {
            seen += &format!("; {} of {calls} calls traced", main.count);
        }
        if let Some(count) = main.tracing_count.filter(|_| !is_new) {
            seen += &format!(", {count} tracings since the program began");
        }
        let events = vec![EventId(main.event as u32)];
        finding = finding.evidence(Evidence::text(seen).rows("compile", vec![row]).events(events));
        // The compiled program tells the shapes, where the function is compiled as well.
        let shapes = all
            .iter()
            .filter(|it| it.kind == Kind::Compile && it.function == main.function)
            .filter_map(|it| it.changed.as_ref())
            .find(|it| matches!(***it, Changed::Shapes { .. }));
        if let Some(changed) = shapes.or(main.changed.as_ref()) {
            finding = finding.evidence(Evidence::text(changed.words()).rows("compile", vec![row]));
        }
        for (row, other) in traced().filter(|it| it.0 != row).take(MOST_NAMED) {
            let name = other.function.as_deref().unwrap_or("A function without a name");
            let steps = counted(usize::try_from(other.steps).unwrap_or(0), "step");
            let text = format!("{name} was traced too, in {steps} ({} each)", Dur(other.mean_ps));
            finding = finding.evidence(Evidence::text(text).rows("compile", vec![row]));
        }
        let rows = tables.get::<PythonLine>();
        if let Some(caller) = busiest(&rows, "framework").filter(|_| !is_named) {
            let text = format!("Most calls come from {}", place(&rows[caller.lines[0]]));
            let evidence = Evidence::text(text).rows("python_line", vec![caller.lines[0]]);
            finding = finding.evidence(evidence);
        }
        match main.function.as_deref() {
            Some(it) => {
                let site = site_of_function(tables, it);
                fixes(finding, it, is_new, shapes.is_some(), gain, site)
            }
            None => finding
                .fix(
                    Fix::new(
                        Change::CreateOnce,
                        "Create functions, datasets and iterators once, before the loop",
                    )
                    .gives(gain),
                )
                .fix(
                    Fix::new(
                        Change::CreateOnce,
                        "Call the model itself: its loop builds a new pipeline on every call",
                    )
                    .edit(Edit::CallTheModelItself)
                    .gives(gain),
                )
                // A pipeline that is built for one call is all of that call's trouble.
                .symptom_of(if set_up(tables, &facts).is_some() { &["small-batch"] } else { &[] }),
        }
        .found()
    }

    fn in_headline(&self) -> Option<&'static str> {
        Some("is spent tracing functions again")
    }
}

/// Whether it is a framework's own function of a batch, which compiling the model again discards.
fn is_of_model(function: &str) -> bool {
    let name = function.trim_end_matches(|it: char| it.is_ascii_digit() || it == '_');
    trace::dialect::any(|it| it.is_batch(name))
}

fn fixes(
    finding: Finding,
    function: &str,
    is_new: bool,
    shapes: bool,
    gain: Option<Gain>,
    site: Option<Site>,
) -> Finding {
    let fix = |change, text: &str, edit: Advice| Fix::new(change, text).edit(edit).gives(gain);
    if is_new && is_of_model(function) {
        return finding.fix(fix(
            Change::CreateOnce,
            "Compile the model once, before the loop: each call discards the compiled function",
            Edit::CompileModelOnce.into(),
        ));
    }
    if is_new {
        return finding.fix(fix(
            Change::CreateOnce,
            "Create the function once, before the loop; what differs per step becomes an argument",
            Edit::FunctionOnce.into(),
        ));
    }
    let name = if function.starts_with(char::is_alphabetic) { function } else { "step" };
    let tensors = fix(
        Change::TensorArguments,
        "Pass tensors, not Python numbers: every new number is a new trace",
        Edit::TensorArgument.with(name),
    );
    let finding = if shapes { finding } else { finding.fix(tensors) };
    finding
        .fix(
            fix(Change::RelaxShapes, "Let one trace serve many shapes", Edit::AnyShape.into())
                .at(site),
        )
        .fix(fix(
            Change::RelaxShapes,
            "Or declare the signature once, with None for what varies",
            Edit::DeclareShapes.into(),
        ))
        .fix(fix(
            Change::PadShapes,
            "Or pad batches to a few shapes, and drop the shorter last one",
            Edit::EqualBatches.into(),
        ))
}

#[cfg(test)]
mod tests {
    use super::Retracing;
    use crate::testing::{finding, missing, verdict};
    use crate::{Severity, Verdict};

    /// Steps of 100 µs that call `f`; what a step says is put where its arguments are.
    fn steps(args: &[&str]) -> String {
        let mut picture = "host/python: ".to_owned();
        for (step, args) in args.iter().enumerate() {
            let at = step * 100;
            let run = at + if args.contains("=true") { 60 } else { 10 };
            picture += &format!(
                "train#{step} {at}..{}, train_step{{{args}}} {at}..{}, EagerKernelExecute {run}..{}, ",
                at + 100,
                at + 95,
                at + 95
            );
        }
        picture
    }

    #[test]
    fn a_model_compiled_in_the_loop_is_told_by_its_function() {
        let args = ["traced=true;tracing_count=2"; 6];
        let picture = steps(&args).replace("train_step", "one_step_on_data");
        let found = finding(&Retracing, &picture);
        assert!(found.title.contains("created and traced again"), "{}", found.title);
        assert!(found.fix[0].text.starts_with("Call model.compile once"), "{:?}", found.fix);
    }

    #[test]
    fn a_function_traced_in_every_step_is_found() {
        let args: Vec<String> =
            (4..10).map(|it| format!("traced=true;tracing_count={it}")).collect();
        let found =
            finding(&Retracing, &steps(&args.iter().map(String::as_str).collect::<Vec<_>>()));
        assert_eq!(found.title, "train_step was retraced in 6 of 6 steps (60 µs each)");
        assert_eq!(found.severity, Severity::High);
        assert_eq!(found.cost.0, 60_000_000);
        assert!(found.evidence[0].text.contains("6 of 6 calls"), "{:?}", found.evidence);
        assert!(found.evidence[1].text.contains("retraced 5 times"), "{:?}", found.evidence);
        let edits: Vec<_> = found.fix.iter().filter_map(|it| it.edit.as_deref()).collect();
        assert!(edits.contains(&"@tf.function(reduce_retracing=True)"), "{edits:?}");
    }

    #[test]
    fn a_new_function_each_step_is_told_apart() {
        let found = finding(&Retracing, &steps(&["traced=true;tracing_count=1"; 4]));
        assert!(found.title.starts_with("train_step was created and traced again in 4 of 4 steps"));
        assert!(found.fix[0].text.contains("before the loop"));
    }

    #[test]
    fn what_has_no_name_is_told_apart_too() {
        let mut picture = "host/python: ".to_owned();
        for step in 0..4 {
            let at = step * 100;
            picture += &format!(
                "train#{step} {at}..{}, tf.function-graph_building {at}..{}, EagerKernelExecute {1}..{}, ",
                at + 100,
                at + 60,
                at + 95
            );
        }
        let found = finding(&Retracing, &picture);
        assert!(
            found.title.starts_with(
                "A function without a name was created and traced again in 4 of 4 steps"
            ),
            "{}",
            found.title
        );
        assert!(found.fix[0].text.contains("before the loop"));
        assert!(
            found
                .fix
                .iter()
                .all(|it| it.edit.as_deref().is_none_or(|it| !it.contains("without a name")))
        );
    }

    #[test]
    fn one_tracing_among_steady_steps_is_low() {
        let mut args = ["traced=false;tracing_count=1"; 8];
        args[5] = "traced=true;tracing_count=2";
        let found = finding(&Retracing, &steps(&args));
        assert_eq!(found.severity, Severity::Low);
    }

    #[test]
    fn steps_that_only_run_are_clear() {
        let picture = steps(&["traced=false;tracing_count=1"; 4]);
        assert_eq!(verdict(&Retracing, &picture), Verdict::Clear);
    }

    #[test]
    fn without_steps_or_host_it_cannot_know() {
        assert_eq!(missing(&Retracing, "gpu0/s: k 0..1"), "no steps could be identified");
        let device_only = "gpu0/s: a 0..10, b 10..20, a 50..60, b 60..70, a 100..110, b 110..120, \
                           a 150..160, b 160..170";
        assert_eq!(missing(&Retracing, device_only), "no host events in this profile");
    }
}
