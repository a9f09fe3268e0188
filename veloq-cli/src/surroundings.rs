//! What a call finds around it: environment variables and terminals.

use std::io::IsTerminal;

use terminal_size::{Width, terminal_size_of};
use veloq_core::Interrupt;

/// The width of tables where there is no terminal to ask.
const DEFAULT_WIDTH: usize = 100;

/// What a call depends on besides its words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surroundings {
    /// The value of `VELOQ_FORMAT`, when set and not empty.
    pub format: Option<String>,
    /// The columns a table may use.
    pub width: usize,
    /// Whether standard output understands colours and wants them.
    pub has_color: bool,
    /// Whether somebody watches standard error.
    pub shows_progress: bool,
    /// Who may ask to stop.
    pub interrupt: Interrupt,
}

impl Default for Surroundings {
    /// No terminal, no variables.
    fn default() -> Self {
        Self {
            format: None,
            width: DEFAULT_WIDTH,
            has_color: false,
            shows_progress: false,
            interrupt: Interrupt::default(),
        }
    }
}

impl Surroundings {
    /// Returns those of this process.
    ///
    /// `VELOQ_FORMAT` sets the default format and `COLUMNS` the width. `NO_COLOR` (any value but the empty
    /// one, as <https://no-color.org> has it) and `TERM=dumb` turn colours off.
    pub fn of_process() -> Self {
        let variable = |name: &str| {
            std::env::var_os(name)
                .filter(|value| !value.is_empty())
                .map(|value| value.to_string_lossy().into_owned())
        };
        let is_terminal = std::io::stdout().is_terminal();
        let columns = variable("COLUMNS")
            .and_then(|columns| columns.parse().ok())
            .filter(|columns| *columns > 0);
        let width = columns.or_else(|| {
            let (Width(columns), _) = terminal_size_of(std::io::stdout())?;
            Some(usize::from(columns)).filter(|columns| *columns > 0)
        });
        let wants_color =
            variable("NO_COLOR").is_none() && variable("TERM").is_none_or(|term| term != "dumb");
        Self {
            format: variable("VELOQ_FORMAT"),
            width: width.unwrap_or(DEFAULT_WIDTH),
            has_color: is_terminal && wants_color,
            shows_progress: std::io::stderr().is_terminal(),
            interrupt: Interrupt::default(),
        }
    }
}
