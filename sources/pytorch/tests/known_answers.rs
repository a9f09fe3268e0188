//! The answers that `fixtures/README.md` gives for each fixture, asked of the source itself.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use serde_json::{Value, json};
use veloq_core::{PrepOptions, sources};
use veloq_source_pytorch as _;

use support::{Asked, fixture};

/// Busy time in µs of the devices, in their order.
fn busy_us(summary: &Value) -> Vec<f64> {
    let devices = summary["devices"].as_array().unwrap();
    devices
        .iter()
        .map(|device| device["busy_ns"].as_f64().unwrap() / 1000.0)
        .collect()
}

#[test]
fn dependent_launches_overlap_and_are_counted_once() {
    let trace = fixture("trap_pdl_overlap.json");
    assert_eq!(busy_us(&trace.summary()), [28.0]);
    assert_eq!(trace.summary()["devices"][0]["total_ns"], 30_000);
    assert_eq!(trace.finding("gpu.stream_overlap").unwrap()["count"], 1);
    assert_eq!(trace.finding("gpu.impossible_overlap"), None);
}

#[test]
fn streams_are_those_of_their_device() {
    let trace = fixture("trap_same_stream_two_devices.json");
    assert_eq!(busy_us(&trace.summary()), [100.0, 100.0]);
    assert_eq!(trace.finding("gpu.stream_overlap"), None);
    assert_eq!(
        trace.ask("search", json!({ "stream": 7 })),
        Err("scope.device_required".to_owned())
    );
    assert_eq!(
        trace
            .rows("search", json!({ "stream": 7, "device": 1, "type": ["kernel"] }))
            .len(),
        1
    );
}

#[test]
fn correlation_zero_joins_nothing() {
    let trace = fixture("trap_correlation_zero.json");
    let unlinked = trace.finding("gpu.unlinked_rows").unwrap();
    assert_eq!(unlinked["count"], 5);
    assert_eq!(busy_us(&trace.summary()), [60.0]);
}

#[test]
fn annotations_on_a_stream_are_no_device_time() {
    let trace = fixture("trap_gpu_annotation_named_nccl.json");
    assert_eq!(busy_us(&trace.summary()), [100.0]);
}

#[test]
fn an_argument_named_like_a_communicator_makes_no_communication() {
    let trace = fixture("trap_gemm_with_nccl_argument.json");
    assert_eq!(
        trace.rows("search", json!({ "is_comm": true })),
        Vec::<Value>::new()
    );
}

#[test]
fn a_kernel_belongs_to_the_step_of_its_launch() {
    let trace = fixture("trap_kernel_in_next_step.json");
    assert_eq!(trace.event("late")["step"], 1);
    assert_eq!(
        trace
            .rows("search", json!({ "step": 1, "type": ["kernel"] }))
            .len(),
        1
    );
    assert_eq!(
        trace
            .rows("search", json!({ "step": 2, "type": ["kernel"] }))
            .len(),
        0
    );
}

#[test]
fn traces_without_steps_say_so() {
    let trace = fixture("trap_no_steps.json");
    let summary = trace.summary();
    assert_eq!(summary["steps"]["count"], 0);
    assert_eq!(summary["capabilities"]["steps"]["available"], false);
    assert_eq!(busy_us(&summary), [60.0]);
}

#[test]
fn launches_without_device_rows_are_told_from_no_device_work() {
    let trace = fixture("trap_launches_without_device_rows.json");
    assert_eq!(trace.finding("gpu.missing").unwrap()["count"], 3);
    assert_eq!(trace.summary()["devices"], json!([]));
    assert_eq!(fixture("trap_no_steps.json").finding("gpu.missing"), None);
}

#[test]
fn a_kernel_before_its_launch_is_a_clock_inversion() {
    let trace = fixture("trap_kernel_before_launch.json");
    let finding = trace.finding("time.clock_inversion").unwrap();
    assert_eq!(finding["count"], 1);
    assert!(
        finding["detail"]
            .as_str()
            .unwrap()
            .contains("median 3000 ns, at most 3000 ns"),
        "{finding}"
    );
}

#[test]
fn rows_at_zero_among_epoch_times_are_in_no_span() {
    let trace = fixture("trap_zero_ts_among_epoch.json");
    assert_eq!(trace.finding("time.invalid_rows").unwrap()["count"], 1);
    assert_eq!(trace.event("broken")["start_ns"], Value::Null);
    assert_eq!(trace.event("good")["start_ns"], 50_000);
    assert_eq!(busy_us(&trace.summary()), [30.0]);
}

#[test]
fn crossing_rows_are_counted() {
    assert_eq!(
        fixture("trap_crossing_rows.json")
            .finding("nesting.crossing_rows")
            .unwrap()["count"],
        2
    );
}

#[test]
fn external_ids_that_repeat_correlations_are_not_believed() {
    for name in [
        "trap_external_id_is_correlation.json",
        "era_e3.json",
        "era_e4.json",
    ] {
        let summary = fixture(name).summary();
        assert_eq!(summary["unattributed_device_time_ns"], 0, "{name}");
    }
}

#[test]
fn all_eras_give_the_same_rows() {
    let shape = |name: &str| {
        let rows = fixture(name).rows(
            "search",
            json!({ "type": ["cpu-op", "runtime", "kernel", "memcpy", "step"] }),
        );
        rows.into_iter()
            .map(|row| json!([row["name"], row["start_ns"], row["duration_ns"], row["step"]]))
            .collect()
    };
    let newest: Vec<Value> = shape("era_e9.json");
    assert!(!newest.is_empty());
    for era in ["e3", "e4", "e5", "e6", "e7", "e8"] {
        assert_eq!(shape(&format!("era_{era}.json")), newest, "{era}");
    }
}

#[test]
fn merged_ranks_need_a_choice() {
    for name in ["merged_prefix.json", "merged_args_rank.json"] {
        let trace = fixture(name);
        assert_eq!(
            trace.ask("search", json!({})),
            Err("scope.rank_required".to_owned()),
            "{name}"
        );
        assert_eq!(
            trace.ask("search", json!({ "rank": 9 })),
            Err("scope.unknown_rank".to_owned()),
            "{name}"
        );
        let of = |request| {
            trace.ask("search", request).unwrap()["total_matched"]
                .as_u64()
                .unwrap()
        };
        let ranks = trace.summary()["ranks"].as_array().unwrap().clone();
        assert_eq!(ranks.len(), 2, "{name}");
        let each: u64 = ranks.iter().map(|rank| of(json!({ "rank": rank["rank"] }))).sum();
        assert_eq!(each, of(json!({ "all_ranks": true })), "{name}");
        assert!(trace.finding("rank.merged_file").is_some(), "{name}");
    }
}

#[test]
fn damage_is_got_over_and_told() {
    for (name, code) in [
        ("damaged_truncated.json", "input.truncated"),
        ("damaged_truncated.json.gz", "input.truncated"),
        ("damaged_raw_newline.json", "input.repaired"),
        ("damaged_unescaped_quote.json", "input.repaired"),
        ("damaged_nan.json", "input.repaired"),
        ("damaged_trailing_comma.json", "input.repaired"),
        ("damaged_bad_utf8.json", "input.repaired"),
    ] {
        let trace = fixture(name);
        assert!(
            trace.finding(code).is_some(),
            "{name}: {}",
            trace.summary()["trust"]
        );
        let strict = PrepOptions {
            strict: true,
            ..PrepOptions::default()
        };
        let failure = sources()[0].prep(&trace.input, &strict).unwrap_err();
        let expected = if code == "input.truncated" {
            "input.truncated"
        } else {
            "input.damaged"
        };
        assert_eq!(failure.code(), expected, "{name}");
    }
}

#[test]
fn a_cut_trace_answers_the_same_packed_or_plain() {
    let answers = ["damaged_truncated.json", "damaged_truncated.json.gz"].map(|name| {
        let trace = fixture(name);
        let mut finding = trace.finding("input.truncated").unwrap();
        (
            trace.rows("search", json!({ "limit": 0 })),
            finding["detail"].take(),
        )
    });
    assert_eq!(answers[0].0.len(), 100);
    assert_eq!(answers[0], answers[1]);
}

#[test]
fn undamaged_fixtures_have_no_input_findings() {
    for name in [
        "cuda_training.pt.trace.json.gz",
        "bare_array.json",
        "byte_order_mark.json",
        "era_e8.json",
    ] {
        let trace = fixture(name);
        for code in ["input.truncated", "input.repaired", "input.skipped_events"] {
            assert_eq!(trace.finding(code), None, "{name}");
        }
    }
}

/// Returns the only group of a name in `stats`.
fn group(trace: &Asked, types: &str, name: &str) -> Value {
    let request = json!({ "type": [types], "name": name, "limit": 0 });
    let rows = trace.rows("stats", request);
    assert_eq!(rows.len(), 1, "`{name}`: {rows:?}");
    rows[0].clone()
}

#[test]
fn recursion_counts_device_time_once() {
    let recurse = group(&fixture("trap_recursion.json"), "cpu-op", "aten::recurse");
    assert_eq!(
        (&recurse["total_ns"], &recurse["busy_ns"]),
        (&json!(150_000), &json!(100_000))
    );
    assert_eq!(recurse["self_ns"], 100_000);
    assert_eq!(
        (&recurse["gpu_self_ns"], &recurse["gpu_total_ns"]),
        (&json!(8_000), &json!(8_000))
    );
}

#[test]
fn a_group_of_several_kinds_counts_device_time_once() {
    for name in ["cuda_training.pt.trace.json.gz", "cuda_graph.json"] {
        let data = fixture(name)
            .ask("stats", json!({ "group_by": ["rank"] }))
            .unwrap();
        let of_all = &data["rows"][0];
        let total_ns = &data["auxiliary"]["device_time"]["total_ns"];
        assert_eq!(
            (&of_all["gpu_self_ns"], &of_all["gpu_total_ns"]),
            (total_ns, total_ns),
            "{name}: every device row was launched by some call"
        );
        assert_eq!(of_all["self_ns"], Value::Null, "{name}: frames enclose operators");
    }
}

#[test]
fn self_time_is_that_of_the_innermost_row() {
    let listed_first = fixture("trap_child_listed_first.json");
    let own = |name| {
        group(&listed_first, "cpu-op", &format!("aten::{name}"))["self_ns"]
            .as_i64()
            .unwrap()
    };
    assert_eq!(
        [own("outer"), own("inner"), own("twin_first"), own("twin_second")],
        [4_000, 6_000, 0, 10_000]
    );
    let crossing = fixture("trap_crossing_rows.json");
    let ops = crossing.rows("stats", json!({ "type": ["cpu-op"], "group_by": ["type"] }));
    assert_eq!(
        (&ops[0]["busy_ns"], &ops[0]["self_ns"]),
        (&json!(25_000), &json!(25_000))
    );
}

#[test]
fn overlapping_kernels_are_summed_and_united() {
    let kernels =
        fixture("trap_pdl_overlap.json").rows("stats", json!({ "type": ["kernel"], "group_by": ["type"] }));
    assert_eq!(
        (&kernels[0]["total_ns"], &kernels[0]["busy_ns"]),
        (&json!(30_000), &json!(28_000))
    );
}

#[test]
fn device_time_goes_to_the_operator_around_the_launch() {
    let trace = fixture("trap_external_id_is_correlation.json");
    assert_eq!(group(&trace, "cpu-op", "aten::mm")["gpu_self_ns"], 30_000);
    assert_eq!(group(&trace, "cpu-op", "aten::add")["gpu_self_ns"], 20_000);
    let rows = trace.rows("stats", json!({ "group_by": ["launched-by"] }));
    let by: Vec<_> = rows
        .iter()
        .map(|row| (row["key"].as_str().unwrap(), row["total_ns"].as_i64().unwrap()))
        .collect();
    assert_eq!(
        by,
        [
            ("stats|launched-by:aten::mm", 30_000),
            ("stats|launched-by:aten::add", 20_000)
        ]
    );
}

#[test]
fn device_time_without_device_rows_is_unknown_not_zero() {
    let trace = fixture("trap_launches_without_device_rows.json");
    let data = trace.ask("stats", json!({ "type": ["cpu-op"] })).unwrap();
    assert!(!data["rows"].as_array().unwrap().is_empty());
    for row in data["rows"].as_array().unwrap() {
        assert_eq!(
            (&row["gpu_self_ns"], &row["gpu_total_ns"]),
            (&Value::Null, &Value::Null)
        );
    }
    assert_eq!(data["auxiliary"]["device_time"]["total_ns"], Value::Null);
    let bucket = &trace.rows("timeline", json!({}))[0];
    assert_eq!(bucket["gpu_ns"], Value::Null);
}

#[test]
fn operators_and_the_unattributed_make_all_device_time() {
    for name in [
        "cuda_training.pt.trace.json.gz",
        "rocm_training.pt.trace.json.gz",
        "cuda_graph.json",
        "collectives.json",
    ] {
        let data = fixture(name)
            .ask("stats", json!({ "type": ["cpu-op"], "limit": 0 }))
            .unwrap();
        let of_ops: i64 = data["rows"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(|row| row["gpu_self_ns"].as_i64())
            .sum();
        let time = &data["auxiliary"]["device_time"];
        assert_eq!(of_ops, time["attributed_ns"].as_i64().unwrap(), "{name}");
        let parts = of_ops + time["unattributed_ns"].as_i64().unwrap();
        assert_eq!(parts, time["total_ns"].as_i64().unwrap(), "{name}");
    }
}

#[test]
fn buckets_add_up_to_the_busy_time() {
    let trace = fixture("cuda_training.pt.trace.json.gz");
    for interval in ["7us", "100us", "1ms", "1s"] {
        let data = trace.ask("timeline", json!({ "interval": interval })).unwrap();
        let buckets = data["rows"].as_array().unwrap();
        let sum = |field: &str| {
            buckets
                .iter()
                .map(|bucket| bucket[field].as_i64().unwrap())
                .sum::<i64>()
        };
        assert_eq!(
            (sum("gpu_ns"), sum("comm_ns"), sum("exposed_comm_ns")),
            (2_746_848, 377_828, 134_337),
            "{interval}"
        );
        let width = data["auxiliary"]["interval_ns"].as_i64().unwrap();
        assert!(
            buckets
                .iter()
                .all(|bucket| bucket["gpu_ns"].as_i64().unwrap() <= width)
        );
        // The mark of the capture's end lies at the window's end, outside.
        assert_eq!(sum("event_count"), 722);
    }
    assert_eq!(
        trace.ask("timeline", json!({ "interval": "1ns" })),
        Err("limit.buckets".to_owned())
    );
}

#[test]
fn collectives_have_the_bandwidths_of_nccl_tests() {
    let rows = fixture("collectives.json").rows("collectives", json!({ "limit": 0 }));
    let shown: Vec<_> = rows
        .iter()
        .map(|row| {
            (
                row["collective_kind"].as_str().unwrap(),
                row["algbw_gb_per_s"].as_f64(),
                row["busbw_gb_per_s"].as_f64(),
            )
        })
        .collect();
    let of = |kind, algorithm: f64, bus: f64| (kind, Some(algorithm), Some(bus));
    let expected = [
        of("all_reduce", 4.0, 7.0),
        of("all_gather", 16.0, 14.0),
        of("reduce_scatter", 16.0, 14.0),
        of("broadcast", 4.0, 4.0),
        of("all_to_all", 4.0, 3.5),
        of("send", 1.0, 1.0),
        of("recv", 1.0, 1.0),
        ("barrier", None, None),
        of("all_reduce", 4.0, 7.0),
        of("all_reduce", 4.0, 7.0),
        of("all_reduce", 4.0, 7.0),
        ("all_reduce", None, None),
        ("unknown", None, None),
    ];
    assert_eq!(shown, expected);
    assert_eq!(rows[0]["exposed_ns"], 600_000);
    for row in &rows[rows.len() - 2..] {
        assert_eq!(
            (&row["confidence"], &row["in_bytes"]),
            (&json!("name"), &Value::Null)
        );
    }
}

/// Returns the answer of `correlate` to one seed.
fn chain(trace: &Asked, row_id: &str) -> Value {
    trace.rows("correlate", json!({ "row_ids": [row_id], "limit": 0 }))[0].clone()
}

/// Returns the roles and ids of a chain, outermost first.
fn roles(chain: &Value) -> Vec<(&str, &str)> {
    let events = chain["events"].as_array().unwrap();
    events
        .iter()
        .map(|event| (event["role"].as_str().unwrap(), event["row_id"].as_str().unwrap()))
        .collect()
}

#[test]
fn a_kernel_is_followed_up_to_its_step() {
    let trace = fixture("one_kernel.pt.trace.json");
    let up = chain(&trace, "kernel:3");
    let expected = [
        ("step", "step:0"),
        ("cpu_op", "cpu_op:1"),
        ("runtime", "runtime:2"),
        ("device", "kernel:3"),
    ];
    assert_eq!(roles(&up), expected);
    assert_eq!(up["reason"], Value::Null);
    let launch = &up["launch"];
    let times = [
        &launch["api_ns"],
        &launch["launch_to_start_ns"],
        &launch["queue_ns"],
    ];
    assert_eq!(times, [&json!(10_000), &json!(30_000), &json!(0)]);
    assert_eq!(roles(&chain(&trace, "cpu_op:1")), expected);
}

#[test]
fn contradicting_clocks_leave_the_launch_delay_unknown() {
    let up = chain(&fixture("trap_kernel_before_launch.json"), "kernel:2");
    assert_eq!(
        (&up["launch"]["api_ns"], &up["launch"]["launch_to_start_ns"]),
        (&json!(10_000), &Value::Null)
    );
    assert!(up["reason"].as_str().unwrap().contains("clocks contradict"));
}

#[test]
fn a_graph_launch_leads_to_all_its_rows_and_each_back() {
    let trace = fixture("cuda_graph.json");
    let down = chain(&trace, "runtime:2");
    let kernels: Vec<String> = roles(&down)
        .into_iter()
        .filter(|(role, _)| *role == "device")
        .map(|(_, id)| id.to_owned())
        .collect();
    assert_eq!((kernels.len(), &down["device_total"]), (10, &json!(10)));
    for kernel in kernels {
        assert!(
            roles(&chain(&trace, &kernel)).contains(&("runtime", "runtime:2")),
            "{kernel}"
        );
    }
}

#[test]
fn unlinked_kernels_say_why() {
    let up = chain(&fixture("trap_correlation_zero.json"), "kernel:6");
    assert_eq!(up["launch"], Value::Null);
    assert!(
        up["reason"].as_str().unwrap().contains("correlation 0"),
        "{}",
        up["reason"]
    );
}

#[test]
fn slices_get_work_by_launch_or_by_time() {
    let of_steps = |name: &str, attribution: &str| -> Vec<i64> {
        let rows = fixture(name).rows("slices", json!({ "type": ["step"], "attribution": attribution }));
        rows.iter()
            .map(|row| row["attributed_gpu_ns"].as_i64().unwrap())
            .collect()
    };
    assert_eq!(of_steps("trap_kernel_in_next_step.json", "launch"), [20_000, 0]);
    assert_eq!(of_steps("trap_kernel_in_next_step.json", "time"), [0, 20_000]);
    assert_eq!(of_steps("cuda_graph.json", "launch"), [105_000]);
    // Forward on the main thread, backward on the autograd thread: all launches are some step's.
    let trace = fixture("cuda_training.pt.trace.json.gz");
    let data = trace.ask("slices", json!({ "type": ["step"] })).unwrap();
    let sum: i64 = data["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["attributed_gpu_ns"].as_i64().unwrap())
        .sum();
    assert_eq!((sum, &data["auxiliary"]["outside_ns"]), (2_990_339, &json!(0)));
}

#[test]
fn windows_clip_attributed_work_and_nothing_else() {
    let trace = fixture("cuda_graph.json");
    // Ten kernels of 10 us from 130 us on: half of the third lies before 155 us.
    let rows = trace.rows("slices", json!({ "type": ["step"], "to": "155us" }));
    assert_eq!(
        (&rows[0]["attributed_gpu_ns"], &rows[0]["gpu_count"]),
        (&json!(25_000), &json!(3))
    );
    assert_eq!(
        (&rows[0]["start_ns"], &rows[0]["duration_ns"]),
        (&json!(0), &json!(1_000_000))
    );
}

#[test]
fn instances_add_up_to_aggregates() {
    let trace = fixture("cuda_training.pt.trace.json.gz");
    let instances = trace.rows("slices", json!({ "limit": 0 }));
    for group_by in ["name", "step", "path"] {
        let aggregates = trace.rows(
            "slices",
            json!({ "aggregate": true, "group_by": group_by, "limit": 0 }),
        );
        let sum =
            |rows: &[Value], field: &str| rows.iter().map(|row| row[field].as_i64().unwrap()).sum::<i64>();
        assert_eq!(
            sum(&instances, "attributed_gpu_ns"),
            sum(&aggregates, "total_gpu_ns"),
            "{group_by}"
        );
        assert_eq!(
            sum(&instances, "duration_ns"),
            sum(&aggregates, "total_cpu_ns"),
            "{group_by}"
        );
        assert_eq!(
            i64::try_from(instances.len()).unwrap(),
            sum(&aggregates, "instances"),
            "{group_by}"
        );
    }
}

#[test]
fn row_ids_under_a_wrong_prefix_name_the_right_one() {
    let trace = fixture("one_kernel.pt.trace.json");
    let row = &trace.rows("inspect", json!({ "row_ids": ["cpu_op:3"] }))[0];
    assert_eq!(row["found"], false);
    assert!(row["reason"].as_str().unwrap().contains("`kernel:3`"));
}
