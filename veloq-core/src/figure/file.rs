//! Writing a figure where the user wants it, and nowhere else.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use crate::error::{ErrorClass, Explain, Failure};

#[derive(Debug, thiserror::Error)]
enum FigureError {
    #[error("`{}` is there already, and is no SVG file", .0.display())]
    Occupied(PathBuf),
    #[error("`{}` cannot be written", path.display())]
    NotWritten { path: PathBuf, source: io::Error },
}

impl Explain for FigureError {
    fn code(&self) -> &'static str {
        match self {
            Self::Occupied(_) => "usage.output_exists",
            Self::NotWritten { .. } => "limit.output",
        }
    }

    fn class(&self) -> ErrorClass {
        match self {
            Self::Occupied(_) => ErrorClass::Usage,
            Self::NotWritten { .. } => ErrorClass::Limit,
        }
    }

    fn hint(&self) -> Option<String> {
        match self {
            Self::Occupied(_) => Some("Give a new file, or one that holds an SVG picture.".to_owned()),
            Self::NotWritten { .. } => None,
        }
    }
}

/// What every figure begins with, and every file must that a figure may replace.
pub(super) const START: &str = "<svg ";

/// Writes an SVG document to a file, whole or not at all; another SVG file is replaced.
///
/// # Errors
/// `usage.output_exists` when something else is there, a link or a folder among it; `limit.output` when the file
/// cannot be written.
pub fn write_svg(path: &Path, svg: &str) -> Result<(), Failure> {
    let not_written = |source| FigureError::NotWritten {
        path: path.to_owned(),
        source,
    };
    match fs::symlink_metadata(path) {
        Ok(found) if !found.is_file() || !is_svg(path) => {
            return Err(FigureError::Occupied(path.to_owned()).into());
        }
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(not_written(error).into()),
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut builder = tempfile::Builder::new();
    // Readable to whom other new files are: the default is the user alone.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder
        .tempfile_in(folder.unwrap_or(Path::new(".")))
        .map_err(not_written)?;
    file.write_all(svg.as_bytes()).map_err(not_written)?;
    file.persist(path).map_err(|error| not_written(error.error))?;
    Ok(())
}

fn is_svg(path: &Path) -> bool {
    let mut start = [0; START.len()];
    File::open(path).is_ok_and(|mut file| file.read_exact(&mut start).is_ok() && start == *START.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_figures_are_replaced() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.svg");
        write_svg(&path, "<svg one/>").unwrap();
        write_svg(&path, "<svg two/>").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "<svg two/>");
        for content in ["", "{\"traceEvents\":[]}"] {
            fs::write(&path, content).unwrap();
            let refused = write_svg(&path, "<svg three/>").unwrap_err();
            assert_eq!(refused.code(), "usage.output_exists");
            assert_eq!(fs::read_to_string(&path).unwrap(), content);
        }
        assert_eq!(
            write_svg(folder.path(), "<svg/>").unwrap_err().code(),
            "usage.output_exists"
        );
        let nowhere = folder.path().join("none/a.svg");
        assert_eq!(write_svg(&nowhere, "<svg/>").unwrap_err().code(), "limit.output");
    }
}
