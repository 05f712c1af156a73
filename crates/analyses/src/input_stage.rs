//! Rebuilds the `tf.data` pipeline from its iterators' events: who works, who waits for whom.
//!
//! ```text
//! consumer   |Root |Prefetch: waits for its buffer |        blocked
//! thread 1   PrefetchProduce |BatchV2 |ParallelMapV2: waits  |   own work, then blocked
//! thread 2   ParallelMapProduce |TensorSlice|RunAsync|          hands functions to the pool
//! pool       |f(x)      |f(x)       |                           work of ParallelMapV2
//! ```
//!
//! A stage that buffers is a boundary: what is above it runs in another thread than what is
//! below. So a pipeline is a few threads and pools, each with its work for a step, and it makes
//! batches no faster than the slowest of them ([`pipeline`]).

pub mod pipeline;

use crate::{Analysis, Tables};
use pipeline::Pipeline;

table! {
    /// The stages of the input pipeline, consumer first.
    ///
    /// Times are for a mean step. A stage that waits for its source or for a buffer is blocked,
    /// which is not work.
    pub struct InputStage = "input_stage" {
        /// The stage and all above it, without the numbers of single iterators.
        stage: String,
        /// The stage that takes its elements; empty at the top.
        parent: Option<String>,
        /// The last part of the name: `ParallelMapV2`.
        kind: String,
        /// The dataset as the graph calls it: `MapDataset:1`; `inject/…` was put there by TensorFlow.
        dataset: Option<String>,
        /// How often it was asked for an element, in all.
        calls: i64,
        /// Elements a step.
        elements_per_step: f64,
        /// Iterators made, in all: of a stage that reads files, files opened.
        iterators: i64,
        /// Its own work for a step, its functions' included, on whatever threads.
        work_ps: i64,
        /// Of that, in Python, which runs one thread at a time.
        python_ps: i64,
        /// Waiting for a buffer to fill, for a step.
        blocked_ps: i64,
        /// How many of its functions may run at once.
        parallelism: Option<i64>,
        /// Whether TensorFlow chooses that, or the size of the buffer.
        autotune: Option<bool>,
        /// How many elements its buffer may hold.
        buffer_limit: Option<i64>,
        /// How many it held, on average, when asked.
        buffered: Option<f64>,
        /// Whether it buffers: what is below it runs in other threads.
        asynchronous: bool,
        /// The threads that run it: the stage that owns them, or `consumer`.
        runs_in: String,
        /// What all work in those threads needs for a step, with as many as there are.
        period_ps: i64,
        /// Whether those threads limit the pipeline.
        limits: bool,
    }
}

impl Analysis for InputStage {
    fn run(tables: &Tables) -> Vec<InputStage> {
        let pipeline = tables.model::<Pipeline>();
        let limit = pipeline.limit();
        let row = |it: &pipeline::Stage| {
            let crew = &pipeline.crews[it.works_in];
            InputStage {
                stage: it.path.clone(),
                parent: it.parent.map(|it| pipeline.stages[it].path.clone()),
                kind: it.kind().to_owned(),
                dataset: it.dataset.clone(),
                calls: it.calls,
                elements_per_step: it.calls as f64 / pipeline.n_steps.max(1) as f64,
                iterators: it.iterators,
                work_ps: it.work_ps,
                python_ps: it.python_ps,
                blocked_ps: it.blocked_ps,
                parallelism: it.parallelism,
                autotune: it.autotune,
                buffer_limit: it.buffer_limit,
                buffered: it.buffered,
                asynchronous: it.is_asynchronous(),
                runs_in: crew.name(&pipeline),
                period_ps: crew.period_ps(),
                limits: limit == Some(it.works_in),
            }
        };
        pipeline.stages.iter().map(row).collect()
    }
}
