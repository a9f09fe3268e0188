//! Slices as a table.

use veloq_core::{Cell, Column, Section, Table, TableView, Unit};

use super::{AggregateRow, InstanceRow, Response, Row};

impl TableView for Response {
    fn table(&self) -> Table {
        let is_aggregate = self.0.auxiliary.group_by.is_some();
        let columns = if is_aggregate {
            aggregate_columns()
        } else {
            instance_columns()
        };
        let cells = |row: &Row| match row {
            Row::Instance(row) => instance_cells(row),
            Row::Aggregate(row) => aggregate_cells(row),
        };
        Table {
            sections: vec![Section {
                title: None,
                columns,
                rows: self.0.rows.iter().map(cells).collect(),
            }],
            total_matched: self.0.total_matched,
            notes: self.0.auxiliary.trust.details(),
        }
    }
}

fn instance_columns() -> Vec<Column> {
    vec![
        Column::detail("key", Unit::Text),
        Column::new("row_id", Unit::Id),
        Column::new("name", Unit::Text),
        Column::new("start_ns", Unit::Nanoseconds),
        Column::new("duration_ns", Unit::Nanoseconds),
        Column::new("rank", Unit::Count),
        Column::new("step", Unit::Count),
        Column::detail("tid", Unit::Text),
        Column::detail("depth", Unit::Count),
        Column::detail("child_count", Unit::Count),
        Column::new("attributed_gpu_ns", Unit::Nanoseconds),
        Column::new("attributed_gpu_busy_ns", Unit::Nanoseconds),
        Column::new("attributed_comm_ns", Unit::Nanoseconds),
        Column::new("gpu_count", Unit::Count),
    ]
}

fn instance_cells(row: &InstanceRow) -> Vec<Cell> {
    vec![
        Cell::from(row.key.clone()),
        Cell::from(row.row_id.clone()),
        Cell::from(row.name.clone()),
        Cell::from(row.start_ns),
        Cell::from(row.duration_ns),
        Cell::from(row.rank),
        Cell::from(row.step),
        row.tid.as_ref().map_or(Cell::Null, Cell::from),
        Cell::from(row.depth),
        Cell::from(row.child_count),
        Cell::from(row.attributed_gpu_ns),
        Cell::from(row.attributed_gpu_busy_ns),
        Cell::from(row.attributed_comm_ns),
        Cell::from(row.gpu_count),
    ]
}

fn aggregate_columns() -> Vec<Column> {
    vec![
        Column::detail("key", Unit::Text),
        Column::new("scope", Unit::Text),
        Column::new("instances", Unit::Count),
        Column::new("total_cpu_ns", Unit::Nanoseconds),
        Column::new("avg_cpu_ns", Unit::Nanoseconds),
        Column::detail("min_cpu_ns", Unit::Nanoseconds),
        Column::new("max_cpu_ns", Unit::Nanoseconds),
        Column::new("total_gpu_ns", Unit::Nanoseconds),
        Column::new("gpu_busy_ns", Unit::Nanoseconds),
        Column::new("total_comm_ns", Unit::Nanoseconds),
    ]
}

fn aggregate_cells(row: &AggregateRow) -> Vec<Cell> {
    vec![
        Cell::from(row.key.clone()),
        Cell::from(row.scope.clone()),
        Cell::from(row.instances),
        Cell::from(row.total_cpu_ns),
        Cell::from(row.avg_cpu_ns),
        Cell::from(row.min_cpu_ns),
        Cell::from(row.max_cpu_ns),
        Cell::from(row.total_gpu_ns),
        Cell::from(row.gpu_busy_ns),
        Cell::from(row.total_comm_ns),
    ]
}
