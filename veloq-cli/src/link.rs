//! The sources of this build. A `use` is what links a source's crate, and with it its registration.

use veloq_source_pytorch as _;
