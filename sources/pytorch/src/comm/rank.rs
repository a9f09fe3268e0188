//! Which rank a file is of.

use crate::ingest::columns::{Rows, Strings};
use crate::kineto::collective_args::{CollectiveArgs, DESCRIBING_OP};
use crate::kineto::file_name::rank_in_file_name;
use crate::kineto::metadata::{Header, WORLD_GROUP};

use super::kind::{CommKind, kind_of_collective_name};

/// Returns the rank of a file's own process, by the first that tells it: the header, collectives among all
/// ranks, the file's name. Numbers of devices and processes are no ranks.
pub(crate) fn rank_of_file(
    header: &Header,
    rows: &Rows,
    strings: &Strings,
    file_name: Option<&str>,
) -> Option<i64> {
    header
        .distributed
        .as_ref()
        .and_then(|info| info.rank)
        .or_else(|| rank_in_collectives(header, rows, strings))
        .or_else(|| rank_in_file_name(file_name?))
}

/// Returns the rank that describing operators give: within a group it is the global one only if the group
/// is the whole world, and of a send or a receive it is the peer's. None where rows disagree, as those of
/// a merged file do.
fn rank_in_collectives(header: &Header, rows: &Rows, strings: &Strings) -> Option<i64> {
    let world_size = header.world_size();
    let mut found = None;
    for (row, args) in &rows.collective_args.0 {
        if strings.get(rows.name[*row as usize]) != DESCRIBING_OP {
            continue;
        }
        let args = CollectiveArgs::parse(args);
        let kind = kind_of_collective_name(args.name.as_deref().unwrap_or_default());
        let is_world = match world_size {
            Some(_) => args.group_size == world_size,
            None => args.group_description.as_deref() == Some(WORLD_GROUP),
        };
        let tells = is_world
            && kind.is_some_and(|kind| kind.is_transfer() || kind == CommKind::Barrier)
            && !matches!(kind, Some(CommKind::Send | CommKind::Recv | CommKind::SendRecv));
        let Some(rank) = args
            .rank
            .filter(|rank| tells && (0..args.group_size.unwrap_or(0)).contains(rank))
        else {
            continue;
        };
        if found.is_some_and(|known| known != rank) {
            return None;
        }
        found = Some(rank);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ingest::testing::TestRows;

    fn header(json: &str) -> Header {
        Header::read(&[("distributedInfo".to_owned(), json.into())])
    }

    fn rank(json: &str, args: &[&str], file_name: &str) -> Option<i64> {
        let mut table = TestRows::default();
        for args in args {
            let row = table.op("record_param_comms", 0, 1);
            table.collective_args(row, args);
        }
        rank_of_file(&header(json), &table.rows, &table.strings, Some(file_name))
    }

    #[test]
    fn the_header_goes_first_then_collectives_of_all_ranks_then_the_name() {
        let all = r#"{"Collective name": "allreduce", "Rank": 3, "Group size": 8}"#;
        assert_eq!(
            rank(r#"{"rank": 5, "world_size": 8}"#, &[all], "rank7.json"),
            Some(5)
        );
        assert_eq!(rank(r#"{"world_size": 8}"#, &[all], "rank7.json"), Some(3));
        assert_eq!(rank("{}", &[all], "rank7.json"), Some(7));
        let default_group = r#"{"Collective name": "allreduce", "Rank": 3, "Group size": 8,
            "Process Group Description": "default_pg"}"#;
        assert_eq!(rank("{}", &[default_group], "rank7.json"), Some(3));
        assert_eq!(rank("{}", &[], "run.json"), None);
    }

    #[test]
    fn ranks_within_smaller_groups_and_of_peers_are_not_taken() {
        let world = r#"{"world_size": 8}"#;
        for args in [
            r#"{"Collective name": "allreduce", "Rank": 1, "Group size": 2}"#,
            r#"{"Collective name": "send", "Rank": 1, "Group size": 8}"#,
            r#"{"Collective name": "wait", "Rank": 0, "Group size": 8}"#,
            r#"{"Collective name": "allreduce", "Rank": 9, "Group size": 8}"#,
        ] {
            assert_eq!(rank(world, &[args], "run.json"), None, "{args}");
        }
        let [one, two] =
            [1, 2].map(|r| format!(r#"{{"Collective name": "barrier", "Rank": {r}, "Group size": 8}}"#));
        assert_eq!(rank(world, &[&one, &two], "run.json"), None);
    }
}
