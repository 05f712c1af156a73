use std::sync::Arc;

use trace::testing::draw;
use trace::{Process, Site as Noted, Time, Window};

use super::{
    CodeSite, callback_sites, compile_site, fit_site, pipeline, plain_function, site_of_function,
};
use crate::Tables;
use crate::input_stage::pipeline::{Pipeline, Stage};

/// One call a line: `dataset.map augment @12 <0,1` with what it takes; `^3` is inside of the fourth,
/// `+` has `num_parallel_calls`, `t5` was reached at that time.
fn process(calls: &str) -> Process {
    let mut sites = Vec::new();
    for line in calls.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let mut site = Noted { file: "/me/train.py".to_owned(), ..Noted::default() };
        for (at, word) in line.split(' ').enumerate() {
            match (at, word.chars().next()) {
                (0, _) => site.kind = word.to_owned(),
                (_, Some('@')) => site.line = word[1..].parse().unwrap(),
                (_, Some('<')) => {
                    site.inputs = word[1..].split(',').map(|it| it.parse().unwrap()).collect()
                }
                (_, Some('^')) => site.inside = Some(word[1..].parse().unwrap()),
                (_, Some('+')) => {
                    site.args = vec![("num_parallel_calls".to_owned(), "AUTOTUNE".to_owned())]
                }
                (_, Some('t')) if word[1..].parse::<i64>().is_ok() => {
                    site.time = Some(Time(word[1..].parse().unwrap()));
                }
                _ => site.name = Some(word.to_owned()),
            }
        }
        (site.end_line, site.text_line) = (site.line, site.line);
        sites.push(site);
    }
    Process { sites, ..Process::default() }
}

/// One stage a line, as the profile has it: the path without `Iterator::Root`, and the dataset.
fn stages(lines: &str) -> Pipeline {
    let mut pipeline = Pipeline::default();
    let root = Stage { path: "Iterator::Root".to_owned(), ..Stage::default() };
    pipeline.stages.push(root);
    for line in lines.lines().map(str::trim).filter(|it| !it.is_empty()) {
        let (path, dataset) = line.split_once(' ').unwrap_or((line, ""));
        let path = format!("Iterator::Root::{path}");
        let above = path.rsplit_once("::").unwrap().0;
        let parent = pipeline.stages.iter().position(|it| it.path == above);
        let dataset = (!dataset.is_empty()).then(|| dataset.to_owned());
        pipeline.stages.push(Stage { path, parent, dataset, ..Stage::default() });
    }
    pipeline
}

/// The line that a stage comes from.
#[track_caller]
fn check(pipeline: &str, calls: &str, expected: &[(&str, Option<i64>)]) {
    let (pipeline, process) = (stages(pipeline), process(calls));
    for (path, line) in expected {
        let path = format!("Iterator::Root::{path}");
        let site = pipeline::site_in(&pipeline, &process, &path);
        assert_eq!(site.map(|it| it.line), *line, "{path}");
    }
}

#[test]
fn fused_and_added_stages_find_their_calls() {
    check(
        "
        Prefetch inject/prefetch_RepeatDataset/_7
        Prefetch::ForeverRepeat RepeatDataset:3
        Prefetch::ForeverRepeat::MapAndBatch fused(MapDataset:1,BatchDatasetV2:2)
        Prefetch::ForeverRepeat::MapAndBatch::TensorSlice TensorSliceDataset:0
        ",
        "
        dataset.from_tensor_slices @1
        dataset.map augment @2 <0
        dataset.batch @3 <1
        dataset.repeat @4 <2
        dataset.iter @5 <3
        ",
        &[
            ("Prefetch", None),
            ("Prefetch::ForeverRepeat", Some(4)),
            ("Prefetch::ForeverRepeat::MapAndBatch", Some(2)),
            ("Prefetch::ForeverRepeat::MapAndBatch::TensorSlice", Some(1)),
        ],
    );
}

#[test]
fn the_order_in_the_chain_tells_two_maps_apart() {
    let calls = "
        dataset.from_tensor_slices @1
        dataset.map decode @2 <0
        dataset.map augment @3 <1
        dataset.cache @4 <2
        dataset.shuffle @5 <3
        dataset.repeat @6 <4
        dataset.take @7 <5
        keras.fit @8 <6
        ";
    check(
        "
        ShuffleAndRepeat fused(ShuffleDatasetV3:19,RepeatDataset:20)
        ShuffleAndRepeat::MemoryCacheImpl CacheDatasetV2:18
        ShuffleAndRepeat::MemoryCacheImpl::ParallelMapV2 MapDataset:17
        ShuffleAndRepeat::MemoryCacheImpl::ParallelMapV2::ParallelMapV2 MapDataset:16
        ShuffleAndRepeat::MemoryCache CacheDatasetV2:18
        ",
        calls,
        &[
            // Of two that are one, the first in the consumer's order.
            ("ShuffleAndRepeat", Some(6)),
            ("ShuffleAndRepeat::MemoryCacheImpl", Some(4)),
            ("ShuffleAndRepeat::MemoryCache", Some(4)),
            ("ShuffleAndRepeat::MemoryCacheImpl::ParallelMapV2", Some(3)),
            ("ShuffleAndRepeat::MemoryCacheImpl::ParallelMapV2::ParallelMapV2", Some(2)),
        ],
    );
}

#[test]
fn an_older_tensorflow_names_only_iterators() {
    check(
        "
        Prefetch
        Prefetch::BatchV2
        Prefetch::BatchV2::ParallelMapV2
        Prefetch::BatchV2::ParallelMapV2::TensorSlice
        ",
        "
        dataset.from_tensor_slices @1
        dataset.map augment @2 <0
        dataset.batch @3 <1
        ",
        &[
            ("Prefetch", None),
            ("Prefetch::BatchV2::ParallelMapV2", Some(2)),
            ("Prefetch::BatchV2", Some(3)),
        ],
    );
}

const BATCHED: &str = "
    BatchV2 BatchDatasetV2:9
    BatchV2::ParallelMapV2 MapDataset:8
    BatchV2::ParallelMapV2::TensorSlice TensorSliceDataset:7
    ";

#[test]
fn two_pipelines_of_one_shape_are_not_told_apart() {
    let calls = "
        dataset.from_tensor_slices @1
        dataset.map train @2 <0
        dataset.batch @3 <1
        dataset.from_tensor_slices @4
        dataset.map test @5 <3
        dataset.batch @6 <4
        ";
    let path = "BatchV2::ParallelMapV2";
    check(BATCHED, calls, &[(path, None)]);
    // Only one of them is trained on.
    check(BATCHED, &format!("{calls}\nkeras.fit @7 <2"), &[(path, Some(2))]);
    check(BATCHED, &format!("{calls}\ndataset.iter @7 <5"), &[(path, Some(5))]);
    check(BATCHED, &format!("{calls}\ndataset.iter @7 <5\ndataset.iter @8 <2"), &[(path, None)]);
    // The other has a number of calls.
    check(BATCHED, &calls.replace("train @2 <0", "train @2 <0 +"), &[(path, Some(5))]);
    // Both come through the same line.
    check(BATCHED, &calls.replace("test @5", "train @2"), &[(path, Some(2))]);
}

#[test]
fn what_is_iterated_after_the_profile_is_not_in_it() {
    let mut process = process(
        "
        dataset.from_tensor_slices @1
        dataset.map train @2 <0
        dataset.batch @3 <1
        dataset.map test @5 <0
        dataset.batch @6 <3
        dataset.iter @7 <2 t10
        dataset.iter @8 <4 t90
        ",
    );
    let line = |it: &Process| {
        pipeline::site_in(&stages(BATCHED), it, "Iterator::Root::BatchV2::ParallelMapV2")
            .map(|it| it.line)
    };
    assert_eq!(line(&process), None);
    process.windows.push(Window { start: Time(20), end: Some(Time(50)), until: None });
    assert_eq!(line(&process), Some(2));
}

#[test]
fn functions_of_stages_and_calls_that_make_several() {
    let calls = "
        dataset.from_tensor_slices @1
        dataset.interleave lambda @2 <0 +
        dataset.TFRecordDataset TFRecordDataset @3 ^1
        dataset.map parse @4 <2 ^1
        dataset.zip @5 <1,1
        dataset.enumerate @6 <4
        dataset.batch @7 <5
        ";
    let inner = "BatchV2::Zip::Zip::ParallelInterleaveV4";
    check(
        "
        BatchV2 BatchDatasetV2:26
        BatchV2::Zip ZipDataset:25
        BatchV2::Zip::Range RangeDataset:24
        BatchV2::Zip::Zip ZipDataset:22
        BatchV2::Zip::Zip::ParallelInterleaveV4 ParallelInterleaveDatasetV4:21
        BatchV2::Zip::Zip::ParallelInterleaveV4::TensorSlice TensorSliceDataset:20
        BatchV2::Zip::Zip::ParallelInterleaveV4::Map MapDataset:71
        BatchV2::Zip::Zip::ParallelInterleaveV4::Map::FlatMap FlatMapDataset:70
        BatchV2::Zip::Zip::ParallelInterleaveV4::Map::FlatMap::TFRecord TFRecordDataset:75
        ",
        calls,
        &[
            ("BatchV2::Zip", Some(6)),
            ("BatchV2::Zip::Range", Some(6)),
            ("BatchV2::Zip::Zip", Some(5)),
            (inner, Some(2)),
            (&format!("{inner}::TensorSlice"), Some(1)),
            (&format!("{inner}::Map"), Some(4)),
            (&format!("{inner}::Map::FlatMap"), Some(3)),
            (&format!("{inner}::Map::FlatMap::TFRecord"), Some(3)),
        ],
    );
}

#[test]
fn a_pipeline_of_other_calls_is_nobodys() {
    check(
        BATCHED,
        "dataset.from_tensor_slices @1\ndataset.filter f @2 <0\ndataset.batch @3 <1",
        &[("BatchV2::ParallelMapV2", None), ("BatchV2", None)],
    );
    check(BATCHED, "tf.function f @1", &[("BatchV2", None)]);
}

fn tables(calls: &str) -> Tables {
    let mut trace = draw("host/main: train 0..10");
    trace.processes.push(process(calls));
    Tables::new(Arc::new(trace))
}

#[test]
fn functions_are_found_by_the_names_of_compilers() {
    let tables = tables(
        "
        tf.function train_step @3
        jax.jit update @5
        jax.jit twice @6
        jax.jit twice @7
        dataset.map augment @8
        ",
    );
    for (name, line) in [
        ("train_step", Some(3)),
        ("__inference_train_step_123", Some(3)),
        ("PjitFunction(update)", Some(5)),
        ("jit(update)", Some(5)),
        ("jit_update", Some(5)),
        ("Trainer.update", Some(5)),
        ("twice", None),
        ("augment", None),
        ("", None),
    ] {
        assert_eq!(site_of_function(&tables, name).map(|it| it.line), line, "{name}");
    }
    assert_eq!(plain_function("__inference_step_2_77"), "step_2");
}

#[test]
fn callbacks_are_those_that_fit_takes() {
    let tables = tables(
        "
        keras.callback Unused @1
        keras.callback Log @2
        keras.compile @3
        keras.fit @4 <1
        ",
    );
    let names: Vec<_> = callback_sites(&tables).into_iter().map(|it| it.name.unwrap()).collect();
    assert_eq!(names, ["Log"]);
    assert_eq!(fit_site(&tables).map(|it| it.line), Some(4));
    assert_eq!(compile_site(&tables).map(|it| it.line), Some(3));
}

#[test]
fn places_and_calls_are_short() {
    let site = CodeSite {
        call: Some("ds.map(augment)".to_owned()),
        ..CodeSite::at_line("dataset.map", "/me/train.py", 42)
    };
    assert_eq!((site.place().as_str(), site.call().as_str()), ("train.py:42", "ds.map(augment)"));
    let site = CodeSite { call: None, name: Some("augment".to_owned()), ..site };
    assert_eq!(site.call(), "map(augment)");
    let site = CodeSite {
        text: "@tf.function\ndef step(x):".to_owned(),
        name: Some("step".to_owned()),
        ..site
    };
    assert_eq!(site.call(), "step");
    let cell = CodeSite::at_line("keras.fit", "/tmp/ipykernel_4711/632161008.py", 3);
    assert_eq!((cell.place().as_str(), cell.call().as_str()), ("line 3 of a notebook cell", "fit"));
    let site = CodeSite { args: "num_parallel_calls=4, deterministic=False".to_owned(), ..cell };
    assert_eq!(
        (site.arg("num_parallel_calls"), site.arg("deterministic"), site.arg("n")),
        (Some("4"), Some("False"), None)
    );
}
