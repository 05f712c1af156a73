//! What holds for any input, tried on many random ones.

use statistics::{
    Comparison, Question, Random, Run, Series, Summary, Verdict, Warmup, compare, summary,
};

/// Series of all sorts: empty, constant, wild, hostile, averaged.
fn any_series(random: &mut Random) -> Series {
    let n = [0, 1, 5, 30, 200][random.below(5)];
    let kind = random.below(5);
    let mut series = Series::default();
    for _ in 0..n {
        let time = match kind {
            0 => 30_000_000_000,
            1 => 1_000_000 + random.below(1000) as i64,
            2 => random.bits() as i64,
            3 => [i64::MIN, i64::MAX, 0, -1, 1][random.below(5)],
            _ => (1e9 * random.normal().exp()) as i64,
        };
        let steps = if random.below(4) == 0 { random.bits() as u32 >> random.below(32) } else { 1 };
        series.push(time, steps);
    }
    series
}

fn any_runs(random: &mut Random) -> Vec<Run> {
    let warmup = |random: &mut Random| match random.below(3) {
        0 => Warmup::Steps(random.below(50) as u64),
        _ => Warmup::Auto,
    };
    (0..random.below(4)).map(|_| Run::new(&any_series(random), warmup(random))).collect()
}

fn check_summary(runs: &[Run], found: &Summary) {
    for at in found.percentiles.iter().map(|it| it.at).chain([found.median]) {
        assert!(at.low_ps <= at.value_ps && at.value_ps <= at.high_ps, "{found:?}");
    }
    let n_steps: u64 = runs.iter().map(|it| it.steady.n_steps()).sum();
    assert_eq!(found.n_steps, n_steps);
    assert!(found.percentiles.is_sorted_by_key(|it| it.permille));
    assert!(found.percentiles.is_sorted_by_key(|it| it.at.value_ps));
    assert!(found.percentiles.is_sorted_by_key(|it| it.at.low_ps));
    assert!(found.between_runs.is_none_or(|it| it >= 0.0), "{found:?}");
}

fn check_comparison(found: &Comparison) {
    let shift = found.shift;
    assert!(shift.low_ps <= shift.value_ps && shift.value_ps <= shift.high_ps, "{found:?}");
    assert!(found.noise_floor_ps >= 0 && found.share.is_finite(), "{found:?}");
    match found.verdict {
        Verdict::Slower => assert!(shift.low_ps >= 0 && shift.value_ps > 0, "{found:?}"),
        Verdict::Faster => assert!(shift.high_ps <= 0 && shift.value_ps < 0, "{found:?}"),
        Verdict::NoDifference | Verdict::CannotTell => (),
    }
}

#[test]
fn any_input_has_an_answer_that_agrees_with_itself() {
    let mut random = Random::seeded(11);
    let (mut n_summaries, mut n_comparisons) = (0, 0);
    for _ in 0..300 {
        let (a, b) = (any_runs(&mut random), any_runs(&mut random));
        if let Some(found) = summary(&a) {
            check_summary(&a, &found);
            n_summaries += 1;
        }
        let question = Question { in_pairs: random.below(2) == 0, ..Question::default() };
        if let Some(found) = compare(&a, &b, question) {
            check_comparison(&found);
            n_comparisons += 1;
        }
        // Nothing is ever faster or slower than itself.
        if let Some(same) = compare(&a, &a, question) {
            assert_eq!(same.shift.value_ps, 0, "{same:?}");
            assert!(matches!(same.verdict, Verdict::NoDifference | Verdict::CannotTell));
        }
    }
    assert!(n_summaries > 100 && n_comparisons > 50, "{n_summaries}, {n_comparisons}");
}

#[test]
fn a_clock_that_runs_at_double_speed_doubles_every_figure() {
    let mut random = Random::seeded(12);
    let noise = statistics::simulate::Noise::default();
    for _ in 0..20 {
        let series = noise.run(200, 30_000_000_000, &mut random);
        let double = Series::of_steps(series.ps().iter().map(|it| it * 2));
        let [one, two] = [series, double].map(|it| Run::new(&it, Warmup::Auto));
        assert_eq!(one.skipped, two.skipped);
        let [one, two] = [one, two].map(|it| summary(&[it]).unwrap());
        // Between two values the mean is rounded.
        let is_double = |one: i64, two: i64| assert!((two - 2 * one).abs() <= 2, "{one} {two}");
        is_double(one.median.value_ps, two.median.value_ps);
        is_double(one.median.low_ps, two.median.low_ps);
        is_double(one.median.high_ps, two.median.high_ps);
    }
}
