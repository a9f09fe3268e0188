//! `man`: manual pages.

use std::io;
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args, Command};
use clap_mangen::Man;
use schemars::JsonSchema;
use serde::Serialize;
use veloq_core::{
    Cell, Column, ErrorClass, Example, Explain, Failure, Page, Table, TableView, Unit, answer_schema,
};

use super::{Asked, Meta, NoAuxiliary};
use crate::app;
use crate::output::Output;
use crate::render::count_table;
use crate::usage::read_args;

/// Prints the page of veloq itself, or writes a page for it and for each verb and command into a folder.
#[derive(Debug, Clone, Default, Args)]
struct ManRequest {
    /// The folder to write into; it is made when missing
    dir: Option<PathBuf>,
}

/// The pages written, in the order of the help.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
struct ManResponse(Page<PageRow, NoAuxiliary>);

/// A page.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PageRow {
    /// `page|<name>`.
    key: String,
    /// Its name: `veloq-pytorch-search`.
    name: String,
    /// Its file.
    path: String,
    /// The file's size.
    bytes: u64,
}

impl TableView for ManResponse {
    fn table(&self) -> Table {
        let columns = vec![
            Column::detail("key", Unit::Id),
            Column::new("name", Unit::Text),
            Column::new("path", Unit::Text),
            Column::new("bytes", Unit::Bytes),
        ];
        let rows = self.0.rows.iter().map(|row| {
            vec![
                row.key.as_str().into(),
                row.name.as_str().into(),
                row.path.as_str().into(),
                row.bytes.into(),
            ]
        });
        count_table(columns, rows.collect::<Vec<Vec<Cell>>>(), self.0.total_matched)
    }
}

#[derive(Debug, thiserror::Error)]
#[error("`{}` cannot be written", path.display())]
struct PageNotWritten {
    path: PathBuf,
    source: io::Error,
}

impl Explain for PageNotWritten {
    fn code(&self) -> &'static str {
        "limit.output"
    }

    fn class(&self) -> ErrorClass {
        ErrorClass::Limit
    }
}

pub(super) const META: Meta = Meta {
    name: "man",
    about: "Print the manual page, or write all of them into a folder",
    shape: "[DIR]",
    examples: &[
        Example {
            asks: "The page of veloq itself",
            command: "man",
        },
        Example {
            asks: "A page for each verb and command",
            command: "man pages/man1",
        },
    ],
    augment: ManRequest::augment_args,
    answer,
    schema: Some(|| answer_schema::<ManResponse>(None, "man", false)),
};

fn answer(asked: &Asked<'_>, matches: &ArgMatches) -> Result<Output, Failure> {
    let request = read_args::<ManRequest>(matches)?;
    let mut tree = app::build_for_help(asked.sources, None);
    tree.build();
    let Some(directory) = request.dir else {
        return Ok(Output::Text(page(&tree)));
    };
    let unwritten = |path: &Path| {
        let path = path.to_owned();
        move |source| PageNotWritten { path, source }
    };
    std::fs::create_dir_all(&directory).map_err(unwritten(&directory))?;
    let mut commands = Vec::new();
    collect(&tree, &mut commands);
    let mut rows = Vec::new();
    for command in commands {
        let name = command
            .get_display_name()
            .unwrap_or(command.get_name())
            .to_owned();
        let path = directory.join(format!("{name}.1"));
        let text = page(command);
        std::fs::write(&path, &text).map_err(unwritten(&path))?;
        rows.push(PageRow {
            key: format!("page|{name}"),
            name,
            path: path.to_string_lossy().into_owned(),
            bytes: text.len() as u64,
        });
    }
    let total = rows.len() as u64;
    Ok(Output::Answer(Box::new(ManResponse(Page::new(
        rows,
        total,
        NoAuxiliary {},
    )))))
}

fn collect<'a>(command: &'a Command, into: &mut Vec<&'a Command>) {
    into.push(command);
    for sub in command.get_subcommands() {
        collect(sub, into);
    }
}

fn page(command: &Command) -> String {
    let mut roff = Vec::new();
    // Writing into memory cannot fail.
    let _ = Man::new(command.clone()).render(&mut roff);
    String::from_utf8_lossy(&roff).into_owned()
}
