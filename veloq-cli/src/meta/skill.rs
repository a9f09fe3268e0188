//! `skill`: instructions for coding agents.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::{ArgMatches, Args, Command};
use schemars::JsonSchema;
use serde::Serialize;
use veloq_core::{
    Cell, Column, ErrorClass, Example, Explain, Failure, Page, Skill, Table, TableView, Unit, answer_schema,
};

use super::{Asked, Meta, NoAuxiliary};
use crate::output::Output;
use crate::render::count_table;
use crate::usage::{UsageError, read_args};

const FILE: &str = "SKILL.md";

/// Prints the skill, or installs it as NAME/SKILL.md in a folder
#[derive(Debug, Clone, Default, Args)]
struct SkillRequest {
    /// The skill; needed when there are several
    name: Option<String>,
    /// The folder to install into; it is made when missing
    #[arg(long, value_name = "DIR")]
    install: Option<PathBuf>,
    /// Replace a file that was changed
    #[arg(long, requires = "install")]
    force: bool,
}

/// The installed file.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(transparent)]
struct SkillResponse(Page<SkillRow, NoAuxiliary>);

/// An installed skill.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SkillRow {
    /// `skill|<name>`.
    key: String,
    /// Its name.
    name: String,
    /// Its file.
    path: String,
    /// The file's size.
    bytes: u64,
    /// Whether the file was written; false when it was there already, the same.
    written: bool,
}

impl TableView for SkillResponse {
    fn table(&self) -> Table {
        let columns = vec![
            Column::detail("key", Unit::Id),
            Column::new("name", Unit::Text),
            Column::new("path", Unit::Text),
            Column::new("bytes", Unit::Bytes),
            Column::new("written", Unit::Text),
        ];
        let rows = self.0.rows.iter().map(|row| {
            vec![
                row.key.as_str().into(),
                row.name.as_str().into(),
                row.path.as_str().into(),
                row.bytes.into(),
                Cell::Bool(row.written),
            ]
        });
        count_table(columns, rows.collect(), self.0.total_matched)
    }
}

#[derive(Debug, thiserror::Error)]
enum SkillError {
    #[error("no source has a skill")]
    None,
    #[error("`{}` is there already, with another content", .0.display())]
    Changed(PathBuf),
    #[error("`{}` is not a plain file", .0.display())]
    NotAFile(PathBuf),
    #[error("`{}` cannot be written", path.display())]
    NotWritten { path: PathBuf, source: io::Error },
}

impl Explain for SkillError {
    fn code(&self) -> &'static str {
        match self {
            Self::None => "capability.missing",
            Self::Changed(_) | Self::NotAFile(_) => "usage.output_exists",
            Self::NotWritten { .. } => "limit.output",
        }
    }

    fn class(&self) -> ErrorClass {
        match self {
            Self::None => ErrorClass::Unsupported,
            Self::Changed(_) | Self::NotAFile(_) => ErrorClass::Usage,
            Self::NotWritten { .. } => ErrorClass::Limit,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Changed(_) => Some("`--force` replaces it.".to_owned()),
            _ => None,
        }
    }
}

pub(super) const META: Meta = Meta {
    name: "skill",
    about: "Print the instructions for coding agents, or install them",
    shape: "[NAME]",
    examples: &[
        Example {
            asks: "The instructions, as Markdown",
            command: "skill",
        },
        Example {
            asks: "Install them where an agent looks for skills",
            command: "skill --install skills",
        },
    ],
    augment: |command: Command| SkillRequest::augment_args(command),
    answer,
    schema: Some(|| answer_schema::<SkillResponse>(None, "skill", false)),
};

fn answer(asked: &Asked<'_>, matches: &ArgMatches) -> Result<Output, Failure> {
    let request = read_args::<SkillRequest>(matches)?;
    let skills: Vec<Skill> = asked.sources.iter().filter_map(|source| source.skill()).collect();
    let names: Vec<&str> = skills.iter().map(|skill| skill.name).collect();
    let skill = match (&request.name, skills.as_slice()) {
        (_, []) => return Err(SkillError::None.into()),
        (None, [only]) => only,
        (given, all) => {
            let given = given.as_deref().unwrap_or_default();
            let found = all.iter().find(|skill| skill.name == given);
            found.ok_or_else(|| UsageError::invalid_choice("NAME", given, &names))?
        }
    };
    let Some(folder) = request.install else {
        return Ok(Output::Text(skill.text.to_owned()));
    };
    let path = folder.join(skill.name).join(FILE);
    let written = install(skill, &path, request.force)?;
    let row = SkillRow {
        key: format!("skill|{}", skill.name),
        name: skill.name.to_owned(),
        path: path.to_string_lossy().into_owned(),
        bytes: skill.text.len() as u64,
        written,
    };
    let page = Page::new(vec![row], 1, NoAuxiliary {});
    Ok(Output::Answer(Box::new(SkillResponse(page))))
}

/// Writes a skill's file, whole or not at all; returns whether there was anything to write.
fn install(skill: &Skill, path: &Path, force: bool) -> Result<bool, SkillError> {
    let not_written = |source| SkillError::NotWritten {
        path: path.to_owned(),
        source,
    };
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() => return Err(SkillError::NotAFile(path.to_owned())),
        Ok(_) if fs::read(path).map_err(not_written)? == skill.text.as_bytes() => return Ok(false),
        Ok(_) if !force => return Err(SkillError::Changed(path.to_owned())),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(not_written(error)),
    }
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder).map_err(not_written)?;
    let mut builder = tempfile::Builder::new();
    // Readable to whom other new files are: the default is the user alone.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(folder).map_err(not_written)?;
    file.write_all(skill.text.as_bytes()).map_err(not_written)?;
    file.persist(path).map_err(|error| not_written(error.error))?;
    Ok(true)
}
