use super::*;
use crate::comm::classify::classify;
use crate::ingest::testing::TestRows;

fn collectives_with(table: &TestRows, header: &Header) -> Vec<Collective> {
    let linked = table.link(Some(0));
    let comm = classify(&table.rows, &table.strings, &linked.nesting);
    collect(
        &table.rows,
        &linked.ranks,
        &linked.nesting,
        &linked.steps,
        &comm,
        header,
    )
}

fn collectives(table: &TestRows) -> Vec<Collective> {
    collectives_with(table, &Header::default())
}

/// Args of a collective of 8 ranks.
fn args(name: &str, dtype: &str, in_elements: i64, out_elements: i64) -> String {
    format!(
        r#"{{"Collective name": "{name}", "dtype": "{dtype}", "In msg nelems": {in_elements},
            "Out msg nelems": {out_elements}, "Group size": 8, "Process Group Name": "0",
            "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1, 2, 3, 4, 5, 6, 7]",
            "Seq": 12}}"#
    )
}

/// A described collective as NCCL records it, its kernel at 2,000..1,002,000 ns: 1,000 us.
fn described(name: &str, dtype: &str, in_elements: i64, out_elements: i64) -> (TestRows, [u32; 5]) {
    let mut table = TestRows::default();
    let outer = table.op("c10d::something_", 0, 1_000);
    let describing = table.op("record_param_comms", 100, 800);
    table.collective_args(describing, &args(name, dtype, in_elements, out_elements));
    let annotation = table.annotation(&format!("nccl:{name}"), 200, 600);
    table.call("cudaLaunchKernelExC", 300, 100, 5);
    let kernel = table.kernel("ncclDevKernel_Generic(int)", 2_000, 1_000_000, 5);
    let projection = table.device(
        RowType::Annotation,
        &format!("nccl:{name}"),
        1_999,
        1_000_002,
        NONE,
    );
    (table, [outer, describing, annotation, kernel, projection])
}

#[test]
fn all_rows_of_a_collective_are_one() {
    let (table, [outer, describing, annotation, kernel, projection]) =
        described("all_reduce", "Float", 1_000_000, 1_000_000);
    let all = collectives(&table);
    let [one] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(one.kind, CommKind::AllReduce);
    assert_eq!(one.cpu_row, describing);
    assert_eq!(one.kernel_rows, [kernel]);
    assert_eq!(one.event_rows, [outer, annotation, projection]);
    assert_eq!((one.start_ns, one.dur_ns), (2_000, 1_000_000));
    assert_eq!((one.rank, one.step, one.ordinal), (0, NONE, 0));
    assert_eq!((one.sequence, one.confidence), (Some(12), Confidence::Metadata));
    assert_eq!(one.exposed_ns, Some(1_000_000));
    let group = &one.process_group;
    assert_eq!((group.name.as_deref(), group.size), (Some("0"), Some(8)));
    assert_eq!(group.ranks, Some((0..8).collect()));
}

#[test]
fn bandwidths_follow_the_convention() {
    for (name, dtype, elements, sizes, algorithm, bus) in [
        (
            "all_reduce",
            "Float",
            (1_000_000, 1_000_000),
            (4_000_000, 4_000_000),
            4.0,
            7.0,
        ),
        (
            "_allgather_base",
            "BFloat16",
            (1_000_000, 8_000_000),
            (2_000_000, 16_000_000),
            16.0,
            14.0,
        ),
    ] {
        let (table, _) = described(name, dtype, elements.0, elements.1);
        let one = &collectives(&table)[0];
        assert_eq!((one.in_bytes, one.out_bytes), (Some(sizes.0), Some(sizes.1)));
        assert_eq!(one.bandwidth.algorithm, Some(algorithm), "{name}");
        assert_eq!(one.bandwidth.bus, Some(bus), "{name}");
    }
}

#[test]
fn unknown_types_leave_sizes_unknown() {
    let (table, _) = described("all_reduce", "Float6", 1_000_000, 1_000_000);
    let one = &collectives(&table)[0];
    assert_eq!((one.in_bytes, one.out_bytes), (None, None));
    assert_eq!(one.bandwidth, Bandwidth::default());
    assert_eq!(one.dtype.as_deref(), Some("Float6"));
}

#[test]
fn barriers_are_collectives_without_sizes_and_waits_are_none() {
    let (mut table, _) = described("barrier", "Byte", 8, 8);
    let wait = table.op("record_param_comms", 1_100, 10);
    table.collective_args(
        wait,
        r#"{"Collective name": "wait", "dtype": "Byte", "In msg nelems": 0}"#,
    );
    let all = collectives(&table);
    assert_eq!(all.len(), 1);
    assert_eq!(all[0].kind, CommKind::Barrier);
    assert_eq!(
        (all[0].in_bytes, all[0].out_bytes, all[0].dtype.as_deref()),
        (None, None, None)
    );
    assert_eq!(all[0].bandwidth, Bandwidth::default());
}

#[test]
fn nested_descriptions_are_counted_once() {
    let mut table = TestRows::default();
    let outer = table.op("record_param_comms", 0, 100);
    let inner = table.op("record_param_comms", 10, 50);
    table.collective_args(outer, &args("allreduce", "Float", 5, 5));
    table.collective_args(inner, &args("allreduce", "Float", 5, 5));
    table.call("cudaLaunchKernel", 20, 5, 5);
    let kernel = table.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", 200, 50, 5);
    let all = collectives(&table);
    assert_eq!(all.len(), 1);
    assert_eq!(
        (all[0].cpu_row, &all[0].kernel_rows, &all[0].event_rows),
        (inner, &vec![kernel], &vec![outer])
    );
}

#[test]
fn args_of_the_kernel_go_before_those_of_the_operator() {
    let (mut table, [_, _, _, kernel, _]) = described("all_reduce", "Float", 1_000_000, 1_000_000);
    table.collective_args(
        kernel,
        r#"{"Collective name": "_allgather_base", "dtype": "Half", "In msg nelems": 10, "Out msg nelems": 80}"#,
    );
    let one = &collectives(&table)[0];
    assert_eq!(one.kind, CommKind::AllGather);
    assert_eq!((one.in_bytes, one.out_bytes), (Some(20), Some(160)));
    assert_eq!(one.sequence, Some(12));
}

#[test]
fn an_enclosing_description_goes_before_the_name() {
    let mut table = TestRows::default();
    let describing = table.op("record_param_comms", 0, 100);
    table.collective_args(describing, r#"{"Collective name": "barrier"}"#);
    table.call("cudaLaunchKernel", 20, 5, 5);
    table.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", 200, 50, 5);
    assert_eq!(collectives(&table)[0].kind, CommKind::Barrier);
}

#[test]
fn kernels_launched_before_the_capture_stand_alone() {
    let mut table = TestRows::default();
    let named = table.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", 0, 50, 5);
    let generic = table.kernel("ncclDevKernel_Generic(int)", 60, 50, 6);
    let told = table.kernel("ncclDevKernel_Generic(int)", 120, 50, 7);
    table.collective_args(told, &args("broadcast", "Float", 5, 5));
    let all = collectives(&table);
    let facts: Vec<_> = all
        .iter()
        .map(|one| (one.kind, one.cpu_row, one.kernel_rows.clone(), one.confidence))
        .collect();
    assert_eq!(
        facts,
        [
            (CommKind::AllReduce, NO_ROW, vec![named], Confidence::Name),
            (CommKind::Unknown, NO_ROW, vec![generic], Confidence::Name),
            (CommKind::Broadcast, NO_ROW, vec![told], Confidence::Metadata),
        ]
    );
    assert_eq!(all[0].in_bytes, None);
}

#[test]
fn exposed_time_is_what_compute_of_the_same_device_leaves() {
    let mut table = TestRows::default();
    table.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", 0, 100, 5);
    table.on_stream(0, 8);
    table.kernel("gemm", 20, 30, 6);
    table.kernel("gemm", 40, 20, 7);
    // Copies, other communication and other devices cover nothing.
    table.device(RowType::Memcpy, "Memcpy HtoD (Pinned -> Device)", 60, 20, 8);
    table.on_stream(0, 9);
    table.kernel("ncclDevKernel_AllGather_RING_LL(int)", 90, 20, 9);
    table.on_stream(1, 7);
    table.kernel("gemm", 0, 100, 10);
    let all = collectives(&table);
    assert_eq!(all[0].exposed_ns, Some(60));
    assert_eq!(all[1].exposed_ns, Some(20));
}

#[test]
fn annotations_of_other_threads_are_joined_in_the_order_of_calls() {
    let mut table = TestRows::default();
    let first = table.op("c10d::allreduce_", 100, 10);
    let second = table.op("c10d::allreduce_", 120, 10);
    let gathered = table.op("c10d::allgather_", 140, 10);
    table.on_thread(2);
    let before = table.annotation("gloo:all_reduce", 0, 50);
    let of_first = table.annotation("gloo:all_reduce", 200, 300);
    let of_second = table.annotation("gloo:all_reduce", 500, 300);
    table.on_thread(3);
    let of_gathered = table.annotation("gloo:all_gather", 150, 40);
    let header = Header::read(&[(
        "distributedInfo".to_owned(),
        r#"{"pg_count": 1, "pg_config": [{"pg_name": "0", "pg_size": 4, "ranks": [0, 1, 2, 3]}]}"#.into(),
    )]);
    let all = collectives_with(&table, &header);
    let facts: Vec<_> = all
        .iter()
        .map(|one| {
            (
                one.cpu_row,
                one.event_rows.clone(),
                one.start_ns,
                one.dur_ns,
                one.confidence,
            )
        })
        .collect();
    assert_eq!(
        facts,
        [
            (before, vec![], 0, 50, Confidence::Name),
            (gathered, vec![of_gathered], 150, 40, Confidence::Time),
            (first, vec![of_first], 200, 300, Confidence::Time),
            (second, vec![of_second], 500, 300, Confidence::Time),
        ]
    );
    assert_eq!(all[1].exposed_ns, None);
    assert_eq!(all[1].process_group.size, Some(4));
    let ordinals: Vec<_> = all.iter().map(|one| (one.kind, one.ordinal)).collect();
    assert_eq!(
        ordinals,
        [
            (CommKind::AllReduce, 0),
            (CommKind::AllGather, 0),
            (CommKind::AllReduce, 1),
            (CommKind::AllReduce, 2)
        ]
    );
}

#[test]
fn calls_without_device_work_have_sizes_but_no_bandwidth() {
    let mut table = TestRows::default();
    let describing = table.op("record_param_comms", 0, 100);
    table.collective_args(describing, &args("allreduce", "Float", 5, 5));
    let one = &collectives(&table)[0];
    assert_eq!((one.start_ns, one.dur_ns, one.in_bytes), (0, 100, Some(20)));
    assert_eq!((one.bandwidth, one.exposed_ns), (Bandwidth::default(), None));
}

#[test]
fn a_coalesced_group_is_one_collective_of_its_members() {
    let mut table = TestRows::default();
    let mut members = Vec::new();
    for (at, name) in [
        (0, "startCoalescing"),
        (10, "send"),
        (20, "recv"),
        (30, "endCoalescing"),
    ] {
        let row = table.op("record_param_comms", at, 8);
        table.collective_args(row, &args(name, "Float", 5, 5));
        members.push(row);
    }
    table.call("cudaLaunchKernelExC", 32, 1, 5);
    let kernel = table.kernel("ncclDevKernel_SendRecv(int)", 50, 5, 5);
    let all = collectives(&table);
    let [one] = all.as_slice() else { panic!("{all:?}") };
    assert_eq!(one.kind, CommKind::SendRecv);
    assert_eq!(
        (one.cpu_row, &one.kernel_rows, &one.event_rows),
        (members[3], &vec![kernel], &members[1..3].to_vec())
    );
    assert_eq!((one.in_bytes, one.out_bytes), (Some(40), Some(40)));
    assert_eq!(one.confidence, Confidence::Metadata);
}

#[test]
fn steps_are_those_of_the_launch_and_number_ordinals_apart() {
    let mut table = TestRows::default();
    table.step(4, 0, 100);
    table.step(5, 100, 100);
    // The backward pass calls from a thread of its own, and device work runs late.
    table.on_thread(2);
    for at in [10, 50, 110] {
        let describing = table.op("record_param_comms", at, 20);
        table.collective_args(describing, &args("allreduce", "Float", 5, 5));
        table.call("cudaLaunchKernelExC", at + 5, 1, at);
        table.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", 1_000 + at, 5, at);
    }
    let steps: Vec<_> = collectives(&table)
        .iter()
        .map(|one| (one.step, one.ordinal))
        .collect();
    assert_eq!(steps, [(4, 0), (4, 1), (5, 0)]);
}

#[test]
fn shortened_members_come_from_the_header() {
    let mut table = TestRows::default();
    let describing = table.op("record_param_comms", 0, 100);
    table.collective_args(
        describing,
        r#"{"Collective name": "allreduce", "Process Group Name": "7", "Group size": 3,
            "Process Group Ranks": "[0, ..., 9]", "Global rank start": 0, "Global rank stride": 1}"#,
    );
    let header = Header::read(&[(
        "distributedInfo".to_owned(),
        r#"{"pg_config": [{"pg_name": "7", "pg_desc": "tp", "pg_size": 3, "ranks": [0, 5, 9]}]}"#.into(),
    )]);
    let group = collectives_with(&table, &header)[0].process_group.clone();
    assert_eq!(
        (group.ranks.clone(), group.description.as_deref()),
        (Some(vec![0, 5, 9]), Some("tp"))
    );
    let spaced = collectives(&table)[0].process_group.clone();
    assert_eq!(spaced.ranks, Some(vec![0, 1, 2]));
}

#[test]
fn rows_without_a_time_make_no_collective() {
    let mut table = TestRows::default();
    let op = table.op("record_param_comms", 0, 10);
    table.collective_args(op, &args("allreduce", "Float", 5, 5));
    table.rows.start_ns[op as usize] = NONE;
    let kernel = table.kernel("ncclDevKernel_AllReduce_Sum_f32_RING_LL(int)", 0, 5, 5);
    table.rows.dur_ns[kernel as usize] = NONE;
    assert_eq!(collectives(&table), []);
}
