//! One call, from its words to its exit status.

use std::ffi::OsString;
use std::io::{BufWriter, Write};

use veloq_core::{
    ErasedSource, ErrorClass, ErrorEnvelope, Explain, Failure, Input, PrepOptions, ProgressSink, Report,
    TraceRef, check_registry, sources,
};

use crate::args::{Format, Globals, format_of};
use crate::framework;
use crate::logging;
use crate::meta;
use crate::output::{Ended, Head, Output, ended_by_io};
use crate::panics;
use crate::progress::Meter;
use crate::render::{self, Style};
use crate::route::{Question, Route, guess, route, source_ref};
use crate::signals::INTERRUPTED;
use crate::surroundings::Surroundings;
use crate::usage::UsageError;

#[derive(Debug, thiserror::Error)]
#[error("the registry of sources is wrong: {0}")]
struct BadRegistry(String);

impl Explain for BadRegistry {
    fn code(&self) -> &'static str {
        "internal.registry"
    }

    fn class(&self) -> ErrorClass {
        ErrorClass::Internal
    }
}

/// Answers one call: writes the answer to `out`, everything else to `err`, and returns the exit status.
///
/// An error is written to `out` in json format, else to `err`. A closed pipe is a quiet success, and a call that
/// is interrupted says nothing.
pub fn run(
    args: impl IntoIterator<Item = OsString>,
    surroundings: &Surroundings,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> u8 {
    let argv: Vec<OsString> = args.into_iter().collect();
    let mut style = Style {
        format: format_of(&argv, surroundings.format.as_deref()),
        is_indented: argv.iter().any(|word| word == "--pretty"),
        width: surroundings.width,
        has_color: surroundings.has_color,
    };
    let mut head = Head::default();
    let mut buffered = BufWriter::with_capacity(1 << 16, out);
    let ended = panics::catch(|| {
        call(&argv, surroundings, &mut head, &mut style, &mut buffered)?;
        buffered.flush().map_err(ended_by_io)
    })
    .unwrap_or_else(|panicked| Err(panicked.into()));
    match ended {
        Ok(()) | Err(Ended::Closed) => {
            // What a closed pipe left in the buffer is of no use.
            let _ = buffered.into_parts();
            0
        }
        Err(Ended::Failed(_)) if surroundings.interrupt.is_requested() => {
            let _ = buffered.into_parts();
            INTERRUPTED
        }
        Err(Ended::Failed(failure)) => {
            // Half an answer in the buffer must not stand before the error.
            let (out, _) = buffered.into_parts();
            report(&failure, &head, &style, out, err);
            failure.class().exit_status()
        }
    }
}

fn call(
    argv: &[OsString],
    surroundings: &Surroundings,
    head: &mut Head,
    style: &mut Style,
    out: &mut dyn Write,
) -> Result<(), Ended> {
    let sources = sources();
    *head = guess(argv, &sources).0;
    check_registry(&sources).map_err(BadRegistry)?;
    let (globals, question) = match route(argv, &sources, surroundings.has_color)? {
        Route::Text(text) => return out.write_all(text.as_bytes()).map_err(ended_by_io),
        Route::Question { globals, question } => (globals, question),
    };
    style.format = match (globals.format, surroundings.format.as_deref()) {
        (Some(format), _) => format,
        (None, Some(named)) => format_of_variable(named)?,
        (None, None) => Format::default(),
    };
    style.is_indented = globals.pretty;
    logging::start(globals.quiet, globals.verbose);
    let output = answer(&question, &globals, surroundings, head, &sources)?;
    match output {
        Output::Answer(answer) => render::answer(head, answer.as_ref(), style, out),
        Output::Text(text) => out.write_all(text.as_bytes()).map_err(ended_by_io),
    }
}

/// Asks whoever is to answer; fills the head as it becomes known.
fn answer(
    question: &Question,
    globals: &Globals,
    surroundings: &Surroundings,
    head: &mut Head,
    sources: &[&'static dyn ErasedSource],
) -> Result<Output, Ended> {
    let meter = (surroundings.shows_progress && !globals.quiet).then(Meter::new);
    let options = PrepOptions {
        force: false,
        strict: globals.strict,
        threads: globals.threads.map(usize::from),
        progress: meter.as_ref().map(|meter| meter as &dyn ProgressSink),
        interrupt: Some(&surroundings.interrupt),
    };
    match question {
        Question::Verb {
            source,
            verb,
            trace,
            matches,
        } => {
            let input = Input::new(trace);
            set_head(head, *source, verb, Some(&input));
            let outcome = source
                .run(verb, &input, &options, matches)
                .ok_or_else(|| UsageError::unknown_verb(verb, "veloq", &[]))??;
            head.trace_span = outcome.span;
            Ok(Output::Answer(outcome.answer))
        }
        Question::Framework {
            source,
            verb,
            trace,
            matches,
        } => {
            let input = trace.as_ref().map(Input::new);
            set_head(head, *source, verb.name, input.as_ref());
            let asked = framework::Asked {
                source: *source,
                input: input.unwrap_or_else(|| Input::new("")),
                options,
            };
            let reply = (verb.answer)(&asked, matches)?;
            head.trace_span = reply.trace_span;
            Ok(reply.output)
        }
        Question::Meta { meta, matches } => {
            meta.name.clone_into(&mut head.command);
            head.source = None;
            let asked = meta::Asked {
                sources,
                has_color: surroundings.has_color,
            };
            Ok((meta.answer)(&asked, matches)?)
        }
    }
}

fn set_head(head: &mut Head, source: &dyn ErasedSource, verb: &str, input: Option<&Input>) {
    head.command = format!("{}.{verb}", source.spec().name);
    head.source = Some(source_ref(source));
    head.trace = input.map(|input| TraceRef {
        kind: source.spec().name,
        path: input.display(),
    });
}

fn format_of_variable(named: &str) -> Result<Format, UsageError> {
    use clap::ValueEnum;
    Format::from_str(named, false).map_err(|_| {
        let names: Vec<String> = Format::value_variants()
            .iter()
            .filter_map(|format| Some(format.to_possible_value()?.get_name().to_owned()))
            .collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        UsageError::invalid_choice("VELOQ_FORMAT", named, &names)
    })
}

/// Writes an error where it belongs. When even that fails there is nobody left to tell.
fn report(failure: &Failure, head: &Head, style: &Style, out: &mut dyn Write, err: &mut dyn Write) {
    let report: Report = failure.report();
    let is_written = style.format == Format::Json && {
        let envelope = ErrorEnvelope::new(
            head.source.clone(),
            &head.command,
            head.trace.as_ref(),
            head.trace_span.as_ref(),
            &report,
        );
        render::json::write(&envelope, style.is_indented, out).is_ok() && out.flush().is_ok()
    };
    if !is_written {
        let _ = err.write_all(render::error_text(&report).as_bytes());
    }
}
