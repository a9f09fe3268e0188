//! The flags every command takes.

use std::ffi::OsString;

use clap::{Args, ValueEnum, value_parser};

/// The ids of the arguments that no verb may use for its own: clap would let both share one value.
pub const GLOBAL_IDS: &[&str] = &[
    TRACE, "format", "pretty", "quiet", "verbose", "strict", "threads", "help", "version",
];

/// The id of the trace's path.
pub(crate) const TRACE: &str = "trace";

/// The form of an answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// The whole answer as one JSON object on one line
    #[default]
    Json,
    /// The rows alone, all columns, numbers exact
    Csv,
    /// For people: readable units, cut to the terminal
    Table,
    /// The table as Markdown
    Md,
}

/// What can be asked of every command.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Globals {
    /// Form of the answer [default: json, or VELOQ_FORMAT]
    #[arg(
        long,
        global = true,
        value_enum,
        value_name = "FORMAT",
        overrides_with = "format"
    )]
    pub(crate) format: Option<Format>,
    /// Indent json answers
    #[arg(long, global = true)]
    pub(crate) pretty: bool,
    /// Print neither progress nor warnings
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Tell on stderr what is done (-vv: in detail)
    #[arg(long, short, global = true, action = clap::ArgAction::Count)]
    pub(crate) verbose: u8,
    /// Refuse a damaged trace instead of answering from its sound part
    #[arg(long, global = true)]
    pub(crate) strict: bool,
    /// Threads that may work [default: all]
    #[arg(long, global = true, value_name = "N", value_parser = value_parser!(u16).range(1..=1024))]
    pub(crate) threads: Option<u16>,
}

/// Global flags that take a value, as they are typed.
const VALUED: [&str; 2] = ["--format", "--threads"];

/// Returns the words of a command line that are neither flags nor values of global flags; the program's
/// name is left out.
pub(crate) fn plain_words(argv: &[OsString]) -> Vec<&OsString> {
    let mut words = Vec::new();
    let mut is_value = false;
    for word in argv.iter().skip(1) {
        let text = word.to_string_lossy();
        if is_value {
            is_value = false;
        } else if VALUED.contains(&text.as_ref()) {
            is_value = true;
        } else if !text.starts_with('-') {
            words.push(word);
        }
    }
    words
}

/// Returns the format of a command line that may be wrong elsewhere: what `--format` says if it names a
/// format, else `VELOQ_FORMAT`, else the default.
pub(crate) fn format_of(argv: &[OsString], variable: Option<&str>) -> Format {
    let named = |text: &str| Format::from_str(text, false).ok();
    let mut format = variable.and_then(named).unwrap_or_default();
    let mut words = argv.iter().skip(1).map(|word| word.to_string_lossy());
    while let Some(word) = words.next() {
        if word == "--" {
            break;
        }
        let value = if word == "--format" {
            words.next()
        } else {
            word.strip_prefix("--format=")
                .map(|value| value.to_owned().into())
        };
        if let Some(chosen) = value.as_deref().and_then(named) {
            format = chosen;
        }
    }
    format
}

#[cfg(test)]
mod tests {
    use super::*;

    fn argv(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn format_is_found_on_lines_that_do_not_parse() {
        assert_eq!(format_of(&argv("veloq nope --format csv"), None), Format::Csv);
        assert_eq!(
            format_of(&argv("veloq --format=md nope"), Some("csv")),
            Format::Md
        );
        assert_eq!(format_of(&argv("veloq nope"), Some("table")), Format::Table);
        assert_eq!(
            format_of(&argv("veloq nope --format tabel"), Some("csv")),
            Format::Csv
        );
        assert_eq!(format_of(&argv("veloq nope -- --format csv"), None), Format::Json);
        assert_eq!(format_of(&argv("veloq nope"), Some("yaml")), Format::Json);
    }

    #[test]
    fn plain_words_leave_out_flags_and_global_values() {
        let line = argv("veloq --format csv -v pytorch --threads 2 search run.json");
        assert_eq!(plain_words(&line), ["pytorch", "search", "run.json"]);
    }
}
