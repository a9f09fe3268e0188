//! The state of stored tables, each looked at to the last byte.

use std::fs;

use veloq_core::{Sidecar as SidecarState, SidecarReport, SidecarStatus};

use super::check::{Damage, Depth, Stored, check_table, read_manifest};
use super::contents::table_file;
use super::error::Error;
use super::fingerprint::Fingerprint;
use super::place::Place;
use super::{Store, TABLES};

impl Store {
    /// Returns the state of each table, in the order of [`TABLES`]; builds nothing.
    ///
    /// The tables are those a question would use; if there are none such, the nearest ones that are not
    /// missing; else none, in the folder where they would be.
    ///
    /// # Errors
    /// `input.…` when there is no such file or it cannot be read.
    pub(crate) fn status(&self) -> Result<SidecarReport, Error> {
        let input = Fingerprint::of(&self.input)?;
        let mut nearest = None;
        for place in &self.places {
            let report = report(place, &input);
            if report
                .sidecars
                .iter()
                .all(|table| table.status == SidecarStatus::Ready)
            {
                return Ok(report);
            }
            let is_missing = |report: &SidecarReport| {
                report
                    .sidecars
                    .iter()
                    .all(|table| table.status == SidecarStatus::Missing)
            };
            let better = match &nearest {
                None => true,
                Some((known, is_open)) => is_missing(known) && (!is_missing(&report) || !is_open),
            };
            if better {
                nearest = Some((report, place.is_open()));
            }
        }
        // A path that could be fingerprinted names a file, and so has places.
        let (report, _) = nearest.ok_or_else(|| Error::NoPlace {
            obstacles: Vec::new(),
        })?;
        Ok(report)
    }
}

fn report(place: &Place, input: &Fingerprint) -> SidecarReport {
    let dir = place.dir();
    let stored = read_manifest(place);
    let state = |index: usize, name: &str| {
        let path = dir.join(table_file(name));
        let bytes = fs::symlink_metadata(&path)
            .ok()
            .filter(|metadata| metadata.is_file())
            .map(|metadata| metadata.len());
        let or_missing = |status| bytes.map_or(SidecarStatus::Missing, |_| status);
        let (status, rows) = match &stored {
            // Without a manifest nobody knows what a file of that name is.
            Stored::Missing => (SidecarStatus::Missing, None),
            Stored::Stale(_) => (or_missing(SidecarStatus::Stale), None),
            Stored::Corrupt(_) => (or_missing(SidecarStatus::Corrupt), None),
            Stored::Intact(manifest) => {
                let table = &manifest.tables[index];
                match check_table(&dir, table, Depth::Whole) {
                    Err(Damage::TableMissing { .. }) => (SidecarStatus::Missing, None),
                    Err(_) => (SidecarStatus::Corrupt, None),
                    Ok(_) if manifest.input == *input => (SidecarStatus::Ready, Some(table.rows)),
                    Ok(_) => (SidecarStatus::Stale, Some(table.rows)),
                }
            }
        };
        SidecarState {
            name: name.to_owned(),
            path,
            status,
            rows,
            bytes,
        }
    };
    SidecarReport {
        sidecars: TABLES
            .iter()
            .enumerate()
            .map(|(index, name)| state(index, name))
            .collect(),
        artifact_dir: dir,
        input_bytes: input.size_bytes,
    }
}
