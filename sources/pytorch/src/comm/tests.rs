//! Whole files: the fixtures with known answers, and recorded traces where they are at hand.

use crate::comm::collectives::{Collective, Confidence};
use crate::comm::kind::CommKind;
use crate::ingest::columns::NO_ROW;
use crate::ingest::testing::TestTrace;

/// Kind, bytes in and out, bandwidths.
type Facts = (CommKind, Option<i64>, Option<i64>, Option<f64>, Option<f64>);

fn facts(collective: &Collective) -> Facts {
    (
        collective.kind,
        collective.in_bytes,
        collective.out_bytes,
        collective.bandwidth.algorithm,
        collective.bandwidth.bus,
    )
}

fn known(kind: CommKind, in_bytes: i64, out_bytes: i64, algorithm: f64, bus: f64) -> Facts {
    (kind, Some(in_bytes), Some(out_bytes), Some(algorithm), Some(bus))
}

fn unknown(kind: CommKind) -> Facts {
    (kind, None, None, None, None)
}

#[test]
fn the_fixture_of_collectives_has_the_answers_of_its_table() {
    use CommKind::*;
    let trace = TestTrace::fixture("collectives.json");
    let all = &trace.derived.collectives;
    const MB: i64 = 1_000_000;
    let of_float = known(AllReduce, 4 * MB, 4 * MB, 4.0, 7.0);
    assert_eq!(
        all.iter().map(facts).collect::<Vec<_>>(),
        [
            of_float,
            known(AllGather, 2 * MB, 16 * MB, 16.0, 14.0),
            known(ReduceScatter, 16 * MB, 2 * MB, 16.0, 14.0),
            known(Broadcast, 4 * MB, 4 * MB, 4.0, 4.0),
            known(AllToAll, 4 * MB, 4 * MB, 4.0, 3.5),
            known(Send, MB, MB, 1.0, 1.0),
            known(Recv, MB, MB, 1.0, 1.0),
            unknown(Barrier),
            of_float,
            of_float,
            of_float,
            unknown(AllReduce),
            unknown(Unknown),
        ]
    );
    assert_eq!(all[0].exposed_ns, Some(600_000));
    assert_eq!((all[7].exposed_ns, all[1].exposed_ns), (None, Some(1_000_000)));
    assert!(all[..11].iter().all(|one| one.confidence == Confidence::Metadata));
    assert!(all[11..].iter().all(|one| one.confidence == Confidence::Name));
    assert_eq!(trace.derived.comm.unclassified.count, 1);
}

#[test]
fn traps_hold_no_communication() {
    for name in [
        "trap_gpu_annotation_named_nccl.json",
        "trap_gemm_with_nccl_argument.json",
    ] {
        let trace = TestTrace::fixture(name);
        assert_eq!(trace.derived.collectives, [], "{name}");
        assert!(trace.derived.comm.kind.iter().all(|kind| *kind == 0), "{name}");
    }
}

#[test]
fn both_backends_tell_the_same_of_a_run() {
    let [cuda, rocm] = ["cuda_training.pt.trace.json.gz", "rocm_training.pt.trace.json.gz"]
        .map(|name| TestTrace::fixture(name).derived.collectives);
    assert_eq!(cuda.len(), 9);
    assert_eq!(
        cuda.iter().map(facts).collect::<Vec<_>>(),
        rocm.iter().map(facts).collect::<Vec<_>>()
    );
    assert_eq!(cuda.iter().map(|one| one.dur_ns).sum::<i64>(), 377_828);
    assert_eq!(cuda.iter().filter_map(|one| one.exposed_ns).sum::<i64>(), 134_337);
    let first = &cuda[0];
    assert_eq!((first.in_bytes, first.dur_ns), (Some(4_198_400), 39_735));
    assert_eq!(
        first.bandwidth.algorithm.map(|gb| (gb * 100.0).round()),
        Some(10_566.0)
    );
    assert_eq!(first.bandwidth.bus.map(|gb| (gb * 100.0).round()), Some(18_490.0));
}

#[test]
fn work_of_gloo_threads_is_joined_with_its_calls() {
    for rank in 0..4 {
        let trace = TestTrace::fixture(&format!("gloo_ddp_rank{rank}.pt.trace.json.gz"));
        let all = &trace.derived.collectives;
        let count = |kind| all.iter().filter(|one| one.kind == kind).count();
        assert_eq!(
            [
                CommKind::AllReduce,
                CommKind::AllGather,
                CommKind::Broadcast,
                CommKind::Barrier
            ]
            .map(count),
            [2, 2, 4, 2],
            "rank {rank}"
        );
        let rows = &trace.collected.rows;
        for one in all {
            let work = one.event_rows[0] as usize;
            assert_eq!((one.rank, one.confidence), (rank, Confidence::Time));
            assert_eq!(
                (one.start_ns, one.dur_ns),
                (rows.start_ns[work], rows.dur_ns[work])
            );
            assert!(rows.start_ns[one.cpu_row as usize] <= one.start_ns);
            assert_eq!(one.process_group.size, Some(4));
        }
    }
}

#[test]
fn recorded_nccl_collectives_are_one_a_kernel() {
    let Some(trace) = TestTrace::recorded("nccl_collectives.json.gz") else {
        return;
    };
    let all = &trace.derived.collectives;
    let count = |kind| all.iter().filter(|one| one.kind == kind).count();
    assert_eq!(
        (all.len(), count(CommKind::AllReduce), count(CommKind::Broadcast)),
        (21, 15, 6)
    );
    for one in all {
        assert_eq!((one.kernel_rows.len(), one.event_rows.len()), (1, 3));
        assert_eq!(
            (one.confidence, one.process_group.ranks.as_deref()),
            (Confidence::Metadata, Some(&[0, 1][..]))
        );
        // In a group of two, 2(n-1)/n is 1.
        assert_eq!(one.bandwidth.algorithm, one.bandwidth.bus);
    }
    assert_eq!(trace.derived.comm.unclassified.count, 0);
}

#[test]
fn recorded_rccl_kernels_without_args_stay_unknown() {
    let Some(trace) = TestTrace::recorded("mi300_resnet_training_steps.json.gz") else {
        return;
    };
    let all = &trace.derived.collectives;
    let (unknown, known): (Vec<_>, Vec<_>) = all.iter().partition(|one| one.kind == CommKind::Unknown);
    assert_eq!((unknown.len(), known.len()), (5, 12));
    assert!(
        unknown
            .iter()
            .all(|one| one.cpu_row == NO_ROW && one.in_bytes.is_none())
    );
    assert!(
        known
            .iter()
            .all(|one| one.in_bytes.is_some() && one.kernel_rows.len() == 1)
    );
    assert_eq!(trace.derived.comm.unclassified.count, 5);
}

#[test]
fn recorded_operators_without_args_are_told_by_their_annotations() {
    let Some(trace) = TestTrace::recorded("v100_2022_control.json.gz") else {
        return;
    };
    let all = &trace.derived.collectives;
    let count = |kind| all.iter().filter(|one| one.kind == kind).count();
    assert_eq!(
        (all.len(), count(CommKind::AllReduce), count(CommKind::AllToAll)),
        (60, 18, 42)
    );
    assert!(
        all.iter()
            .all(|one| one.confidence == Confidence::Linked && one.kernel_rows.len() == 1)
    );
}

#[test]
fn recorded_groups_of_one_have_sizes_but_no_bandwidth() {
    let Some(trace) = TestTrace::recorded("v100_nccl_rank0.pt.trace.json.gz") else {
        return;
    };
    let all = &trace.derived.collectives;
    assert_eq!(all.len(), 35);
    for one in all {
        assert!(one.in_bytes.is_some() && one.kernel_rows.is_empty());
        assert_eq!((one.bandwidth.bus, one.exposed_ns), (None, None));
    }
}
