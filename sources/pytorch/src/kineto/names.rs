//! What names of API calls say.

/// Returns whether an API call, by its name, is there to launch device work.
pub(crate) fn is_launch(name: &str) -> bool {
    let rest = ["cuda", "cu", "hip"]
        .iter()
        .find_map(|api| name.strip_prefix(api));
    let launches = [
        "Launch",
        "ExtLaunch",
        "ModuleLaunch",
        "ExtModuleLaunch",
        "HccModuleLaunch",
        "GraphLaunch",
    ];
    rest.is_some_and(|rest| launches.iter().any(|launch| rest.starts_with(launch)))
}

/// Returns whether an API call, by its name, launches a captured graph.
pub(crate) fn is_graph_launch(name: &str) -> bool {
    name.contains("GraphLaunch")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_are_told_by_their_names() {
        for name in [
            "cudaLaunchKernel",
            "cuLaunchKernelEx",
            "hipExtModuleLaunchKernel",
            "cudaGraphLaunch",
        ] {
            assert!(is_launch(name), "{name}");
        }
        for name in [
            "cudaStreamSynchronize",
            "cudaMemcpyAsync",
            "hipEventRecord",
            "Launch",
        ] {
            assert!(!is_launch(name), "{name}");
        }
        assert!(is_graph_launch("hipGraphLaunch") && !is_graph_launch("hipLaunchKernel"));
    }
}
