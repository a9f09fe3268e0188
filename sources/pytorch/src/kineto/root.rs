//! The root of a trace: what stands before and behind its elements.

use super::scan::{Scanner, Stop};

/// The keys of the root beside `traceEvents`, with their values as JSON text, in file order.
pub(crate) type RootKeys = Vec<(String, Box<str>)>;

/// What the beginning of a text is.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Head {
    /// The elements begin at this position.
    Elements {
        at: usize,
        is_bare_array: bool,
        keys: RootKeys,
        is_damaged: bool,
    },
    /// Only more text can tell.
    NeedsMore,
    /// Not a trace: what it is instead.
    Other(LookAlike),
}

/// What a file is that is not a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LookAlike {
    NotJson,
    Utf16,
    Pickle,
    ExecutionTrace,
    MemoryTimeline,
    RocprofilerOutput,
    NoEvents,
    /// What there is of it could be the beginning of a trace.
    CutHead,
    ObjectsWithoutPhase,
    OtherArray,
}

impl LookAlike {
    /// Returns what the file is, in words.
    pub(crate) fn description(self) -> &'static str {
        match self {
            Self::NotJson => "not JSON",
            Self::Utf16 => "text in UTF-16",
            Self::Pickle => "a pickle, as memory snapshots are",
            Self::ExecutionTrace => "a PyTorch execution trace (`schema`, `nodes`), which has no timeline",
            Self::MemoryTimeline => "a memory timeline (arrays of time, action, bytes, category)",
            Self::RocprofilerOutput => "output of rocprofiler",
            Self::NoEvents => "a JSON object without `traceEvents`",
            Self::CutHead => "a JSON object that ends too early, before any `traceEvents`",
            Self::ObjectsWithoutPhase => "an array of objects that are no events (none has a `ph`)",
            Self::OtherArray => "a JSON array of something other than events",
        }
    }
}

/// Looks at the beginning of a text. `is_last` tells that no more text follows.
pub(crate) fn parse_head(text: &str, is_last: bool) -> Head {
    let mut scanner = Scanner::new(text, 0);
    match scanner.next_byte() {
        Err(_) if is_last => Head::Other(LookAlike::NotJson),
        Err(_) => Head::NeedsMore,
        Ok(b'[') => {
            scanner.advance();
            match scanner.next_byte() {
                Err(_) if !is_last => Head::NeedsMore,
                Ok(b'[') => Head::Other(LookAlike::MemoryTimeline),
                Ok(b'{' | b']') | Err(_) => Head::Elements {
                    at: scanner.at(),
                    is_bare_array: true,
                    keys: Vec::new(),
                    is_damaged: false,
                },
                Ok(_) => Head::Other(LookAlike::OtherArray),
            }
        }
        Ok(b'{') => {
            scanner.advance();
            parse_object_head(text, scanner, is_last)
        }
        Ok(_) => Head::Other(LookAlike::NotJson),
    }
}

/// What comes next in the root object.
enum Step {
    Key,
    Elements,
    End,
}

fn next_key(scanner: &mut Scanner<'_>, keys: &mut RootKeys) -> Result<Step, Stop> {
    if scanner.next_byte()? == b'}' {
        scanner.advance();
        return Ok(Step::End);
    }
    let key = scanner.key()?;
    if key == "traceEvents" && scanner.next_byte()? == b'[' {
        scanner.advance();
        return Ok(Step::Elements);
    }
    let value = scanner.skip_value()?;
    keys.push((key.to_owned(), value.into()));
    match scanner.next_byte()? {
        b',' => scanner.advance(),
        b'}' => {}
        _ => return Err(Stop::Fault(scanner.at())),
    }
    Ok(Step::Key)
}

fn parse_object_head(text: &str, mut scanner: Scanner<'_>, is_last: bool) -> Head {
    let mut keys = RootKeys::new();
    loop {
        let before = scanner.at();
        match next_key(&mut scanner, &mut keys) {
            Ok(Step::Key) => {}
            Ok(Step::Elements) => {
                return Head::Elements {
                    at: scanner.at(),
                    is_bare_array: false,
                    keys,
                    is_damaged: false,
                };
            }
            Ok(Step::End) => return Head::Other(look_alike(&keys)),
            Err(Stop::End) if !is_last => return Head::NeedsMore,
            Err(stop) => {
                return match find_elements(&text[before..]) {
                    Some(at) => Head::Elements {
                        at: before + at,
                        is_bare_array: false,
                        keys,
                        is_damaged: true,
                    },
                    None if !is_last => Head::NeedsMore,
                    None => Head::Other(match look_alike(&keys) {
                        LookAlike::NoEvents if stop == Stop::End => LookAlike::CutHead,
                        LookAlike::NoEvents if keys.is_empty() => LookAlike::NotJson,
                        known => known,
                    }),
                };
            }
        }
    }
}

/// Returns the position behind `"traceEvents": [`.
pub(super) fn find_elements(text: &str) -> Option<usize> {
    const KEY: &str = "\"traceEvents\"";
    text.match_indices(KEY).find_map(|(at, _)| {
        let mut scanner = Scanner::new(text, at + KEY.len());
        (scanner.next_byte() == Ok(b':')).then(|| scanner.advance())?;
        (scanner.next_byte() == Ok(b'[')).then(|| scanner.advance())?;
        Some(scanner.at())
    })
}

fn look_alike(keys: &RootKeys) -> LookAlike {
    let has = |key: &str| keys.iter().any(|(known, _)| known == key);
    if has("nodes") && has("schema") {
        LookAlike::ExecutionTrace
    } else if has("rocprofiler-sdk-tool") {
        LookAlike::RocprofilerOutput
    } else {
        LookAlike::NoEvents
    }
}

/// What stands behind the elements of a root object.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Tail {
    pub(crate) keys: RootKeys,
    pub(crate) is_damaged: bool,
    pub(crate) is_closed: bool,
    /// Where the root object ends, if it was read up to there.
    pub(crate) end: Option<usize>,
}

/// Reads the keys behind the elements; `text` begins behind the array's bracket.
pub(crate) fn parse_tail(text: &str) -> Tail {
    let mut tail = Tail::default();
    let mut scanner = Scanner::new(text, 0);
    match scanner.next_byte() {
        Ok(b',') => scanner.advance(),
        Ok(b'}') => {}
        Ok(_) => tail.is_damaged = true,
        Err(_) => return tail,
    }
    while !tail.is_damaged {
        match next_key(&mut scanner, &mut tail.keys) {
            Ok(Step::Key) => {}
            Ok(Step::End) => {
                tail.is_closed = true;
                tail.end = Some(scanner.at());
                return tail;
            }
            // A second array of elements is no trace's.
            Ok(Step::Elements) | Err(Stop::Fault(_) | Stop::TooDeep) => tail.is_damaged = true,
            Err(Stop::End) => return tail,
        }
    }
    rescue_base_time(&text[scanner.at()..], &mut tail.keys);
    tail.is_closed = text.trim_end().ends_with('}');
    tail
}

/// Finds the one key without which times mean nothing in a root that is damaged before it.
fn rescue_base_time(text: &str, keys: &mut RootKeys) {
    const KEY: &str = "baseTimeNanoseconds";
    let Some(at) = text.rfind(&format!("\"{KEY}\"")) else {
        return;
    };
    let mut scanner = Scanner::new(text, at);
    if scanner.key().is_ok()
        && let Ok(value) = scanner.skip_value()
    {
        keys.push((KEY.to_owned(), value.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_found_behind_any_keys() {
        let text = r#"{"traceName":"] \"traceEvents\": [","schemaVersion":1, "traceEvents" : [ {"#;
        let Head::Elements {
            at, keys, is_damaged, ..
        } = parse_head(text, false)
        else {
            panic!()
        };
        assert_eq!(&text[at..], " {");
        assert_eq!((keys.len(), is_damaged), (2, false));
        assert_eq!(parse_head(&text[..40], false), Head::NeedsMore);
    }

    #[test]
    fn damaged_keys_do_not_hide_the_elements() {
        let text = "{\"INFO\": [\"a\nb\"], \"traceEvents\": [";
        assert!(matches!(
            parse_head(text, false),
            Head::Elements { is_damaged: true, .. }
        ));
    }

    #[test]
    fn look_alikes_are_named() {
        let named = |text| match parse_head(text, true) {
            Head::Other(look_alike) => look_alike,
            other => panic!("{other:?}"),
        };
        assert_eq!(
            named(r#"{"schema":"1.1","pid":1,"nodes":[]}"#),
            LookAlike::ExecutionTrace
        );
        assert_eq!(named(r#"[[1,"a",2,3]]"#), LookAlike::MemoryTimeline);
        assert_eq!(
            named(r#"{"rocprofiler-sdk-tool":[]}"#),
            LookAlike::RocprofilerOutput
        );
        assert_eq!(named(r#"{"a":1}"#), LookAlike::NoEvents);
        for cut in ["{", r#"{"a":1"#, r#"{"a":1, "traceEv"#, r#"{"traceEvents":"#] {
            assert_eq!(named(cut), LookAlike::CutHead, "{cut}");
        }
        assert_eq!(
            named(r#"{"schema":"1.1","pid":1,"nodes":[],"#),
            LookAlike::ExecutionTrace
        );
        assert_eq!(named("hello"), LookAlike::NotJson);
        assert_eq!(named("[1]"), LookAlike::OtherArray);
    }

    #[test]
    fn keys_behind_the_elements_are_read_or_rescued() {
        let tail = parse_tail(r#", "displayTimeUnit": "ms", "baseTimeNanoseconds": 1751410836000000000}"#);
        assert_eq!(
            (tail.keys.len(), tail.is_closed, tail.is_damaged),
            (2, true, false)
        );
        let tail = parse_tail(",\n\"INFO\": [\"a\nb\"], \"baseTimeNanoseconds\": 17}");
        assert_eq!(tail.keys, [("baseTimeNanoseconds".to_owned(), "17".into())]);
        assert!(tail.is_damaged && tail.is_closed);
        assert!(!parse_tail("").is_closed);
    }
}
