//! What a training job logged of itself: the curves of TensorBoard.

use std::sync::Arc;

use trace::{Scalar as Point, SeriesId};

use crate::{Analysis, Logged, Tables};

table! {
    /// What the training job logged: loss, accuracy, learning rate, as TensorBoard shows them.
    ///
    /// Sorted by run, tag, step and time. Empty where no event files were found.
    pub struct Scalar = "scalar" {
        /// Which part of the log: its folder below the log folder, as train or validation; . for
        /// the log folder itself.
        run: Arc<str>,
        /// What was logged, as epoch_loss.
        tag: Arc<str>,
        /// The step, as the job counts: often batches or epochs, which differ from the profile's.
        step: i64,
        /// When, on the trace's clock: before the profile it is negative. Null where the profile
        /// does not say when it began, or there is none.
        time_ps: Option<i64>,
        /// When, as Unix time. Writers know it to a quarter of a microsecond.
        wall_unix_ns: Option<i64>,
        /// The number. SQL shows one that is no number (NaN) as null.
        value: Logged,
        /// Whether the same step or an earlier one was written again later, as after a restart
        /// from a checkpoint: TensorBoard hides such points.
        superseded: bool,
    }
}

impl Analysis for Scalar {
    fn run(tables: &Tables) -> Vec<Scalar> {
        let trace = tables.trace();
        let mut order: Vec<usize> = (0..trace.series.len()).collect();
        order.sort_by_key(|&it| (&trace.series[it].run, &trace.series[it].tag));
        let mut rows = Vec::with_capacity(trace.scalars.len());
        for it in order {
            let series = &trace.series[it];
            let points = trace.scalars_of(SeriesId(it as u32));
            let from = rows.len();
            rows.extend(points.iter().zip(superseded(points)).map(|(point, superseded)| Scalar {
                run: series.run.clone(),
                tag: series.tag.clone(),
                step: point.step,
                time_ps: point.unix_ns.and_then(|it| trace.time_of_unix_ns(it)).map(|it| it.0),
                wall_unix_ns: point.unix_ns,
                value: Logged(point.value),
                superseded,
            }));
            rows[from..].sort_by_key(|it| (it.step, it.wall_unix_ns));
        }
        rows
    }
}

/// Of points as they were written, which of them a later one takes back.
fn superseded(points: &[Point]) -> Vec<bool> {
    let mut lowest_after = None;
    let mut back: Vec<bool> = Vec::with_capacity(points.len());
    for point in points.iter().rev() {
        back.push(lowest_after.is_some_and(|it| it <= point.step));
        lowest_after = Some(lowest_after.map_or(point.step, |it: i64| it.min(point.step)));
    }
    back.reverse();
    back
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use trace::{Dur, Scalar as Point, Time, TraceBuilder, TrackKind};

    use super::Scalar;
    use crate::Tables;
    use crate::run_info::{RunInfo, window};

    const ORIGIN: i64 = 1_794_806_400_000_000_000;

    /// Points as `run/tag step@seconds=value`, where seconds count from the origin.
    fn tables(picture: &str, origin_unix_ns: Option<i64>) -> Tables {
        let mut out = TraceBuilder::new();
        let host = out.track(None, TrackKind::Host, "box");
        let process = out.track(Some(host), TrackKind::Process, "p");
        let thread = out.track(Some(process), TrackKind::Thread, "t");
        out.event(thread, "train", Time(0), Dur(100));
        if let Some(it) = origin_unix_ns {
            out.place(Some(it));
        }
        for point in picture.split_whitespace().collect::<Vec<_>>().chunks(2) {
            let (run, tag) = point[0].split_once('/').unwrap();
            let (step, rest) = point[1].split_once('@').unwrap();
            let (seconds, value) = rest.split_once('=').unwrap();
            let series = out.series(&Arc::from(run), tag);
            let unix_ns = seconds.parse::<i64>().ok().map(|it| ORIGIN + it * 1_000_000_000);
            let (step, value) = (step.parse().unwrap(), value.parse().unwrap());
            out.scalar(Point { series, step, unix_ns, value });
        }
        out.leave_out(&Arc::from("train"), "images", 2);
        out.leave_out(&Arc::from("train"), "images", 3);
        Tables::new(Arc::new(out.finish()))
    }

    fn rows(tables: &Tables) -> Vec<String> {
        let seconds = |it: Option<i64>| it.map(|it| it as f64 / 1e12);
        let text = |it: &Scalar| {
            let back = if it.superseded { " superseded" } else { "" };
            let (run, tag) = (&it.run, &it.tag);
            format!("{run} {tag} {} at {:?} {}{back}", it.step, seconds(it.time_ps), it.value.0)
        };
        tables.get::<Scalar>().iter().map(text).collect()
    }

    #[test]
    fn sorted_by_run_tag_step_and_time() {
        let picture = "train/loss 2@-3600=0.5  val/loss 1@5=7  train/loss 1@7=NaN  train/acc 9@0=1";
        assert_eq!(
            rows(&tables(picture, Some(ORIGIN))),
            [
                "train acc 9 at Some(0.0) 1",
                "train loss 1 at Some(7.0) NaN",
                "train loss 2 at Some(-3600.0) 0.5 superseded",
                "val loss 1 at Some(5.0) 7",
            ]
        );
    }

    #[test]
    fn after_a_restart_the_last_word_counts() {
        let picture = "a/x 1@1=1 a/x 2@2=2 a/x 3@3=3 a/y 2@3=1 a/x 2@9=20 a/x 4@10=40";
        let rows = rows(&tables(picture, Some(ORIGIN)));
        let taken_back: Vec<bool> = rows.iter().map(|it| it.ends_with("superseded")).collect();
        // Steps 1, 2, 2 again, 3, 4; and the other tag.
        assert_eq!(taken_back, [false, true, false, true, false, false]);
    }

    #[test]
    fn a_log_of_hours_does_not_stretch_the_trace() {
        let with = tables("a/x 1@-36000=1 a/x 2@36000=2", Some(ORIGIN));
        assert_eq!(window(with.trace()), Dur(100));
        assert_eq!(with.trace().counters, []);
        let info = with.get::<RunInfo>();
        let of = |of: &str| info.iter().find(|it| it.of == of).map(|it| (&*it.key, &*it.value));
        assert_eq!(of("log train"), Some(("not read/images", "5")));
    }

    #[test]
    fn without_a_common_clock_there_is_only_the_wall() {
        let tables = tables("a/x 1@1=1 a/x 2@?=2", None);
        assert_eq!(tables.trace().origin_unix_ns, None, "a log does not begin a trace");
        assert_eq!(rows(&tables), ["a x 1 at None 1", "a x 2 at None 2"]);
        let wall: Vec<_> = tables.get::<Scalar>().iter().map(|it| it.wall_unix_ns).collect();
        assert_eq!(wall, [Some(ORIGIN + 1_000_000_000), None]);
    }

    #[test]
    fn times_beyond_the_clock_are_not_known() {
        // Picoseconds since 2262 do not fit.
        assert_eq!(rows(&tables("a/x 1@1=1", Some(i64::MIN))), ["a x 1 at None 1"]);
    }
}
