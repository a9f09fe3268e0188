//! Taking the inventory of a trace when it is opened.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use veloq_core::{Severity, Trust};

use crate::ingest::collect::Collected;
use crate::ingest::columns::{NO_ROW, NONE};
use crate::ingest::derive::Derived;
use crate::interval::union;
use crate::kineto::issues::Seen;
use crate::kineto::metadata::Header;
use crate::kineto::names::{is_graph_launch, is_launch};
use crate::link::Tally;
use crate::row::{ROW_TYPES, RowType};

use super::capabilities::{Evidence, judge};
use super::findings::{Findings, Kind, code};
use super::{
    CountsByName, Damage, DeviceFacts, DistributedFacts, GroupFacts, Inventory, RankFacts, SpanFacts,
    StepFacts, WindowFacts, Windows,
};

/// What reading the text told of the input.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reading {
    /// Byte offset in the unpacked text at which it ends too early.
    pub(crate) truncated_at: Option<u64>,
    /// What was repaired.
    pub(crate) repaired: Vec<Seen>,
    /// What was passed over.
    pub(crate) skipped: Vec<Seen>,
    pub(crate) first_damage: Option<Damage>,
}

/// The parts an inventory is taken of.
pub(crate) struct Parts<'a> {
    pub(crate) collected: &'a Collected,
    pub(crate) derived: &'a Derived,
    pub(crate) header: &'a Header,
    pub(crate) reading: &'a Reading,
    /// The worker's name in the file's name, where it has one.
    pub(crate) worker: Option<String>,
}

/// Takes the inventory.
pub(crate) fn take(parts: &Parts<'_>) -> Inventory {
    let Parts {
        collected,
        derived,
        header,
        reading,
        worker,
    } = parts;
    let rows = &collected.rows;
    let (event_counts, by_type) = count_types(&collected.rows.row_type);
    let devices = devices(parts);
    let evidence = evidence(parts, &by_type);
    let rank = match derived.ranks.groups.as_slice() {
        [only] => only.rank,
        _ => None,
    };
    Inventory {
        span: span(derived, header),
        event_count: rows.len() as u64,
        rank,
        world_size: header.world_size().or(derived.comm.world_size),
        worker: worker.clone(),
        schema_version: header.schema_version,
        event_counts,
        category_counts: category_counts(collected),
        phase_counts: phase_counts(collected),
        ranks: ranks(parts, &devices),
        steps: steps(derived),
        threads: threads(parts),
        versions: header.versions(),
        capture_flags: header.capture_flags(),
        distributed: distributed(header),
        windows: windows(parts),
        capabilities: judge(&evidence),
        trust: trust(parts, &evidence, rank, reading),
        device_time_ns: derived.device_time.all_ns,
        unattributed_ns: derived.device_time.unattributed_ns,
        first_damage: reading.first_damage.clone(),
        devices,
    }
}

fn span(derived: &Derived, header: &Header) -> Option<SpanFacts> {
    let extent = &derived.span;
    if extent.is_empty {
        return None;
    }
    let base_ns = header.base_time_ns.unwrap_or(0);
    let origin_ns = i128::from(extent.origin_ns) + i128::from(base_ns);
    // Times of E0 to E5 count from 1970 themselves; others need the base. 10^18 ns is September 2001.
    let is_unix = origin_ns > 1_000_000_000_000_000_000;
    let span_ns = u64::try_from(extent.end_ns - extent.origin_ns).unwrap_or(0);
    Some(SpanFacts {
        origin_ns: origin_ns.to_string(),
        span_ns,
        is_unix,
    })
}

fn count_types(types: &[RowType]) -> (CountsByName, [u64; ROW_TYPES.len()]) {
    let mut by_type = [0_u64; ROW_TYPES.len()];
    for row_type in types {
        by_type[usize::from(row_type.code())] += 1;
    }
    let present = ROW_TYPES.iter().zip(by_type).filter(|(_, count)| *count > 0);
    (
        present
            .map(|(row_type, count)| (row_type.name().to_owned(), count.into()))
            .collect(),
        by_type,
    )
}

fn category_counts(collected: &Collected) -> CountsByName {
    let name = |number: u32| {
        if number == NO_ROW {
            ""
        } else {
            collected.strings.get(number)
        }
    };
    let sorted: BTreeMap<&str, u64> = collected
        .counts
        .categories
        .iter()
        .map(|(number, count)| (name(*number), *count))
        .collect();
    sorted
        .into_iter()
        .map(|(name, count)| (name.to_owned(), count.into()))
        .collect()
}

fn phase_counts(collected: &Collected) -> CountsByName {
    let name = |phase: u8| {
        if phase == 0 {
            String::new()
        } else {
            char::from(phase).to_string()
        }
    };
    collected
        .counts
        .phases
        .iter()
        .map(|(phase, count)| (name(*phase), (*count).into()))
        .collect()
}

fn devices(parts: &Parts<'_>) -> Vec<DeviceFacts> {
    #[derive(Default)]
    struct Device {
        counts: [u64; 3],
        streams: BTreeSet<i64>,
        intervals: Vec<Range<i64>>,
    }
    let Parts {
        collected,
        derived,
        header,
        ..
    } = parts;
    let rows = &collected.rows;
    let mut devices: BTreeMap<(u16, i64), Device> = BTreeMap::new();
    for (row, placement) in &rows.placement.0 {
        let at = *row as usize;
        let kind = match rows.row_type[at] {
            RowType::Kernel => 0,
            RowType::Memcpy => 1,
            RowType::Memset => 2,
            _ => continue,
        };
        let group = derived.ranks.of_track[rows.track[at] as usize];
        let device = devices.entry((group, placement.device)).or_default();
        device.counts[kind] += 1;
        if placement.stream != NONE {
            device.streams.insert(placement.stream);
        }
        if let Some(end_ns) = rows.end_ns(*row) {
            device.intervals.push(rows.start_ns[at]..end_ns);
        }
    }
    let origin_ns = derived.span.origin_ns;
    devices
        .into_iter()
        .map(|((group, device), facts)| {
            let total_ns = facts
                .intervals
                .iter()
                .map(|interval| interval.end - interval.start)
                .sum();
            let busy = union(facts.intervals);
            let busy_ns = busy.iter().map(|interval| interval.end - interval.start).sum();
            let first_start_ns = busy.first().map_or(0, |interval| interval.start - origin_ns);
            let last_end_ns = busy.last().map_or(0, |interval| interval.end - origin_ns);
            DeviceFacts {
                rank: derived.ranks.groups[usize::from(group)]
                    .rank
                    .filter(|_| derived.ranks.is_merged()),
                device_id: (device != NONE).then_some(device),
                name: header.device_name(device),
                kernels: facts.counts[0],
                memcpys: facts.counts[1],
                memsets: facts.counts[2],
                total_ns,
                busy_ns,
                first_start_ns,
                last_end_ns,
                busy_ratio: ratio(busy_ns, last_end_ns - first_start_ns),
                streams: facts.streams.into_iter().collect(),
            }
        })
        .collect()
}

/// Returns a share, or `None` of nothing.
#[expect(
    clippy::cast_precision_loss,
    reason = "a share needs no more than the 53 bits of a float"
)]
fn ratio(part: i64, whole: i64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

fn ranks(parts: &Parts<'_>, devices: &[DeviceFacts]) -> Vec<RankFacts> {
    let Parts {
        collected, derived, ..
    } = parts;
    let groups = &derived.ranks.groups;
    let mut counts = vec![0_u64; groups.len()];
    for track in &collected.rows.track {
        counts[usize::from(derived.ranks.of_track[*track as usize])] += 1;
    }
    let is_of = |device: &&DeviceFacts, rank: Option<i64>| !derived.ranks.is_merged() || device.rank == rank;
    groups
        .iter()
        .zip(counts)
        .map(|(group, event_count)| RankFacts {
            rank: group.rank,
            label: group.label.clone(),
            event_count,
            device_ids: devices
                .iter()
                .filter(|d| is_of(d, group.rank))
                .filter_map(|d| d.device_id)
                .collect(),
        })
        .collect()
}

fn steps(derived: &Derived) -> StepFacts {
    let steps = &derived.steps.steps;
    let durations = || steps.iter().map(|step| step.end_ns - step.start_ns);
    let count = i64::try_from(steps.len()).unwrap_or(i64::MAX);
    StepFacts {
        count: steps.len() as u64,
        first: steps.iter().map(|step| step.number).min(),
        last: steps.iter().map(|step| step.number).max(),
        mean_ns: (count > 0).then(|| durations().sum::<i64>() / count),
        max_ns: durations().max(),
    }
}

/// Returns whether rows of a type happen on a CPU thread, as far as the type tells.
fn is_cpu_side(row_type: RowType) -> bool {
    matches!(
        row_type,
        RowType::CpuOp
            | RowType::Annotation
            | RowType::Step
            | RowType::Runtime
            | RowType::Driver
            | RowType::Python
            | RowType::Memory
    )
}

fn threads(parts: &Parts<'_>) -> u64 {
    let Parts {
        collected, derived, ..
    } = parts;
    let rows = &collected.rows;
    let mut has_cpu_rows = vec![false; derived.ranks.of_track.len()];
    for row in rows.numbers() {
        let at = row as usize;
        if is_cpu_side(rows.row_type[at]) {
            has_cpu_rows[rows.track[at] as usize] = true;
        }
    }
    for (row, _) in &rows.placement.0 {
        // Projected annotations are on streams. A stream that shares its ids with a thread (pid 0, tid 0 of
        // frames older than the capture) is counted as that thread all the same.
        let at = *row as usize;
        if rows.row_type[at] == RowType::Annotation {
            has_cpu_rows[rows.track[at] as usize] = false;
        }
    }
    has_cpu_rows.into_iter().filter(|has| *has).count() as u64
}

fn windows(parts: &Parts<'_>) -> Windows {
    let Parts {
        collected, derived, ..
    } = parts;
    let rows = &collected.rows;
    let mut windows = Windows::default();
    let mut placed = rows.placement.0.iter().map(|(row, _)| *row).peekable();
    for row in rows.numbers() {
        let at = row as usize;
        let is_placed = placed.next_if_eq(&row).is_some();
        let window = match rows.row_type[at] {
            row_type if row_type.is_device_work() => &mut windows.gpu,
            row_type if is_cpu_side(row_type) && !is_placed => &mut windows.cpu,
            _ => continue,
        };
        if rows.start_ns[at] != NONE {
            let start_ns = rows.start_ns[at] - derived.span.origin_ns;
            let end_ns = rows
                .end_ns(row)
                .map_or(start_ns, |end| end - derived.span.origin_ns);
            *window = WindowFacts {
                first_start_ns: Some(
                    window
                        .first_start_ns
                        .map_or(start_ns, |first| first.min(start_ns)),
                ),
                last_end_ns: Some(window.last_end_ns.map_or(end_ns, |last| last.max(end_ns))),
            };
        }
    }
    windows
}

fn distributed(header: &Header) -> Option<DistributedFacts> {
    let info = header.distributed.as_ref()?;
    let groups = info.groups.iter().map(|group| GroupFacts {
        name: group.name.clone(),
        description: group.description.clone(),
        size: group.size,
        ranks: group.ranks.clone(),
    });
    Some(DistributedFacts {
        backend: info.backend.clone(),
        nccl_version: info.nccl_version.clone(),
        group_count: info.group_count,
        groups: groups.collect(),
    })
}

fn evidence(parts: &Parts<'_>, by_type: &[u64; ROW_TYPES.len()]) -> Evidence {
    let Parts {
        collected,
        derived,
        header,
        ..
    } = parts;
    let rows = &collected.rows;
    let of = |row_type: RowType| by_type[usize::from(row_type.code())];
    let has_name = |test: fn(&str) -> bool| collected.strings.iter().map(test).collect::<Vec<bool>>();
    let (launch_names, graph_names) = (has_name(is_launch), has_name(is_graph_launch));
    let mut evidence = Evidence {
        cpu_ops: of(RowType::CpuOp),
        annotations: of(RowType::Annotation),
        steps: of(RowType::Step),
        runtime: of(RowType::Runtime),
        driver: of(RowType::Driver),
        gpu_rows: of(RowType::Kernel) + of(RowType::Memcpy) + of(RowType::Memset),
        memory: of(RowType::Memory),
        python: of(RowType::Python),
        sync: of(RowType::Sync),
        forward_backward: derived.autograd.count,
        collective_metadata: rows.collective_args.0.len() as u64,
        shapes: rows.shape.iter().filter(|shape| **shape != NO_ROW).count() as u64,
        communication: derived.comm.kind.iter().filter(|kind| **kind != 0).count() as u64,
        has_stack_flag: header.flag("with_stack"),
        has_shapes_flag: header.flag("record_shapes"),
        has_memory_flag: header.flag("profile_memory"),
        has_distributed_info: header.distributed.is_some(),
        has_absolute_time: span(derived, header).is_some_and(|span| span.is_unix),
        has_devices: header.has_devices(),
        ..Evidence::default()
    };
    for row in rows.numbers() {
        let at = row as usize;
        let name = rows.name[at] as usize;
        match rows.row_type[at] {
            RowType::Runtime | RowType::Driver if rows.name[at] != NO_ROW => {
                evidence.launch_calls += u64::from(launch_names[name]);
                evidence.graphs += u64::from(graph_names[name]);
            }
            RowType::Python => {
                let is_module = collected
                    .strings
                    .get(rows.name[at])
                    .starts_with(crate::kineto::category::MODULE_PREFIX);
                evidence.modules += u64::from(is_module);
            }
            row_type if row_type.is_device_work() => {
                evidence.launch_links += u64::from(derived.launches.launch[at] != NO_ROW);
            }
            _ => {}
        }
    }
    evidence
}

/// Graph launches by how many of them have device rows.
fn graph_launches(parts: &Parts<'_>) -> (u64, Tally) {
    let Parts {
        collected, derived, ..
    } = parts;
    let rows = &collected.rows;
    let mut has_rows = vec![false; rows.len()];
    for call in derived.launches.launch.iter().filter(|call| **call != NO_ROW) {
        has_rows[*call as usize] = true;
    }
    let is_graph: Vec<bool> = collected.strings.iter().map(is_graph_launch).collect();
    let (mut with_rows, mut without) = (0, Tally::default());
    for row in rows.numbers() {
        let at = row as usize;
        if rows.row_type[at].is_api() && rows.name[at] != NO_ROW && is_graph[rows.name[at] as usize] {
            if has_rows[at] {
                with_rows += 1
            } else {
                without.add(row)
            }
        }
    }
    (with_rows, without)
}

fn kind(code: &'static str, severity: Severity, affects: &'static [&'static str]) -> Kind {
    Kind {
        code,
        severity,
        affects,
    }
}

#[expect(clippy::too_many_lines, reason = "one list, in the order of the codes")]
fn trust(parts: &Parts<'_>, evidence: &Evidence, rank: Option<i64>, reading: &Reading) -> Trust {
    use Severity::{Info, Warning};
    let Parts {
        collected,
        derived,
        header,
        ..
    } = parts;
    let mut found = Findings::new(&collected.rows);
    if let Some(offset) = reading.truncated_at {
        let detail =
            format!("The input ends too early, at byte {offset} of its text; what came before was kept.");
        found.push(
            &kind(code::TRUNCATED, Warning, &["event_count", "count", "total_ns"]),
            1,
            vec![],
            detail,
        );
    }
    for seen in &reading.repaired {
        found.on_elements(&kind(code::REPAIRED, Info, &["args", "name"]), seen);
    }
    for seen in &reading.skipped {
        let affects = &["event_count", "count", "total_ns"];
        found.on_elements(&kind(code::SKIPPED_EVENTS, Warning, affects), seen);
    }
    if collected.idle_names > 0 {
        let count = collected.idle_names;
        let detail =
            format!("{count} names of threads and processes that had no rows by then were passed over.");
        found.push(
            &kind(code::SKIPPED_EVENTS, Info, &["name"]),
            count,
            vec![],
            detail,
        );
    }
    let mut invalid = collected.invalid_times.clone();
    invalid.append(derived.absurd_times.clone(), 0);
    found.on_rows(
        &kind(
            code::INVALID_ROWS,
            Warning,
            &["start_ns", "duration_ns", "busy_ns"],
        ),
        &invalid,
        format!(
            "{} rows have no usable time; they are listed, but in no sum, span or window.",
            invalid.count
        ),
    );
    let inversions = &derived.inversions;
    found.on_rows(
        &kind(code::CLOCK_INVERSION, Warning, &["launch_to_start_ns", "queue_ns"]),
        &inversions.rows,
        format!(
            "{} device rows start before their launch call does (median {} ns, at most {} ns); they are left out \
             of launch latencies.",
            inversions.rows.count, inversions.median_ns, inversions.max_ns
        ),
    );
    if evidence.gpu_rows == 0 && evidence.launch_calls > 0 {
        let detail = format!(
            "{} calls launch device work, but the file has no device rows: GPU activity was not captured.",
            evidence.launch_calls
        );
        let affects = &["gpu_ns", "busy_ns", "gpu_self_ns", "gpu_total_ns"];
        found.push(
            &kind(code::GPU_MISSING, Warning, affects),
            evidence.launch_calls,
            vec![],
            detail,
        );
    }
    let unlinked = &derived.launches.unlinked;
    found.on_rows(
        &kind(code::UNLINKED_ROWS, Warning, &["gpu_self_ns", "gpu_total_ns", "step", "attributed_gpu_ns"]),
        unlinked,
        format!(
            "{} of {} device rows have no launch in the file ({} of them have correlation 0 or less); their time \
             belongs to no operator and no step.",
            unlinked.count, evidence.gpu_rows, derived.launches.zero_correlation.count
        ),
    );
    let streams = &derived.streams;
    found.on_rows(
        &kind(code::IMPOSSIBLE_OVERLAP, Warning, &["total_ns", "duration_ns"]),
        &streams.impossible,
        format!(
            "{} device rows run past the starts of many later rows of their stream: durations as written add up \
             to {} ns, cut at the next start to {} ns.",
            streams.impossible.count, streams.impossible_raw_ns, streams.impossible_clipped_ns
        ),
    );
    found.on_rows(
        &kind(code::STREAM_OVERLAP, Info, &["total_ns"]),
        &streams.overlapping,
        format!(
            "{} device rows start before an earlier row of their stream has ended (dependent launches, graph \
             branches); busy times count such time once, sums count it twice.",
            streams.overlapping.count
        ),
    );
    let (graphs_with_rows, graphs_without) = graph_launches(parts);
    if graphs_with_rows > 0 || evidence.gpu_rows > 0 {
        found.on_rows(
            &kind(code::GRAPH_PARTIAL, Warning, &["gpu_self_ns", "gpu_total_ns"]),
            &graphs_without,
            format!(
                "{} of {} graph launches have no device rows in the file.",
                graphs_without.count,
                graphs_without.count + graphs_with_rows
            ),
        );
    }
    let ambiguous = &derived.launches.ambiguous;
    found.on_rows(
        &kind(code::LINK_AMBIGUOUS, Warning, &["gpu_self_ns", "links"]),
        ambiguous,
        format!(
            "{} device rows share their correlation with several different calls; the longest was taken.",
            ambiguous.count
        ),
    );
    let untrusted = &derived.launches.untrusted_external;
    found.on_rows(
        &kind(code::EXTERNAL_ID_UNTRUSTED, Info, &["external_id"]),
        untrusted,
        format!(
            "On {} calls the external id repeats the correlation, as writers of 2021 to 2024 did: it names no \
             operator, and links are made by time alone.",
            untrusted.count
        ),
    );
    let crossing = &derived.nesting.crossing;
    found.on_rows(
        &kind(code::CROSSING_ROWS, Info, &["parent", "self_ns"]),
        crossing,
        format!("{} rows start inside a row of their thread and end after it; neither is taken as the other's parent.", crossing.count),
    );
    for (flag, is_set, rows, what) in [
        (
            "with_stack",
            evidence.has_stack_flag,
            evidence.python,
            "Python frames",
        ),
        (
            "record_shapes",
            evidence.has_shapes_flag,
            evidence.shapes,
            "input shapes",
        ),
        (
            "profile_memory",
            evidence.has_memory_flag,
            evidence.memory,
            "allocator events",
        ),
    ] {
        if is_set && rows == 0 {
            let detail = format!("{flag} was set, but the file has no {what}.");
            found.push(
                &kind(
                    code::FLAG_WITHOUT_ROWS,
                    Info,
                    &["python_context", "shape", "bytes"],
                ),
                1,
                vec![],
                detail,
            );
        }
    }
    if derived.ranks.is_merged() {
        let numbered = if derived.ranks.is_numbered {
            "; ranks are numbered by the order of the labels"
        } else {
            ""
        };
        let detail = format!(
            "The file holds {} ranks; ids are kept apart by rank{numbered}.",
            derived.ranks.groups.len()
        );
        let count = derived.ranks.groups.len() as u64;
        found.push(
            &kind(code::RANK_MERGED_FILE, Info, &["rank"]),
            count,
            vec![],
            detail,
        );
    } else if rank.is_none() && (header.distributed.is_some() || evidence.communication > 0) {
        let detail = "The trace is of a distributed job, but nothing tells its rank.".to_owned();
        found.push(&kind(code::RANK_UNKNOWN, Info, &["rank"]), 1, vec![], detail);
    }
    let unclassified = &derived.comm.unclassified;
    found.on_rows(
        &kind(
            code::COMM_UNCLASSIFIED,
            Warning,
            &[
                "comm_kind",
                "collective_kind",
                "in_bytes",
                "out_bytes",
                "busbw_gb_per_s",
            ],
        ),
        unclassified,
        format!(
            "{} communication rows do not tell which collective they belong to.",
            unclassified.count
        ),
    );
    found.into_trust()
}
