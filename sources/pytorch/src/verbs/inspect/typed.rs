//! The args that matter of a row, typed and with their units.

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use crate::kineto::args::{Args, ROCM_KERNEL_KIND, copy_name, device_type_name, grid_is_work_items, key};
use crate::row::RowType;

/// The typed view of a row's args: one part for each thing the row is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct TypedArgs {
    /// Of kernels.
    #[serde(skip_serializing_if = "Option::is_none")]
    kernel: Option<KernelArgs>,
    /// Of copies and fills.
    #[serde(skip_serializing_if = "Option::is_none")]
    transfer: Option<TransferArgs>,
    /// Of operators, and of annotations with inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    op: Option<OpArgs>,
    /// Of API calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<CallArgs>,
    /// Of allocator events.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<MemoryArgs>,
    /// Of Python frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    python: Option<PythonArgs>,
    /// Of synchronisation rows.
    #[serde(skip_serializing_if = "Option::is_none")]
    sync: Option<SyncArgs>,
    /// Of whatever row describes a collective.
    #[serde(skip_serializing_if = "Option::is_none")]
    collective: Option<CollectiveArgs>,
}

/// How a kernel was launched, and what it takes of the device.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct KernelArgs {
    /// Blocks in x, y and z; null where unknown, also in what unit the writer counted.
    grid: Option<[u64; 3]>,
    /// Threads of a block in x, y and z.
    block: Option<[u64; 3]>,
    /// Whether the writer counted work-items and `grid` was divided by `block` (some ROCm launches).
    is_grid_divided: bool,
    /// Registers of a thread.
    registers_per_thread: Option<i64>,
    /// Shared memory of a block, static and dynamic.
    shared_memory_bytes: Option<i64>,
    /// Occupancy as the profiler estimates it from resources, 0 to 100; 0 is normal for small grids.
    occupancy_percent: Option<f64>,
    /// Blocks of the grid for each multiprocessor.
    blocks_per_sm: Option<f64>,
    /// Launched warps for each multiprocessor, not resident ones.
    warps_per_sm: Option<f64>,
    /// The driver's number of the context.
    context_id: Option<i64>,
    /// The stream's priority.
    priority: Option<i64>,
    /// The graph that launched the kernel; null outside graphs and where not told.
    graph_id: Option<i64>,
    /// The node of that graph.
    graph_node_id: Option<i64>,
}

/// What a copy or fill moved.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TransferArgs {
    /// Bytes moved, from the row or else from its launch call.
    bytes: Option<i64>,
    /// `bytes` by the row's duration, in 10^9 bytes a second; what the writer computed is not used.
    bandwidth_gb_per_s: Option<f64>,
    /// `HtoD`, `DtoH`, `DtoD`, `PtoP` …; null on fills.
    direction: Option<String>,
    /// The memory that was read: `Pageable`, `Pinned`, `Device` …; null on fills.
    source_kind: Option<String>,
    /// The memory that was written.
    destination_kind: Option<String>,
    /// The device copied from, between devices.
    source_device_id: Option<i64>,
    /// The device copied to, between devices.
    destination_device_id: Option<i64>,
}

/// What an operator was called with.
#[derive(Debug, Clone, Default, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct OpArgs {
    /// Shape of each input as written: a list of extents, a list of lists for tensor lists, empty for others.
    input_dims: Option<Value>,
    /// Type of each input as written.
    input_types: Option<Value>,
    /// Strides of each input, nested as `input_dims`.
    input_strides: Option<Value>,
    /// Text of each scalar input; empty for tensors.
    concrete_inputs: Option<Value>,
    /// The autograd sequence number, counted for each forward thread.
    sequence_number: Option<i64>,
    /// The profiler's small number of the forward thread; 0 on forward operators.
    forward_thread: Option<i64>,
    /// The id that execution traces share; null when no observer ran.
    record_function_id: Option<i64>,
    /// Frames of the recorded call stack, outermost first.
    call_stack: Option<Vec<String>>,
    /// The module path of scripted code.
    module_hierarchy: Option<String>,
    /// The source file of a compiled kernel.
    kernel_file: Option<String>,
    /// The compiler of a compiled kernel.
    kernel_backend: Option<String>,
    /// Warps of a block of a Triton kernel.
    num_warps: Option<i64>,
    /// Pipeline stages of a Triton kernel.
    num_stages: Option<i64>,
}

/// What an API call did.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CallArgs {
    /// The profiling library's number of the function.
    callback_id: Option<i64>,
    /// The kernel that the call launches, where the call tells (ROCm).
    kernel_name: Option<String>,
    /// Blocks in x, y and z (ROCm).
    grid: Option<[u64; 3]>,
    /// Threads of a block in x, y and z (ROCm).
    block: Option<[u64; 3]>,
    /// Shared memory of a block (ROCm).
    shared_memory_bytes: Option<i64>,
    /// Bytes copied or allocated.
    bytes: Option<i64>,
    /// The address that was read.
    source_address: Option<u64>,
    /// The address that was written, or allocated.
    destination_address: Option<u64>,
}

/// An allocation or a release.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct MemoryArgs {
    /// Bytes allocated; negative: released.
    bytes: Option<i64>,
    /// The block's address; reused after release.
    address: Option<u64>,
    /// `cpu`, `cuda`, `hip` …; the number's text where it has no name.
    device_type: Option<String>,
    /// The framework's number of the device, which on ROCm is not that of device rows; null for the CPU.
    device_id: Option<i64>,
    /// Bytes in use on the device after the event.
    total_allocated_bytes: Option<i64>,
    /// Bytes that the allocator holds on the device after the event.
    total_reserved_bytes: Option<i64>,
}

/// Where a frame stands in the interpreter's stack, which may cross threads.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PythonArgs {
    /// The frame's number.
    python_id: Option<i64>,
    /// The number of the frame that called it.
    python_parent_id: Option<i64>,
    /// The module's number among those of its class.
    python_module_id: Option<i64>,
}

/// What was waited for.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SyncArgs {
    /// `Stream Sync`, `Event Sync` …
    sync_kind: Option<String>,
    /// The stream waited for.
    wait_on_stream_id: Option<i64>,
    /// The event waited for.
    wait_on_event_id: Option<i64>,
    /// The correlation of the call that recorded the event.
    wait_on_correlation_id: Option<i64>,
}

/// A collective, as the row describes it.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct CollectiveArgs {
    /// The name as written.
    collective_name: String,
    /// The element type as written.
    dtype: Option<String>,
    /// Elements that went in.
    in_elements: Option<i64>,
    /// Elements that came out.
    out_elements: Option<i64>,
    /// Elements sent to each member; empty for equal parts.
    in_split_sizes: Option<Vec<i64>>,
    /// Elements received from each member; empty for equal parts.
    out_split_sizes: Option<Vec<i64>>,
    /// The process group's name.
    group_name: Option<String>,
    /// What its user called it.
    group_description: Option<String>,
    /// Members.
    group_size: Option<i64>,
    /// The members' global ranks; null where the writer shortened the list.
    group_ranks: Option<Vec<i64>>,
    /// The rank within the group; of sends and receives the peer's.
    rank_in_group: Option<i64>,
    /// The sender's global rank, of receives.
    source_rank: Option<i64>,
    /// The receiver's global rank, of sends.
    destination_rank: Option<i64>,
    /// The number of the collective within its group.
    seq: Option<i64>,
    /// The writer's hash that all members share.
    comms_id: Option<u64>,
    /// Whether the call returned before the collective had ended.
    is_async: Option<bool>,
}

/// The row whose args are read, and what its neighbours tell.
pub(super) struct Subject<'a> {
    pub(super) row_type: RowType,
    pub(super) name: &'a str,
    pub(super) duration_ns: Option<i64>,
    pub(super) bytes: Option<i64>,
    /// Name and bytes of the call that launched the row.
    pub(super) launch: Option<(&'a str, Option<i64>)>,
}

/// Returns the typed view of a row's args; `None` when there is nothing to say of its type.
pub(super) fn typed_args(subject: &Subject<'_>, args: &Args) -> Option<TypedArgs> {
    let mut typed = TypedArgs::default();
    match subject.row_type {
        RowType::Kernel => typed.kernel = Some(kernel(subject, args)),
        RowType::Memcpy | RowType::Memset => typed.transfer = Some(transfer(subject, args)),
        RowType::CpuOp => typed.op = Some(op(args)),
        // Annotations mostly carry ids only.
        RowType::Annotation | RowType::Step => {
            typed.op = Some(op(args)).filter(|op| *op != OpArgs::default())
        }
        RowType::Runtime | RowType::Driver => typed.call = Some(call(subject, args)),
        RowType::Memory => typed.memory = Some(memory(subject, args)),
        RowType::Python => typed.python = Some(python(args)),
        RowType::Sync => typed.sync = Some(sync(args)),
        RowType::Comm | RowType::Overhead | RowType::Counter | RowType::Other => {}
    }
    typed.collective = collective(args);
    (typed != TypedArgs::default()).then_some(typed)
}

/// Returns a grid counted in work-items as blocks; the last block may be part empty.
fn in_blocks(grid: [u64; 3], block: [u64; 3]) -> Option<[u64; 3]> {
    if block.contains(&0) {
        return None;
    }
    Some(std::array::from_fn(|axis| grid[axis].div_ceil(block[axis])))
}

fn kernel(subject: &Subject<'_>, args: &Args) -> KernelArgs {
    let (written, block) = (args.extents(key::GRID), args.extents(key::BLOCK));
    let is_rocm = args.text(key::KIND).is_some_and(|kind| kind == ROCM_KERNEL_KIND);
    let is_grid_divided = subject.launch.is_some_and(|(name, _)| grid_is_work_items(name));
    let grid = match (written, block) {
        (Some(grid), Some(block)) if is_grid_divided => in_blocks(grid, block),
        // Without the launch nothing tells which unit ROCm's writer used.
        (Some(_), _) if is_grid_divided || (is_rocm && subject.launch.is_none()) => None,
        (grid, _) => grid,
    };
    let in_graph = |key| args.integer(key).filter(|id| *id > 0);
    KernelArgs {
        grid,
        block,
        is_grid_divided: is_grid_divided && grid.is_some(),
        registers_per_thread: args.integer(key::REGISTERS),
        shared_memory_bytes: args.integer(key::SHARED_MEMORY),
        occupancy_percent: args.number(key::OCCUPANCY),
        blocks_per_sm: args.number(key::BLOCKS_PER_SM),
        // -1 stands for an unknown number of multiprocessors.
        warps_per_sm: args.number(key::WARPS_PER_SM).filter(|warps| *warps >= 0.0),
        context_id: args.integer(key::CONTEXT),
        priority: args.integer(key::PRIORITY),
        graph_id: in_graph(key::GRAPH_ID),
        graph_node_id: in_graph(key::GRAPH_NODE_ID),
    }
}

fn transfer(subject: &Subject<'_>, args: &Args) -> TransferArgs {
    let of_launch = || subject.launch.and_then(|(_, bytes)| bytes);
    let bytes = subject
        .bytes
        .or_else(|| args.integer(key::BYTES))
        .or_else(of_launch);
    let name = copy_name(subject.name);
    TransferArgs {
        bytes,
        bandwidth_gb_per_s: bytes.and_then(|bytes| bandwidth(bytes, subject.duration_ns?)),
        direction: name.direction.map(str::to_owned),
        source_kind: name.source.map(str::to_owned),
        destination_kind: name.destination.map(str::to_owned),
        source_device_id: args.integer(key::FROM_DEVICE),
        destination_device_id: args.integer(key::TO_DEVICE),
    }
}

/// Returns bytes by nanoseconds, which is 10^9 bytes a second; `None` of no time.
#[expect(
    clippy::cast_precision_loss,
    reason = "a rate needs no more than the 53 bits of a float"
)]
fn bandwidth(bytes: i64, duration_ns: i64) -> Option<f64> {
    (duration_ns > 0).then(|| bytes as f64 / duration_ns as f64)
}

fn op(args: &Args) -> OpArgs {
    let value = |key| args.value(key).cloned();
    // The writer puts the innermost frame first.
    let call_stack = args.text(key::CALL_STACK).map(|stack| {
        stack
            .split(';')
            .rev()
            .map(str::trim)
            .filter(|frame| !frame.is_empty())
            .map(str::to_owned)
            .collect()
    });
    OpArgs {
        input_dims: value(key::INPUT_DIMS),
        input_types: value(key::INPUT_TYPES),
        input_strides: value(key::INPUT_STRIDES),
        concrete_inputs: value(key::CONCRETE_INPUTS),
        sequence_number: args.integer(key::SEQUENCE_NUMBER),
        forward_thread: args.integer(key::FORWARD_THREAD),
        record_function_id: args.integer(key::RECORD_FUNCTION).filter(|id| *id != 0),
        call_stack,
        module_hierarchy: args.text(key::MODULE_HIERARCHY),
        kernel_file: args.text(key::KERNEL_FILE),
        kernel_backend: args.text(key::KERNEL_BACKEND),
        num_warps: args.integer(key::NUM_WARPS),
        num_stages: args.integer(key::NUM_STAGES),
    }
}

fn call(subject: &Subject<'_>, args: &Args) -> CallArgs {
    let (grid, block) = (args.extents(key::GRID), args.extents(key::BLOCK));
    let grid = if grid_is_work_items(subject.name) {
        grid.zip(block).and_then(|(grid, block)| in_blocks(grid, block))
    } else {
        grid
    };
    CallArgs {
        callback_id: args.integer(key::CALLBACK_ID),
        kernel_name: args.text(key::LAUNCHED_KERNEL),
        grid,
        block,
        shared_memory_bytes: args.integer(key::SHARED_MEMORY),
        bytes: subject.bytes.or_else(|| args.integer(key::BYTES)),
        source_address: args.unsigned(key::SOURCE_ADDRESS),
        destination_address: args
            .unsigned(key::DESTINATION_ADDRESS)
            .or_else(|| args.unsigned(key::POINTER)),
    }
}

fn memory(subject: &Subject<'_>, args: &Args) -> MemoryArgs {
    let device_type = args.integer(key::DEVICE_TYPE);
    MemoryArgs {
        bytes: subject.bytes.or_else(|| args.integer(key::BYTES)),
        address: args.unsigned(key::ADDRESS),
        device_type: device_type
            .map(|number| device_type_name(number).map_or_else(|| number.to_string(), str::to_owned)),
        device_id: args.integer(key::DEVICE_ID).filter(|device| *device >= 0),
        total_allocated_bytes: args.integer(key::TOTAL_ALLOCATED),
        total_reserved_bytes: args.integer(key::TOTAL_RESERVED),
    }
}

fn python(args: &Args) -> PythonArgs {
    PythonArgs {
        python_id: args.integer(key::PYTHON_ID),
        python_parent_id: args.integer(key::PYTHON_PARENT),
        python_module_id: args.integer(key::PYTHON_MODULE),
    }
}

fn sync(args: &Args) -> SyncArgs {
    // Writers put -1, or 2^32 - 1, where nothing is waited for.
    let known = |key| {
        args.integer(key)
            .filter(|id| *id >= 0 && *id != i64::from(u32::MAX))
    };
    SyncArgs {
        sync_kind: args.text(key::SYNC_KIND),
        wait_on_stream_id: known(key::WAIT_ON_STREAM),
        wait_on_event_id: known(key::WAIT_ON_EVENT),
        wait_on_correlation_id: known(key::WAIT_ON_RECORD),
    }
}

fn collective(args: &Args) -> Option<CollectiveArgs> {
    Some(CollectiveArgs {
        collective_name: args.text(key::COLLECTIVE_NAME)?,
        dtype: args.text(key::DTYPE),
        in_elements: args.integer(key::IN_ELEMENTS),
        out_elements: args.integer(key::OUT_ELEMENTS),
        in_split_sizes: args.integers(key::IN_SPLITS),
        out_split_sizes: args.integers(key::OUT_SPLITS),
        group_name: args.text(key::GROUP_NAME),
        group_description: args.text(key::GROUP_DESCRIPTION),
        group_size: args.integer(key::GROUP_SIZE),
        group_ranks: args.integers(key::GROUP_RANKS),
        rank_in_group: args.integer(key::RANK_IN_GROUP),
        source_rank: args.integer(key::SOURCE_RANK),
        destination_rank: args.integer(key::DESTINATION_RANK),
        seq: args.integer(key::SEQ),
        comms_id: args.unsigned(key::COMMS_ID),
        is_async: args.flag(key::IS_ASYNC),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subject(row_type: RowType) -> Subject<'static> {
        Subject {
            row_type,
            name: "",
            duration_ns: Some(500),
            bytes: None,
            launch: None,
        }
    }

    fn typed(subject: &Subject<'_>, text: &str) -> TypedArgs {
        typed_args(subject, &Args::parse(text).unwrap()).unwrap()
    }

    #[test]
    fn work_items_become_blocks_for_the_calls_that_count_them() {
        let text = r#"{"kind": "Dispatch Kernel", "grid": [512, 3, 1], "block": [256, 2, 1]}"#;
        let launched_by = |launch| {
            let subject = Subject {
                launch,
                ..subject(RowType::Kernel)
            };
            typed(&subject, text).kernel.unwrap().grid
        };
        assert_eq!(
            launched_by(Some(("hipExtModuleLaunchKernel", None))),
            Some([2, 2, 1])
        );
        assert_eq!(launched_by(Some(("hipLaunchKernel", None))), Some([512, 3, 1]));
        assert_eq!(launched_by(None), None, "the unit is unknown without the launch");
    }

    #[test]
    fn bandwidth_is_recomputed_and_absent_without_a_duration() {
        let text = r#"{"bytes": 1000, "memory bandwidth (GB/s)": 77}"#;
        let copy = |duration_ns| {
            let subject = Subject {
                duration_ns,
                name: "Memcpy DtoH (Device -> Pageable)",
                ..subject(RowType::Memcpy)
            };
            typed(&subject, text).transfer.unwrap()
        };
        assert_eq!(copy(Some(500)).bandwidth_gb_per_s, Some(2.0));
        assert_eq!(copy(Some(0)).bandwidth_gb_per_s, None);
        assert_eq!(copy(None).destination_kind.as_deref(), Some("Pageable"));
    }

    #[test]
    fn copies_without_bytes_take_those_of_their_launch() {
        let subject = Subject {
            launch: Some(("hipMemcpyAsync", Some(4_096))),
            ..subject(RowType::Memcpy)
        };
        assert_eq!(typed(&subject, "{}").transfer.unwrap().bytes, Some(4_096));
    }

    #[test]
    fn memory_rows_name_their_device_type() {
        let text = r#"{"Bytes": -512, "Addr": 140000000000000, "Device Type": 6, "Device Id": 0}"#;
        let memory = typed(&subject(RowType::Memory), text).memory.unwrap();
        assert_eq!(memory.device_type.as_deref(), Some("hip"));
        assert_eq!(memory.bytes, Some(-512));
        assert_eq!(memory.address, Some(140_000_000_000_000));
    }

    #[test]
    fn graph_ids_of_zero_mean_no_graph() {
        let kernel = |text| typed(&subject(RowType::Kernel), text).kernel.unwrap();
        assert_eq!(kernel(r#"{"graph id": 0, "graph node id": 0}"#).graph_id, None);
        assert_eq!(kernel(r#"{"graph id": 3}"#).graph_id, Some(3));
    }

    #[test]
    fn rows_of_other_types_have_no_typed_view() {
        assert_eq!(typed_args(&subject(RowType::Other), &Args::default()), None);
    }
}
