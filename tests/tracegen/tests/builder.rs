//! What the builder writes, read back as JSON.
#![expect(
    clippy::unwrap_used,
    reason = "a test stops where its input is not what it must be"
)]

use std::fs;
use std::io::Read;

use serde_json::{Value, json};
use veloq_tracegen::{Collective, Era, Input, Json, Layout, Merge, Time, Trace};

fn events(trace: &Trace) -> Vec<Value> {
    let root: Value = serde_json::from_str(&trace.to_json()).unwrap();
    let events = if root.is_array() {
        &root
    } else {
        &root["traceEvents"]
    };
    events.as_array().unwrap().clone()
}

fn last(trace: &Trace) -> Value {
    events(trace).pop().unwrap()
}

#[test]
fn rows_carry_the_times_and_links_they_were_given() {
    let trace = Trace::new()
        .cpu_op("aten::mm", 1, 0, "100")
        .ext(2)
        .launch("cudaLaunchKernel", 1, "20", 20_000, 77)
        .ext(2)
        .kernel("gemm", 0, 7, "50", "150.5", 77)
        .ext(2);
    let rows = events(&trace);
    assert_eq!(rows[0]["args"]["External id"], 2);
    assert_eq!(rows[1]["dur"], 20.0);
    assert_eq!(
        rows[1]["args"],
        json!({"External id": 2, "cbid": 211, "correlation": 77})
    );
    assert_eq!(rows[2]["dur"], 150.5);
    assert_eq!((&rows[2]["pid"], &rows[2]["tid"]), (&json!(0), &json!(7)));
}

#[test]
fn flows_copy_track_time_and_correlation_and_take_no_index() {
    let trace = Trace::new()
        .launch("cudaLaunchKernel", 1, 5_000, 1_000, 77)
        .ac2g()
        .kernel("k", 0, 7, 9_000, 1_000, 77)
        .ac2g();
    let rows = events(&trace);
    assert_eq!(
        rows[1],
        json!({"ph": "s", "id": 77, "cat": "ac2g", "name": "ac2g", "pid": 900, "tid": 1, "ts": 5.0})
    );
    assert_eq!(
        (&rows[3]["ph"], &rows[3]["bp"], &rows[3]["ts"]),
        (&json!("f"), &json!("e"), &json!(9.0))
    );
    assert_eq!(
        (trace.row_count(), trace.row_index(), trace.index_of("k")),
        (2, 1, Some(1))
    );
}

#[test]
fn rocm_speaks_hip_and_shows_agents() {
    let trace = Trace::new().rocm().launch("cudaLaunchKernel", 1, 0, 10, 7);
    let launch = last(&trace);
    assert_eq!(launch["name"], "hipLaunchKernel");
    assert_eq!(launch["args"]["cid"], 107);
    let kernel = last(&trace.kernel("k", 0, 0, 20, 10, 7));
    assert_eq!(
        (&kernel["pid"], &kernel["args"]["device"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(kernel["args"]["kind"], "Dispatch Kernel");
    assert_eq!(
        last(&Trace::new().rocm().memory(1, 0, 512, 1, 0))["args"]["Device Type"],
        6
    );
}

#[test]
fn eras_spell_the_same_kernel_differently() {
    let kernel = |era| last(&Trace::new().era(era).kernel("k", 0, 7, "10", "2.5", 9));
    let first = kernel(Era::E1);
    assert_eq!(
        (&first["cat"], &first["tid"]),
        (&json!("Kernel"), &json!("stream 7"))
    );
    assert_eq!(
        (&first["ts"], &first["dur"]),
        (&json!(1_650_000_000_000_010_i64), &json!(2))
    );
    assert_eq!(kernel(Era::E3)["args"]["External id"], 9);
    assert_eq!(kernel(Era::E6)["args"]["External id"], 9);
    assert_eq!(kernel(Era::E8)["args"].get("External id"), None);
    assert_eq!(kernel(Era::E9)["args"]["graph id"], 0);
}

#[test]
fn the_base_moved_before_the_events_with_e8() {
    let position = |era| {
        let text = Trace::new().era(era).to_json();
        (text.find("baseTimeNanoseconds"), text.find("traceEvents"))
    };
    assert!(position(Era::E7).0 > position(Era::E7).1);
    assert!(position(Era::E8).0 < position(Era::E8).1);
    assert_eq!(position(Era::E4).0, None);
}

#[test]
fn header_keys_replace_join_and_vanish() {
    let trace = Trace::new()
        .rank(3)
        .header("with_stack", 1)
        .header("displayTimeUnit", "ns")
        .without("baseTimeNanoseconds")
        .trailer("note", Json::raw("[1]"))
        .trailer("trace_id", "late");
    let root: Value = serde_json::from_str(&trace.to_json()).unwrap();
    assert_eq!(root["with_stack"], 1);
    assert_eq!(root["displayTimeUnit"], "ns");
    assert_eq!(root.get("baseTimeNanoseconds"), None);
    assert_eq!(root["note"], json!([1]));
    assert_eq!(root["distributedInfo"], json!({"rank": 3}));
    assert_eq!(trace.to_json().matches("trace_id").count(), 1);
}

#[test]
fn roots_can_be_reduced() {
    let trace = Trace::new().cpu_op("a", 1, 0, 1);
    let root: Value = serde_json::from_str(&trace.clone().events_only().to_json()).unwrap();
    assert_eq!(
        root.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["traceEvents"]
    );
    assert!(trace.clone().bare_array().to_json().starts_with("[\n{"));
    assert_eq!(events(&trace.clone().bare_array()), events(&trace));
    assert_eq!(events(&trace.clone().layout(Layout::Kineto)), events(&trace));
    assert!(events(&Trace::new()).is_empty());
}

#[test]
fn merged_files_scope_ids_by_rank() {
    let kernel = |t: Trace| t.rank(2).kernel("k", 1, 7, 0, 10, 77);
    let prefixed = last(&kernel(Trace::new().merge(Merge::PidPrefix)));
    assert_eq!(
        (&prefixed["pid"], &prefixed["args"]["correlation"]),
        (&json!("[TP02] 1"), &json!(77))
    );
    let named = Trace::new()
        .merge(Merge::PidPrefix)
        .rank_prefix(2, "[TP00-DP01]")
        .cpu_op("a", 1, 0, 1);
    assert_eq!(last(&named)["pid"], "[TP00-DP01] 900");
    let shifted = kernel(Trace::new().merge(Merge::ArgsRank)).ac2g();
    let rows = events(&shifted);
    assert_eq!(rows[0]["pid"], 200_000_001);
    assert_eq!(rows[0]["args"]["correlation"], 200_000_077);
    assert_eq!(
        (&rows[0]["args"]["rank"], &rows[0]["args"]["pid_raw"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(
        (&rows[1]["id"], &rows[1]["args"]["id_raw"]),
        (&json!(200_000_077), &json!(77))
    );
}

#[test]
fn memory_rows_keep_running_totals_per_device() {
    let rows = events(
        &Trace::new()
            .memory(1, 0, 512, 1, 0)
            .memory(1, 10, 100, 2, -1)
            .memory(1, 20, 1024, 3, 0)
            .memory(1, 30, -512, 1, 0),
    );
    let totals: Vec<_> = rows
        .iter()
        .map(|row| row["args"]["Total Allocated"].as_i64().unwrap())
        .collect();
    assert_eq!(totals, [512, 100, 1536, 1024]);
    assert_eq!(
        (&rows[0]["ph"], &rows[0]["args"]["Device Type"]),
        (&json!("i"), &json!(1))
    );
    assert_eq!(
        (
            &rows[1]["args"]["Device Type"],
            &rows[1]["args"]["Total Reserved"]
        ),
        (&json!(0), &json!(0))
    );
}

#[test]
fn shapes_and_collectives_become_arguments() {
    let op = Trace::new()
        .cpu_op("aten::add", 1, 0, 1)
        .seq(5, 0)
        .inputs(&[Input::tensor(&[2, 3, 4], "float"), Input::scalar("1")]);
    let args = &last(&op)["args"];
    assert_eq!(args["Input Dims"], json!([[2, 3, 4], []]));
    assert_eq!(args["Input Strides"], json!([[12, 4, 1], []]));
    assert_eq!(args["Concrete Inputs"], json!(["", "1"]));
    assert_eq!(args["Sequence number"], 5);
    let collective = Collective::new("allreduce", "Float", 10, 10, 2).rank(1);
    let args = &last(&Trace::new().record_param_comms(1, 0, 1, &collective))["args"];
    assert_eq!(
        (&args["Rank"], &args["Process Group Ranks"]),
        (&json!(1), &json!("[0, 1]"))
    );
    assert_eq!(
        (&args["In split size"], &args["Group size"]),
        (&json!("[]"), &json!(2))
    );
}

#[test]
fn damage_is_written_as_given() {
    let trace = Trace::new()
        .cpu_op("a", 1, Time::verbatim("12.0"), "1e3")
        .arg("x", Json::raw("nan"))
        .raw("{oops");
    let text = trace.to_json();
    assert!(text.contains("\"ts\": 12.0, \"dur\": 1e3,"));
    assert!(text.contains("\"x\": nan"));
    assert!(text.contains(",\n{oops\n"));
    assert_eq!(trace.row_count(), 2);
}

#[test]
fn gzip_files_are_reproducible_and_decompress_to_the_text() {
    let folder = tempfile::tempdir().unwrap();
    let trace = Trace::new().cpu_op("a", 1, 0, 1);
    let paths = [folder.path().join("a.gz"), folder.path().join("b.gz")];
    for path in &paths {
        trace.write_gz(path).unwrap();
    }
    let bytes = fs::read(&paths[0]).unwrap();
    assert_eq!(bytes, fs::read(&paths[1]).unwrap());
    assert_eq!(bytes[4..8], [0; 4], "modification time");
    let mut text = String::new();
    #[expect(
        clippy::disallowed_methods,
        reason = "the file is as small as its generator made it"
    )]
    let mut decoder = flate2::read::GzDecoder::new(&bytes[..]);
    decoder.read_to_string(&mut text).unwrap();
    assert_eq!(text, trace.to_json());
}
