//! What must hold between answers, whatever the trace: sums of parts are the whole, and verbs agree.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

#[expect(dead_code, reason = "each test binary uses a part of it")]
mod support;

use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};
use veloq_source_pytorch as _;

use support::Asked;

/// A row: whether it is a kernel, its lane (a thread, or a stream of a device), start and duration in ns.
type Row = (bool, i64, i64, i64);

fn rows() -> impl Strategy<Value = Vec<Row>> {
    prop::collection::vec((any::<bool>(), 0_i64..4, 0_i64..2_000, 0_i64..600), 1..40)
}

/// Writes rows as a trace. A kernel's lane is one of two streams on one of two devices.
fn trace(rows: &[Row]) -> Asked {
    let us = |ns: i64| json!(f64::from(i32::try_from(ns).unwrap()) / 1000.0);
    let element = |(is_kernel, lane, start, duration): &Row| {
        let (ts, dur) = (us(*start + 1_000_000), us(*duration));
        if *is_kernel {
            let (device, stream) = (lane / 2, 7 + lane % 2);
            json!({ "ph": "X", "cat": "kernel", "name": "k", "pid": device, "tid": stream, "ts": ts, "dur": dur,
                "args": { "device": device, "stream": stream } })
        } else {
            json!({ "ph": "X", "cat": "cpu_op", "name": "aten::op", "pid": 100, "tid": lane, "ts": ts, "dur": dur })
        }
    };
    let elements: Vec<Value> = rows.iter().map(element).collect();
    Asked::new(
        "any.pt.trace.json",
        json!({ "traceEvents": elements }).to_string().as_bytes(),
    )
}

fn number(row: &Value, field: &str) -> i64 {
    row[field].as_i64().unwrap_or_else(|| panic!("{field} of {row}"))
}

fn sum(rows: &[Value], field: &str) -> i64 {
    rows.iter().map(|row| number(row, field)).sum()
}

/// How many instants of a nanosecond some of the rows cover.
fn covered<'r>(rows: impl Iterator<Item = &'r Row> + Clone) -> i64 {
    let is_covered = |at: &i64| {
        rows.clone()
            .any(|(_, _, start, duration)| (*start..start + duration).contains(at))
    };
    i64::try_from((0..2_600).filter(is_covered).count()).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn buckets_add_up_to_the_busy_time_of_the_devices(all in rows(), interval in 1_i64..900) {
        let trace = trace(&all);
        let devices = trace.summary()["devices"].as_array().unwrap().clone();
        let busy: BTreeMap<i64, i64> =
            devices.iter().map(|device| (number(device, "device_id"), number(device, "busy_ns"))).collect();
        for (device, busy_ns) in &busy {
            let of_device = all.iter().filter(|row| row.0 && row.1 / 2 == *device);
            prop_assert_eq!(*busy_ns, covered(of_device), "device {}", device);
        }
        prop_assert_eq!(busy.len(), (0..2).filter(|device| all.iter().any(|row| row.0 && row.1 / 2 == *device)).count());
        let buckets = trace.rows("timeline", json!({ "interval": format!("{interval}ns") }));
        if !busy.is_empty() {
            prop_assert_eq!(sum(&buckets, "gpu_ns"), busy.values().sum::<i64>());
        }
        prop_assert_eq!(sum(&buckets, "cpu_ns"), covered(all.iter().filter(|row| !row.0)));
    }

    #[test]
    fn groups_are_measured_as_their_rows_are(all in rows()) {
        let trace = trace(&all);
        for (row_type, is_kernel) in [("kernel", true), ("cpu-op", false)] {
            let of_type = all.iter().filter(|row| row.0 == is_kernel);
            let mut durations: Vec<i64> = of_type.clone().map(|row| row.3).collect();
            durations.sort_unstable();
            let groups = trace.rows("stats", json!({ "type": [row_type], "group_by": ["type"], "limit": 0 }));
            let Some(longest) = durations.last() else {
                prop_assert!(groups.is_empty());
                continue;
            };
            let group = &groups[0];
            prop_assert_eq!(number(group, "max_ns"), *longest);
            prop_assert_eq!(number(group, "total_ns"), durations.iter().sum::<i64>());
            prop_assert_eq!(number(group, "busy_ns"), covered(of_type.clone()));
            prop_assert!(number(group, "busy_ns") <= number(group, "total_ns"));
            for (field, percent) in [("p50_ns", 50), ("p95_ns", 95)] {
                let rank = (durations.len() * percent).div_ceil(100);
                prop_assert_eq!(number(group, field), durations[rank - 1]);
            }
            let found = trace.rows("search", json!({ "type": [row_type], "limit": 0 }));
            prop_assert_eq!(sum(&found, "duration_ns"), number(group, "total_ns"));
        }
    }

    #[test]
    fn own_times_of_a_thread_add_up_to_its_busy_time(all in rows()) {
        let trace = trace(&all);
        let threads = trace.rows("stats", json!({ "type": ["cpu-op"], "group_by": ["thread"], "limit": 0 }));
        for thread in &threads {
            prop_assert_eq!(number(thread, "self_ns"), number(thread, "busy_ns"), "{}", thread);
        }
        let by_force: i64 = (0..4).map(|lane| covered(all.iter().filter(|row| !row.0 && row.1 == lane))).sum();
        prop_assert_eq!(sum(&threads, "self_ns"), by_force);
    }
}
