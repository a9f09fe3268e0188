//! Generated traces: valid JSON, exact counts, equal bytes for equal recipes, and links that hold.
#![expect(
    clippy::unwrap_used,
    reason = "a test stops where its input is not what it must be"
)]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;
use veloq_tracegen::{Backend, Counts, Era, Merge, Shape, Size, Spec, generate};

fn run(spec: &Spec) -> (Counts, Value) {
    let mut text = Vec::new();
    let counts = generate(spec, &mut text).unwrap();
    (counts, serde_json::from_slice(&text).unwrap())
}

fn events(trace: &Value) -> &Vec<Value> {
    trace["traceEvents"].as_array().unwrap()
}

fn of_category<'a>(trace: &'a Value, cat: &str) -> Vec<&'a Value> {
    events(trace).iter().filter(|event| event["cat"] == cat).collect()
}

#[test]
fn writes_exactly_the_events_asked_for() {
    for shape in [
        Shape::Training,
        Shape::Nested(None),
        Shape::Nested(Some(16)),
        Shape::GraphFanout,
        Shape::DistinctNames,
        Shape::ManyStreams,
        Shape::PythonHeavy,
    ] {
        let spec = Spec {
            size: Size::Events(10_000),
            shape,
            ..Spec::default()
        };
        let (counts, trace) = run(&spec);
        assert_eq!(counts.events, 10_000, "{shape:?}");
        assert_eq!(events(&trace).len(), 10_000, "{shape:?}");
        assert_eq!(counts.by_category.values().sum::<u64>(), 10_000, "{shape:?}");
    }
}

#[test]
fn equal_recipes_give_equal_bytes_and_seeds_differ() {
    let text = |seed| {
        let mut out = Vec::new();
        generate(
            &Spec {
                seed,
                ..Spec::default()
            },
            &mut out,
        )
        .unwrap();
        out
    };
    assert_eq!(text(7), text(7));
    assert_ne!(text(7), text(8));
}

#[test]
fn counts_agree_with_the_file() {
    let (counts, trace) = run(&Spec::default());
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for event in events(&trace) {
        *seen
            .entry(event["cat"].as_str().unwrap_or_default().to_owned())
            .or_default() += 1;
    }
    assert_eq!(counts.by_category, seen);
    assert_eq!(counts.steps, 3);
}

/// Every device row has one launch that ends before it starts, and its op encloses that launch.
#[test]
fn device_rows_follow_their_launch_and_its_op() {
    for backend in [Backend::Cuda, Backend::Rocm] {
        let (_, trace) = run(&Spec {
            backend,
            ..Spec::default()
        });
        let number = |event: &Value, key: &str| event["args"][key].as_i64().unwrap();
        let launches: BTreeMap<i64, &Value> = of_category(&trace, "cuda_runtime")
            .into_iter()
            .map(|e| (number(e, "correlation"), e))
            .collect();
        let ops: BTreeMap<i64, &Value> = of_category(&trace, "cpu_op")
            .into_iter()
            .map(|e| (number(e, "External id"), e))
            .collect();
        let kernels = of_category(&trace, "kernel");
        assert!(kernels.len() > 90);
        for kernel in kernels {
            let launch = launches[&number(kernel, "correlation")];
            assert!(end(launch) <= start(kernel));
            let op = ops[&number(kernel, "External id")];
            assert!(start(op) <= start(launch) && end(launch) <= end(op));
        }
    }
}

#[test]
fn rows_of_one_stream_do_not_overlap() {
    let spec = Spec {
        devices: 2,
        streams: 2,
        graph_kernels: Some(5),
        ..Spec::default()
    };
    let (_, trace) = run(&spec);
    let mut tracks: BTreeMap<(i64, i64), Vec<(i64, i64)>> = BTreeMap::new();
    for event in events(&trace) {
        if matches!(event["cat"].as_str(), Some("kernel" | "gpu_memcpy")) {
            let track = (event["pid"].as_i64().unwrap(), event["tid"].as_i64().unwrap());
            tracks.entry(track).or_default().push((start(event), end(event)));
        }
    }
    assert_eq!(
        tracks.keys().copied().collect::<Vec<_>>(),
        [(0, 7), (0, 13), (0, 20), (1, 7), (1, 13), (1, 20)]
    );
    for rows in tracks.values_mut() {
        rows.sort_unstable();
        assert!(rows.windows(2).all(|pair| pair[0].1 <= pair[1].0));
    }
}

/// CPU ranges of one thread nest: a row ends before the row around it does.
#[test]
fn cpu_rows_nest() {
    let (_, trace) = run(&Spec::default());
    let mut threads: BTreeMap<i64, Vec<(i64, i64)>> = BTreeMap::new();
    for event in events(&trace) {
        if matches!(
            event["cat"].as_str(),
            Some("cpu_op" | "user_annotation" | "python_function" | "cuda_runtime")
        ) {
            let rows = threads.entry(event["tid"].as_i64().unwrap()).or_default();
            rows.push((start(event), end(event)));
        }
    }
    assert_eq!(threads.len(), 2);
    for rows in threads.values_mut() {
        rows.sort_by_key(|(start, end)| (*start, -end));
        let mut open: Vec<i64> = Vec::new();
        for (start, end) in rows {
            while open.last().is_some_and(|outer| outer <= start) {
                open.pop();
            }
            assert!(open.last().is_none_or(|outer| *end <= *outer));
            open.push(*end);
        }
    }
}

#[test]
fn forward_and_backward_ends_pair_up_on_two_threads() {
    let (_, trace) = run(&Spec::default());
    let ends = |ph: &str| -> BTreeMap<i64, i64> {
        let flows = of_category(&trace, "fwdbwd")
            .into_iter()
            .filter(|event| event["ph"] == ph);
        flows
            .map(|event| (event["id"].as_i64().unwrap(), event["tid"].as_i64().unwrap()))
            .collect()
    };
    let (from, to) = (ends("s"), ends("f"));
    // 6 layers of two nodes each and the loss, in 3 steps.
    assert_eq!(from.len(), 3 * (6 * 2 + 1));
    assert_eq!(from.keys().collect::<Vec<_>>(), to.keys().collect::<Vec<_>>());
    assert!(from.values().all(|tid| *tid == 251) && to.values().all(|tid| *tid == 4251));
}

#[test]
fn a_graph_launch_owns_all_its_kernels() {
    let spec = Spec {
        size: Size::Events(1000),
        shape: Shape::GraphFanout,
        ..Spec::default()
    };
    let (_, trace) = run(&spec);
    assert_eq!(of_category(&trace, "cuda_runtime").len(), 1);
    let kernels = of_category(&trace, "kernel");
    assert_eq!(kernels.len(), 999);
    assert!(kernels.iter().all(|kernel| kernel["args"]["correlation"] == 1));
}

#[test]
fn python_heavy_is_95_percent_frames() {
    let spec = Spec {
        size: Size::Events(2000),
        shape: Shape::PythonHeavy,
        ..Spec::default()
    };
    let (counts, _) = run(&spec);
    assert_eq!(counts.by_category["python_function"], 1900);
    assert_eq!(counts.by_category["cpu_op"], 100);
}

#[test]
fn merged_prefix_keeps_ids_and_strings_the_pids() {
    let (_, trace) = run(&Spec {
        ranks: 2,
        merge: Merge::PidPrefix,
        ..Spec::default()
    });
    let pids: BTreeSet<&str> = of_category(&trace, "kernel")
        .iter()
        .map(|e| e["pid"].as_str().unwrap())
        .collect();
    assert_eq!(pids.into_iter().collect::<Vec<_>>(), ["[TP00] 0", "[TP01] 0"]);
    let correlations = |pid: &str| -> BTreeSet<i64> {
        let rows = of_category(&trace, "kernel")
            .into_iter()
            .filter(|event| event["pid"] == pid);
        rows.map(|event| event["args"]["correlation"].as_i64().unwrap())
            .collect()
    };
    assert_eq!(correlations("[TP00] 0"), correlations("[TP01] 0"));
}

#[test]
fn merged_args_rank_shifts_ids_and_keeps_the_originals() {
    let (_, trace) = run(&Spec {
        ranks: 2,
        merge: Merge::ArgsRank,
        ..Spec::default()
    });
    assert_eq!(trace.as_object().unwrap().len(), 1);
    let mut seen = BTreeSet::new();
    for event in of_category(&trace, "kernel") {
        let args = &event["args"];
        assert!(args["correlation"] != args["correlation_raw"] || args["rank"] == 0);
        assert!(seen.insert((args["rank"].as_i64(), args["correlation"].as_i64())));
    }
    let ranks: BTreeSet<_> = seen.into_iter().map(|(rank, _)| rank).collect();
    assert_eq!(ranks, BTreeSet::from([Some(0), Some(1)]));
}

#[test]
fn several_ranks_without_a_dialect_are_refused() {
    let error = generate(
        &Spec {
            ranks: 2,
            ..Spec::default()
        },
        Vec::new(),
    )
    .unwrap_err();
    assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
}

#[test]
fn every_era_is_json() {
    for era in [
        Era::E1,
        Era::E3,
        Era::E4,
        Era::E5,
        Era::E6,
        Era::E7,
        Era::E8,
        Era::E9,
    ] {
        let (_, trace) = run(&Spec {
            era,
            ..Spec::default()
        });
        let kernel = if era == Era::E1 { "Kernel" } else { "kernel" };
        assert!(!of_category(&trace, kernel).is_empty(), "{era:?}");
        assert_eq!(
            trace.get("baseTimeNanoseconds").is_some(),
            era >= Era::E6,
            "{era:?}"
        );
    }
}

/// Three-decimal microseconds of a few weeks fit a double well enough to round back to ns.
#[expect(clippy::cast_possible_truncation, reason = "values stay far below 2^53")]
fn ns(value: &Value) -> i64 {
    (value.as_f64().unwrap() * 1000.0).round() as i64
}

fn start(event: &Value) -> i64 {
    ns(&event["ts"])
}

fn end(event: &Value) -> i64 {
    start(event) + ns(&event["dur"])
}
