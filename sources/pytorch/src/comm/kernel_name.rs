//! What the name of a kernel says of communication.
//!
//! A kernel's name is a whole signature, and any kernel may take a communicator, or be a template over a
//! reduction. So only the function's own name and its namespaces count, never what stands in `<…>` or
//! `(…)`: `gemm_with_sync(ncclComm*)` is a GEMM, `at::native::reduce_kernel<512, 1, …>` a reduction.

use super::kind::{CommKind, kind_at_start, kind_behind_algorithm, kind_within, plain};

/// Namespaces of a function, outermost first, with its own name last: `["deep_ep", "intranode", "dispatch"]`.
fn own_path(name: &str) -> Vec<&str> {
    mangled_path(name).unwrap_or_else(|| demangled_path(name))
}

/// The path of `_ZN7deep_ep9intranode8dispatch…` or `_Z21ncclDevKernel_Generic…`: names with their
/// lengths in front (Itanium C++ ABI 5.1). ROCm writes kernels' names this way at times.
fn mangled_path(name: &str) -> Option<Vec<&str>> {
    let encoding = name.strip_prefix("_Z")?;
    let (mut rest, is_nested) = match encoding.strip_prefix('N') {
        Some(nested) => (nested.trim_start_matches(['r', 'V', 'K']), true),
        None => (encoding.strip_prefix('L').unwrap_or(encoding), false),
    };
    let mut path = Vec::new();
    while rest.starts_with(|c: char| c.is_ascii_digit()) && (is_nested || path.is_empty()) {
        let digits = rest.find(|c: char| !c.is_ascii_digit())?;
        let length: usize = rest[..digits].parse().ok()?;
        path.push(rest.get(digits..digits.checked_add(length)?)?);
        rest = &rest[digits + length..];
    }
    (!path.is_empty()).then_some(path)
}

/// The path of `void deep_ep::intranode::dispatch<true, 2>(int*)`.
fn demangled_path(name: &str) -> Vec<&str> {
    const ANONYMOUS: &str = "(anonymous namespace)";
    let mut end = name.len();
    let mut from = 0;
    while let Some(at) = name[from..].find(['<', '(']) {
        let at = from + at;
        if name[at..].starts_with(ANONYMOUS) {
            from = at + ANONYMOUS.len();
        } else {
            end = at;
            break;
        }
    }
    let qualified = name[..end].trim_end();
    // What stands in front of the last blank is the type returned, or a specifier.
    let path_start = qualified
        .rfind(' ')
        .filter(|at| !qualified[at + 1..].starts_with("namespace)"))
        .map_or(0, |at| at + 1);
    qualified[path_start..].split("::").collect()
}

/// What functions of NCCL and RCCL begin with, in front of the collective's name.
const NCCL_PREFIXES: &[&str] = &[
    "ncclsymkdevkernel",
    "ncclsymdevkernel",
    "nccldevkerneldebug",
    "nccldevkernel",
    "ncclkernel",
    "nccl",
    "rccldevkernel",
    "rcclkernel",
    "rccl",
];

/// Functions that are known by what their plain names begin with.
const KNOWN_FUNCTIONS: &[(&str, CommKind)] = &[
    // vLLM, SGLang, AITER.
    ("crossdevicereduce", CommKind::AllReduce),
    // TensorRT-LLM and FlashInfer: fused with a norm, so in part compute.
    ("allreducefusionkernel", CommKind::AllReduce),
    ("moereductionallreducefusion", CommKind::AllReduce),
    // quickreduce.
    ("allreduceprototype", CommKind::AllReduce),
];

/// What functions and namespaces of other libraries begin with.
const LIBRARIES: &[&str] = &["msccl", "nvshmem", "oneccl", "hccl", "xccl", "hcom"];

/// Returns the kind of communication a kernel does by its name; `None` for compute.
///
/// [`CommKind::Unknown`] for kernels of communication libraries whose names do not tell, RCCL's `Generic`
/// among them; [`CommKind::SendRecv`] for NCCL's kernel of that name.
pub(super) fn kind_of_kernel(name: &str) -> Option<CommKind> {
    let path = own_path(name);
    let (function, namespaces) = path.split_last()?;
    let function = plain(function);
    if let Some(what) = NCCL_PREFIXES
        .iter()
        .find_map(|prefix| function.strip_prefix(prefix))
    {
        return Some(
            kind_at_start(what)
                .filter(|kind| kind.is_transfer())
                .unwrap_or(CommKind::Unknown),
        );
    }
    let is_shared_memory = ["multimem", "oneshot", "twoshot"]
        .iter()
        .any(|word| function.starts_with(word));
    if is_shared_memory
        && let Some(kind) = kind_behind_algorithm(&function)
        && matches!(
            kind,
            CommKind::AllReduce | CommKind::AllGather | CommKind::ReduceScatter
        )
    {
        return Some(kind);
    }
    if let Some((_, kind)) = KNOWN_FUNCTIONS
        .iter()
        .find(|(word, _)| function.starts_with(word))
    {
        return Some(*kind);
    }
    if namespaces.contains(&"deep_ep") {
        return kind_in_deep_ep(&function);
    }
    let is_of_library = |part: &str| LIBRARIES.iter().any(|library| part.starts_with(library));
    if is_of_library(&function)
        || namespaces
            .iter()
            .any(|part| is_of_library(&plain(part)) || *part == "ccl")
    {
        return Some(kind_within(&function).unwrap_or(CommKind::Unknown));
    }
    None
}

/// DeepEP exchanges tokens among experts; its `get_dispatch_layout` only counts them.
fn kind_in_deep_ep(function: &str) -> Option<CommKind> {
    match function {
        "barrier" => Some(CommKind::Barrier),
        _ if function.contains("layout") => None,
        _ if function.contains("dispatch") || function.contains("combine") => Some(CommKind::AllToAll),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_communication_kernels_tell_their_kind() {
        use CommKind::*;
        for (name, kind) in [
            (
                "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                AllReduce,
            ),
            (
                "ncclKernel_AllReduce_RING_LL_Sum_float(ncclDevComm*, unsigned long, ncclWork*)",
                AllReduce,
            ),
            (
                "ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
                AllGather,
            ),
            ("ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclWorkElem)", AllGather),
            (
                "ncclDevKernel_ReduceScatter_Sum_f32_RING_LL(ncclDevComm*)",
                ReduceScatter,
            ),
            ("ncclKernel_Broadcast_RING_LL_Sum_int8_t(ncclDevComm*)", Broadcast),
            ("ncclDevKernel_Reduce_Sum_f32_RING_SIMPLE(ncclDevComm*)", Reduce),
            (
                "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)",
                SendRecv,
            ),
            (
                "ncclKernel_SendRecv_RING_SIMPLE_Sum_int8_t(ncclWorkElem)",
                SendRecv,
            ),
            ("ncclDevKernel_Generic(ncclDevKernelArgsStorage<4096ul>)", Unknown),
            (
                "ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)",
                Unknown,
            ),
            (
                "_Z21ncclDevKernel_Generic24ncclDevKernelArgsStorageILm4096EE",
                Unknown,
            ),
            ("ncclSymkDevKernel_AllGather_LL(ncclSymkDevWorkArgs4K)", AllGather),
            ("ncclAllReduceRingLLKernel_sum_f32(ncclColl)", AllReduce),
            (
                "void c10d::symmetric_memory::(anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(void*)",
                AllReduce,
            ),
            ("void one_shot_all_reduce_kernel<float>(float**)", AllReduce),
            ("two_shot_all_reduce_kernel_inplace", AllReduce),
            (
                "void vllm::cross_device_reduce_1stage<__half, 2>(vllm::RankData*, vllm::RankSignals)",
                AllReduce,
            ),
            (
                "void flashinfer::trtllm_allreduce_fusion::allreduce_fusion_kernel_oneshot_lamport<(int)1>(int)",
                AllReduce,
            ),
            ("void deep_ep::intranode::dispatch<2, 768>(int4*)", AllToAll),
            ("void deep_ep::internode_ll::combine<true>(void*)", AllToAll),
            ("_ZN7deep_ep9intranode8dispatchILi2EEEvP4int4", AllToAll),
            ("mscclKernel_Sum_half_Simple(ncclDevComm*)", Unknown),
            ("void nvshmemi_transfer_put<float>(float*)", Unknown),
            ("hcom_allReduce__123_0", AllReduce),
        ] {
            assert_eq!(kind_of_kernel(name), Some(kind), "{name}");
        }
    }

    #[test]
    fn compute_stays_compute() {
        for name in [
            "void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::func_wrapper_t<float>>>(int)",
            "void at::native::(anonymous namespace)::reduce_scatter_like<int>(int)",
            "void gemm_with_sync<128>(float*, ncclComm*)",
            "void gemm<ncclDevKernel_AllReduce>(float*)",
            "_Z4gemmPK8ncclComm",
            "_ZN2at6native13reduce_kernelILi512EEEv8ncclComm",
            "void at::native::vectorized_gather_kernel<16, long>(char*)",
            "void at::native::_scatter_gather_elementwise_kernel<128, 8>(int)",
            "triton_red_fused_all_reduce_0",
            "my_nccl_pack_kernel",
            "deep_ep_like_combine",
            "void deep_ep::layout::get_dispatch_layout<256>(long const*)",
            "Cijk_Ailk_Bljk_HHS_BH_MT128x128x32",
            "",
            "_Z",
            "_Z99short",
            "(anonymous namespace)",
        ] {
            assert_eq!(kind_of_kernel(name), None, "{name}");
        }
    }
}
