//! What the trace can answer, and how to record what is missing.

use veloq_core::{Capabilities, Capability};

/// The counts that capabilities are judged by.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Evidence {
    pub(crate) cpu_ops: u64,
    pub(crate) annotations: u64,
    pub(crate) steps: u64,
    pub(crate) runtime: u64,
    pub(crate) driver: u64,
    pub(crate) gpu_rows: u64,
    pub(crate) launch_links: u64,
    /// API calls whose names say that they launch device work.
    pub(crate) launch_calls: u64,
    pub(crate) memory: u64,
    pub(crate) python: u64,
    pub(crate) modules: u64,
    pub(crate) shapes: u64,
    pub(crate) forward_backward: u64,
    pub(crate) communication: u64,
    pub(crate) collective_metadata: u64,
    pub(crate) sync: u64,
    pub(crate) graphs: u64,
    pub(crate) has_stack_flag: bool,
    pub(crate) has_shapes_flag: bool,
    pub(crate) has_memory_flag: bool,
    pub(crate) has_distributed_info: bool,
    pub(crate) has_absolute_time: bool,
    /// Whether the header lists devices.
    pub(crate) has_devices: bool,
}

/// Returns the capabilities in the contract's order.
pub(crate) fn judge(evidence: &Evidence) -> Capabilities {
    let e = evidence;
    let flagged = |is_set: bool, flag: &str, what: &str| {
        if is_set {
            format!("{flag} was set but no {what} are in the file")
        } else {
            format!("{flag} was not set; record with {flag}")
        }
    };
    let gpu_reason = match (e.launch_calls > 0, e.has_devices) {
        (true, _) => {
            "launches are there but no device rows: GPU activity was not captured; record with \
                      ProfilerActivity.CUDA and check that no other profiler holds the device"
        }
        (false, true) => "devices are listed but nothing was launched on them",
        (false, false) => {
            "no device was used, or the capture was CPU only; record with ProfilerActivity.CUDA"
        }
    };
    let links_reason = if e.gpu_rows == 0 {
        "there are no device rows to link".to_owned()
    } else if e.runtime + e.driver == 0 {
        "there are no API calls to link to; record CPU activity too".to_owned()
    } else {
        "no device row's correlation meets an API call".to_owned()
    };
    let steps_reason = "no ProfilerStep rows; call prof.step() in the loop";
    let entries: [(&'static str, u64, String); 18] = [
        (
            "cpu_ops",
            e.cpu_ops,
            "no operator rows; record with ProfilerActivity.CPU".into(),
        ),
        (
            "annotations",
            e.annotations,
            "no annotations; wrap code in torch.profiler.record_function".into(),
        ),
        ("steps", e.steps, steps_reason.into()),
        (
            "runtime",
            e.runtime,
            "no runtime API calls; record with ProfilerActivity.CUDA".into(),
        ),
        (
            "driver",
            e.driver,
            "no driver API calls; they are written only for kernels launched through the driver".into(),
        ),
        ("gpu_activity", e.gpu_rows, gpu_reason.into()),
        ("gpu_launch_links", e.launch_links, links_reason),
        (
            "memory",
            e.memory,
            flagged(e.has_memory_flag, "profile_memory=True", "allocator events"),
        ),
        (
            "python_stacks",
            e.python,
            flagged(e.has_stack_flag, "with_stack=True", "frames"),
        ),
        (
            "modules",
            e.modules,
            flagged(e.has_stack_flag, "with_stack=True", "nn.Module calls"),
        ),
        (
            "shapes",
            e.shapes,
            flagged(e.has_shapes_flag, "record_shapes=True", "shapes"),
        ),
        (
            "forward_backward",
            e.forward_backward,
            "no backward operator is joined to a forward one".into(),
        ),
        ("communication", e.communication, "no communication rows".into()),
        (
            "collective_metadata",
            e.collective_metadata,
            "no row describes a collective (sizes, group); PyTorch 2.2 and later write them".into(),
        ),
        (
            "synchronisation",
            e.sync,
            "no resolved synchronisation rows; enable them with enable_cuda_sync_events".into(),
        ),
        ("cuda_graphs", e.graphs, "no graph was launched".into()),
        (
            "distributed_info",
            u64::from(e.has_distributed_info),
            "no distributedInfo; it is written when torch.distributed is initialised".into(),
        ),
        (
            "absolute_time",
            u64::from(e.has_absolute_time),
            "times are relative to an origin that the file does not tell".into(),
        ),
    ];
    let mut capabilities = Capabilities::default();
    for (id, count, reason) in entries {
        let available = count > 0;
        capabilities.push(
            id,
            Capability {
                available,
                count,
                reason: (!available).then_some(reason),
            },
        );
    }
    capabilities
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_tell_a_flag_that_was_not_set_from_one_without_rows() {
        let reason = |evidence: &Evidence, id| judge(evidence).get(id).unwrap().reason.clone().unwrap();
        let unset = Evidence::default();
        assert!(reason(&unset, "python_stacks").contains("was not set"));
        let set = Evidence {
            has_stack_flag: true,
            ..unset
        };
        assert!(reason(&set, "python_stacks").contains("but no frames"));
    }

    #[test]
    fn missing_gpu_rows_are_told_from_no_gpu_work() {
        let reason = |launch_calls| {
            let evidence = Evidence {
                launch_calls,
                ..Evidence::default()
            };
            judge(&evidence)
                .get("gpu_activity")
                .unwrap()
                .reason
                .clone()
                .unwrap()
        };
        assert!(reason(3).contains("launches are there"));
        assert!(!reason(0).contains("launches are there"));
    }
}
