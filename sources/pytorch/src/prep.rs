//! Opening a trace: its tables as they are, or built.

use std::num::NonZero;
use std::thread;
use std::time::Instant;

use serde_json::value::to_raw_value;
use veloq_core::{Input, Interrupt, PrepOptions, Preparation};

use crate::ingest::build::{Workplace, build};
use crate::inventory::{Damage, Inventory};
use crate::kineto::error::ReadError;
use crate::open_error::OpenError;
use crate::query::engine::Engine;
use crate::session::TraceSession;
use crate::sidecar::{Contents, Draft, Store};

/// More threads than this gain nothing: unpacking and collecting are one thread each.
const MAX_THREADS: usize = 8;

/// Opens a trace.
///
/// # Errors
/// When the input is missing, unreadable or no trace; when no place takes its tables; with `strict`, when
/// anything in it had to be repaired or passed over.
pub(crate) fn open(input: &Input, options: &PrepOptions<'_>) -> Result<TraceSession, OpenError> {
    let start = Instant::now();
    let available = || {
        thread::available_parallelism()
            .map_or(1, NonZero::get)
            .min(MAX_THREADS)
    };
    let threads = options.threads.unwrap_or_else(available).max(1);
    let obtained = Store::new(&input.path).obtain(options.force, |draft: &Draft| {
        let _hold = options.interrupt.map(Interrupt::hold);
        let file = |table: &str| draft.path(table);
        let place = Workplace {
            file: &file,
            threads,
            progress: options.progress,
            interrupt: options.interrupt,
        };
        let built = build(&input.path, &place)?;
        let inventory = to_raw_value(&built.inventory).map_err(OpenError::Inventory)?;
        Ok::<_, OpenError>(Contents {
            rows: built.rows,
            inventory,
        })
    })?;
    let manifest = obtained.sidecar.manifest();
    let input_bytes = manifest.input.size_bytes;
    let inventory: Inventory =
        serde_json::from_str(manifest.inventory.get()).map_err(OpenError::Inventory)?;
    if options.strict
        && let Some(damage) = &inventory.first_damage
    {
        return Err(strict_error(damage).into());
    }
    let dir = obtained.sidecar.dir().to_owned();
    let engine = Engine::new(obtained.sidecar, threads)?;
    let preparation = Preparation {
        artifact_dir: dir,
        built: obtained.built,
        elapsed_ms: u64::try_from(start.elapsed().as_millis()).unwrap_or(u64::MAX),
        input_bytes,
    };
    Ok(TraceSession::new(input.display(), engine, inventory, preparation))
}

fn strict_error(damage: &Damage) -> ReadError {
    if let (true, Some(offset)) = (damage.is_truncation, damage.byte_offset) {
        return ReadError::Truncated {
            offset,
            index: damage.index,
        };
    }
    ReadError::Damaged {
        what: damage.what.clone(),
        offset: damage.byte_offset,
        index: damage.index,
    }
}
