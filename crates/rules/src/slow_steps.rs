//! What both rules about slow steps ask: which steps, of what cause, and is it only noise.

use analyses::Tables;
use analyses::op_time::OpTime;
use analyses::step::Step;
use analyses::step_outlier::StepOutlier;
use analyses::step_spread::StepSpread;
use trace::{Dur, Program, dialect};

use crate::{Evidence, Finding, Gain, Severity, WORTH_FIXING};

/// The slow steps of the host that loses most by them.
#[derive(Debug, Clone)]
pub struct SlowSteps {
    pub spread: StepSpread,
    spread_row: usize,
    /// The cause that holds most of the excess, and its steps; rows of `step_outlier`.
    pub category: &'static str,
    pub name: Option<String>,
    pub rows: Vec<usize>,
    pub period: Option<i64>,
    /// What most of them call and ordinary steps do not.
    pub extra_call: Option<String>,
    /// How many times as long as an ordinary step, in the middle of them.
    pub ratio: f64,
    /// What slow steps add to the mean step.
    pub cost: Dur,
    /// What the slow steps of this cause add.
    own_cost: Dur,
    /// Nothing but a busy machine is needed to explain them.
    pub is_noise: bool,
}

/// Why it cannot be said which steps are slow.
pub const TOO_FEW: &str = "fewer than five steady steps";

/// Slow steps less far from the others than this are noise unless they come regularly: on two cores
/// shared with others, steps of a healthy run take up to twice as long now and then.
/// Source: choice, a guess.
const FAR: f64 = 2.0;

/// How much of slow steps' excess goes when they are split, moved or made rarer: at worst, likely,
/// at best.
/// Source: choice, fitted to scripts with slow steps and their fixed twins.
const WON: [f64; 3] = [0.6, 0.95, 1.0];

/// Slow steps are alike where this part of them is.
/// Source: choice, two thirds.
const ALIKE: (usize, usize) = (2, 3);
/// Fewer slow steps are no pattern.
/// Source: choice, two may be chance.
const FEWEST_SLOW: usize = 3;
/// As many steps are named by their numbers.
/// Source: choice, half a line.
const MOST_NUMBERS: usize = 8;

/// And these are far enough even if a single op took the time.
/// Source: choice, a guess.
const VERY_FAR: f64 = 5.0;

impl SlowSteps {
    /// `None` where no step is slow.
    pub fn find(tables: &Tables) -> Option<SlowSteps> {
        let spreads = tables.get::<StepSpread>();
        let slow = spreads.iter().enumerate().filter(|it| it.1.slow > 0);
        let (spread_row, spread) = slow.max_by_key(|it| it.1.slow_cost_ps)?;
        let all = tables.get::<StepOutlier>();
        let own: Vec<(usize, &StepOutlier)> =
            all.iter().enumerate().filter(|it| it.1.host == spread.host).collect();
        // What comes regularly has one cause, whichever op of it took longest each time.
        let cause = |it: &StepOutlier| match it.period {
            Some(period) => (it.category, Some(period), None),
            None => (it.category, None, it.name.clone()),
        };
        let mut groups: Vec<(_, i64)> = Vec::new();
        for (_, row) in &own {
            match groups.iter_mut().find(|it| it.0 == cause(row)) {
                Some(group) => group.1 = group.1.saturating_add(row.excess_ps),
                None => groups.push((cause(row), row.excess_ps)),
            }
        }
        let (meant, excess) = groups.into_iter().max_by_key(|it| it.1)?;
        let category = meant.0;
        let rows: Vec<(usize, &StepOutlier)> =
            own.iter().copied().filter(|it| cause(it.1) == meant).collect();
        let name = rows.iter().max_by_key(|it| it.1.excess_ps)?.1.name.as_deref();
        let excess_of = |rows: &[(usize, &StepOutlier)]| {
            rows.iter().fold(0_i64, |sum, it| sum.saturating_add(it.1.excess_ps))
        };
        // Those that chance hit are not of the cause, unless nothing else is left; chance has no rhythm.
        let is_meant = |it: &StepOutlier| it.period.is_some() || !it.is_perhaps_chance();
        let meant: Vec<_> = rows.iter().copied().filter(|it| is_meant(it.1)).collect();
        let by_chance = excess_of(&meant).saturating_mul(2) < excess;
        let rows = if by_chance { rows } else { meant };
        let excess = excess_of(&rows);
        let mut ratios: Vec<f64> = rows.iter().map(|it| it.1.ratio).collect();
        ratios.sort_by(f64::total_cmp);
        let ratio = ratios[ratios.len() / 2];
        let period = rows[0].1.period;
        let holds_most = excess.saturating_mul(2) >= excess_of(&own);
        Some(SlowSteps {
            spread: spread.clone(),
            spread_row,
            category,
            name: name.map(str::to_owned),
            period,
            extra_call: extra_call(&rows),
            ratio,
            cost: Dur(spread.slow_cost_ps),
            own_cost: Dur(excess / spread.steps.max(1)),
            is_noise: is_noise(&rows, ratio, period, holds_most, by_chance),
            rows: rows.into_iter().map(|it| it.0).collect(),
        })
    }

    /// `every 3rd step`, or `4 of 12 steps`.
    pub fn which(&self, word: &str) -> String {
        match self.period {
            Some(period) => format!("Every {} {word}", ordinal(period)),
            None => format!("{} of {} {word}s", self.rows.len(), self.spread.steps),
        }
    }

    /// `takes` or `take`, to fit [`SlowSteps::which`].
    pub fn verb(&self) -> &'static str {
        if self.period.is_some() || self.rows.len() == 1 { "takes" } else { "take" }
    }

    /// `, spent in MatMul`: what held the excess, as far as it is known.
    pub fn spent(&self) -> String {
        if let Some(function) = &self.extra_call {
            return format!(" because it calls {function}, which the others do not");
        }
        match (&self.name, self.category) {
            (Some(name), "compile") => format!("; the extra time traces or compiles {name}"),
            (Some(name), _) if name.starts_with("TFE_") => {
                "; the extra time is spent calling ops one at a time".to_owned()
            }
            (Some(name), _) => format!("; the extra time is spent in {name}"),
            (None, "python") => "; the extra time is Python outside the framework".to_owned(),
            (None, "idle") => "; the profile does not show why".to_owned(),
            (None, category) => format!("; the extra time is {}", category.replace('_', " ")),
        }
    }

    /// What it gives when slow steps are split, moved or made rarer; absent where they are noise.
    pub fn gain(&self) -> Option<Gain> {
        let step = self.spread.mean_ps;
        let left = |cost: Dur, part: f64| step - (cost.0 as f64 * part) as i64;
        let [worst, likely, best] = WON;
        // At best the other slow steps have the same cause, and were only hit on top.
        let new = [
            left(self.own_cost, worst),
            left(self.own_cost, likely),
            left(self.cost.max(self.own_cost), best),
        ];
        (!self.is_noise).then(|| Gain::on_host(step, new))
    }

    /// What both rules say in the same words.
    pub fn describe(&self, tables: &Tables, finding: Finding) -> Finding {
        let spread = &self.spread;
        let outliers = tables.get::<StepOutlier>();
        let steps = tables.get::<Step>();
        let number = |row: &StepOutlier| {
            let step = steps.iter().find(|it| it.host == row.host && it.step == row.step);
            step.and_then(|it| it.number).unwrap_or(row.step)
        };
        let mut numbers: Vec<String> = self
            .rows
            .iter()
            .take(MOST_NUMBERS)
            .map(|&it| number(&outliers[it]).to_string())
            .collect();
        if self.rows.len() > numbers.len() {
            numbers.push("…".to_owned());
        }
        let numbers = numbers.join(", ");
        let [p50, p90, p99] = [spread.p50_ps, spread.p90_ps, spread.p99_ps].map(Dur);
        let longest = self.rows.iter().filter_map(|&it| outliers[it].longest.as_deref()).next();
        let mut finding = finding
            .evidence(
                Evidence::text(format!(
                    "Steps {numbers} have {} more than the others",
                    self.excess(&outliers)
                ))
                .rows("step_outlier", self.rows.clone()),
            )
            .evidence(
                Evidence::text(format!(
                    "Median {p50}, p90 {p90}, p99 {p99} over {} steps",
                    spread.steps
                ))
                .rows("step_spread", vec![self.spread_row]),
            );
        if let Some(longest) =
            longest.filter(|it| !self.name.as_deref().is_some_and(|name| it.ends_with(name)))
        {
            let text = format!("Most of that is in {longest}");
            finding =
                finding.evidence(Evidence::text(text).rows("step_outlier", self.rows.clone()));
        }
        let step = Dur(spread.mean_ps);
        if !self.is_noise {
            return finding;
        }
        // What other programs took is not the run's to save: no gain, and no place above real causes.
        finding.cost = finding.cost.min(Dur((step.0 as f64 * WORTH_FIXING) as i64));
        finding.severity(Severity::Low).confidence(crate::confidence::DOUBTFUL).evidence(
            Evidence::text(match self.rows.len() {
                1 => "It happened once, which says little about later steps",
                _ => "They share no clear cause; the machine may have been busy",
            })
            .rows("step_outlier", self.rows.clone()),
        )
    }

    fn excess(&self, outliers: &[StepOutlier]) -> String {
        let mut all: Vec<i64> =
            self.rows.iter().map(|&it| outliers[it].category_excess_ps).collect();
        all.sort_unstable();
        let middle = Dur(all[all.len() / 2]);
        match self.category {
            "idle" => format!("{middle} of idle time"),
            "python" => format!("{middle} of Python"),
            category => format!("{middle} of {}", category.replace('_', " ")),
        }
    }

    /// Rules that, where they find something, are the cause of slow steps of this kind.
    pub fn causes(&self) -> &'static [&'static str] {
        match self.category {
            "output" => &["checkpoint-stall"],
            "compile" => &["retracing", "recompilation"],
            "input" => &[
                "input-python",
                "input-serial-map",
                "input-no-prefetch",
                "input-file-read",
                "input-small-files",
                "input-cpu-starved",
                "input-bound",
            ],
            "python" => &["python-overhead"],
            _ => &[],
        }
    }
}

fn extra_call(rows: &[(usize, &StepOutlier)]) -> Option<String> {
    let first = rows.iter().find_map(|it| it.1.extra_call.clone())?;
    let same = rows.iter().filter(|it| it.1.extra_call.as_ref() == Some(&first)).count();
    (same * ALIKE.1 >= rows.len() * ALIKE.0).then_some(first)
}

/// Whether a busy machine explains slow steps: few, near to the others, or each hit elsewhere.
fn is_noise(
    rows: &[(usize, &StepOutlier)],
    ratio: f64,
    period: Option<i64>,
    holds_most: bool,
    by_chance: bool,
) -> bool {
    // What happened once may never come again, whatever it was.
    if rows.len() < 2 {
        return true;
    }
    // Saving and compiling happen because somebody asked for it, and what comes regularly too, and
    // calls that other steps do not make.
    let category = rows[0].1.category;
    if period.is_some() || extra_call(rows).is_some() || matches!(category, "output" | "compile") {
        return false;
    }
    if !holds_most || ratio < FAR || rows.len() < FEWEST_SLOW {
        return true;
    }
    match category {
        // A busy machine may have hit the op that most time is spent in; only a lot more time in the
        // same op speaks for a cause then.
        _ if by_chance => ratio < VERY_FAR || !same_longest(rows),
        // Dispatching and waiting are what a busy machine delays.
        "runtime" | "idle" => true,
        _ => false,
    }
}

/// Whoever is interrupted is interrupted anywhere; an op that has more to do is the same one.
fn same_longest(rows: &[(usize, &StepOutlier)]) -> bool {
    let same = rows.iter().filter(|it| it.1.longest == rows[0].1.longest).count();
    same * ALIKE.1 >= rows.len() * ALIKE.0
}

pub fn ordinal(number: i64) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// Whether the run only computes forward: nothing of it takes gradients or changes variables.
pub fn is_forward_only(tables: &Tables) -> bool {
    let ops = tables.get::<OpTime>();
    let trains = |name: &str, op_type: &str| {
        let changes = ["Assign", "ResourceApply", "Apply", "ResourceScatter", "ScatterUpdate"];
        changes.iter().any(|it| op_type.starts_with(it))
            || op_type.ends_with("Grad")
            || name.contains("gradient")
            || name.contains("transpose(")
    };
    if ops.iter().any(|it| trains(&it.name, it.op_type.as_deref().unwrap_or(""))) {
        return false;
    }
    // Compiled programs keep the names of what they were made of, as `transpose(jvp(f))/dot`.
    let takes_gradients = |program: Program<'_>| {
        let head = program.head(MOST_SEARCHED).unwrap_or_default();
        [&b"transpose(jvp"[..], b"gradient_tape", b"gradients/"]
            .iter()
            .any(|word| head.windows(word.len()).any(|it| it == *word))
    };
    if tables.trace().programs().take(MOST_PROGRAMS).any(takes_gradients) {
        return false;
    }
    if ops.iter().any(|it| dialect::family_names_gradients(it.family)) {
        return true;
    }
    // Ops of compiled programs do not say what they are for; what marks the steps may.
    let steps = tables.get::<Step>();
    let marker = steps.first().map(|it| it.marker.to_lowercase()).unwrap_or_default();
    let serves = ["infer", "predict", "serve", "request", "eval", "generate", "decode"];
    serves.iter().any(|it| marker.contains(it))
}

/// As many compiled programs are searched.
/// Source: choice, a bound on the work.
const MOST_PROGRAMS: usize = 64;

/// Programs can be large; what they take gradients of stands everywhere in them.
/// Source: choice, a bound on the work.
const MOST_SEARCHED: u64 = 1 << 20;
