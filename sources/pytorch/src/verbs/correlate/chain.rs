//! One seed's chain: its rows by role, its links, its launch times, and why it is incomplete.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::error::Error;
use crate::kineto::names::{is_graph_launch, is_launch};
use crate::query::event::StoredEvent;
use crate::query::related::{Confidence, op_confidence};
use crate::row::RowType;
use crate::session::TraceSession;

use super::query::{BACKWARD_SHOWN, Below, Surroundings, seed_ops};
use super::{ChainEvent, CorrelateRow, LaunchTimes, LinkKind, LinkRow, Role};

/// A seed's row of the answer.
pub(super) struct Walked {
    pub(super) row: CorrelateRow,
    pub(super) is_truncated: bool,
}

/// A chain while it is put together: rows by index, each with its first role.
struct Chain<'a> {
    around: &'a Surroundings,
    roles: BTreeMap<u32, (Role, &'a StoredEvent)>,
    links: Vec<(u32, u32, LinkKind, Confidence)>,
}

fn role_of(event: &StoredEvent) -> Role {
    match event.id.row_type {
        RowType::Step => Role::Step,
        RowType::Annotation => Role::Annotation,
        RowType::Python => Role::Python,
        RowType::CpuOp => Role::CpuOp,
        RowType::Runtime => Role::Runtime,
        RowType::Driver => Role::Driver,
        RowType::Kernel | RowType::Memcpy | RowType::Memset | RowType::Sync => Role::Device,
        _ => Role::Other,
    }
}

impl<'a> Chain<'a> {
    fn get(&self, index: Option<u32>) -> Option<&'a StoredEvent> {
        self.around.events.get(&index?)
    }

    fn add(&mut self, event: &'a StoredEvent, role: Role) {
        self.roles.entry(event.id.index).or_insert((role, event));
    }

    fn link(&mut self, from: u32, to: u32, kind: LinkKind, confidence: Confidence) {
        if from != to {
            self.links.push((from, to, kind, confidence));
        }
    }

    /// Adds a chain of rows of one kind, outermost first, and links each to the next.
    fn add_nested(&mut self, rows: &[u32]) {
        for row in rows {
            if let Some(event) = self.get(Some(*row)) {
                self.add(event, role_of(event));
            }
        }
        for pair in rows.windows(2) {
            self.link(pair[0], pair[1], LinkKind::Encloses, Confidence::Time);
        }
    }

    /// Adds the rows around a seed, or around its launch, and links the innermost of each kind to it.
    fn add_contexts(&mut self, seed: &'a StoredEvent, anchor: &'a StoredEvent) {
        let around = self.around;
        let annotations = around.annotations.outer_first(seed.annotation);
        let frames = around.frames.outer_first(seed.python);
        let ops = around.ops.outer_first(seed.op);
        self.add_nested(&annotations);
        self.add_nested(&frames);
        self.add_nested(&ops);
        for innermost in [annotations.last(), frames.last()].into_iter().flatten() {
            self.link(*innermost, anchor.id.index, LinkKind::Encloses, Confidence::Time);
        }
        if let Some(op) = self.get(seed.op) {
            let confidence = op_confidence(op, anchor);
            self.link(op.id.index, anchor.id.index, LinkKind::Encloses, confidence);
        }
        if let Some(step) = around.step_of(seed)
            && !self.roles.contains_key(&step.id.index)
            && step.id != seed.id
        {
            self.add(step, Role::Step);
            self.link(step.id.index, anchor.id.index, LinkKind::Step, Confidence::Time);
        }
    }

    /// Adds a device row with the call that launched it.
    fn add_device(&mut self, device: &'a StoredEvent) -> Option<&'a StoredEvent> {
        self.add(device, Role::Device);
        let launch = self.get(device.launch)?;
        self.add(launch, role_of(launch));
        let key = device.correlation_id.map(|number| (device.rank, number));
        let is_ambiguous = key.is_some_and(|key| self.around.ambiguous.contains(&key));
        let confidence = if is_ambiguous {
            Confidence::Ambiguous
        } else {
            Confidence::Correlation
        };
        self.link(launch.id.index, device.id.index, LinkKind::Launches, confidence);
        Some(launch)
    }

    /// Adds the device rows below a range, with their calls and the operators in between.
    fn add_below(&mut self, seed: &'a StoredEvent, below: &Below) {
        for row in &below.shown {
            let Some(device) = self.get(Some(*row)) else {
                continue;
            };
            let launch = self.add_device(device);
            if seed.id.row_type.is_api() {
                continue;
            }
            let anchor = launch.unwrap_or(device);
            let mut between: Vec<u32> = self.around.ops.inner_first(device.op).collect();
            match between.iter().position(|op| *op == seed.id.index) {
                Some(at) => between.truncate(at),
                // Of a range of another kind only the operator that launched: those around it are many.
                None => between.truncate(1),
            }
            between.reverse();
            self.add_nested(&between);
            let (outer, confidence) = match (between.first(), between.last()) {
                (Some(first), Some(last)) => {
                    if let Some(op) = self.get(Some(*last)) {
                        self.link(
                            *last,
                            anchor.id.index,
                            LinkKind::Encloses,
                            op_confidence(op, anchor),
                        );
                    }
                    (*first, Confidence::Time)
                }
                _ if seed.id.row_type == RowType::CpuOp => (anchor.id.index, op_confidence(seed, anchor)),
                _ => (anchor.id.index, Confidence::Time),
            };
            let is_same_thread = anchor.track == seed.track;
            let kind = if seed.id.row_type == RowType::Step && !is_same_thread {
                LinkKind::Step
            } else {
                LinkKind::Encloses
            };
            self.link(seed.id.index, outer, kind, confidence);
        }
    }

    /// Adds the forward and backward operators of the operators around a seed.
    fn add_autograd(&mut self, seed: &StoredEvent) {
        for op in seed_ops(seed, &self.around.ops) {
            if let Some(forward) = self.get(Some(op)).and_then(|op| self.get(op.forward)) {
                self.add(forward, Role::Forward);
                self.link(
                    forward.id.index,
                    op,
                    LinkKind::ForwardBackward,
                    Confidence::Autograd,
                );
            }
            let backward = self.around.backward.get(&op).into_iter().flatten();
            for row in backward.take(BACKWARD_SHOWN) {
                if let Some(event) = self.get(Some(row.index)) {
                    self.add(event, Role::Backward);
                    self.link(op, row.index, LinkKind::ForwardBackward, Confidence::Autograd);
                }
            }
        }
    }

    /// Returns rows and links in the order of the answer.
    fn finish(mut self, session: &TraceSession) -> Result<(Vec<ChainEvent>, Vec<LinkRow>), Error> {
        let mut rows: Vec<(Role, &StoredEvent)> = self.roles.values().copied().collect();
        rows.sort_by_key(|(role, event)| {
            // Calls of both kinds are one part of the chain.
            let part = if *role == Role::Driver {
                Role::Runtime
            } else {
                *role
            };
            (part, event.start_ns, Reverse(event.end_ns()), event.id.index)
        });
        let place: BTreeMap<u32, usize> = rows
            .iter()
            .enumerate()
            .map(|(at, (_, event))| (event.id.index, at))
            .collect();
        self.links
            .sort_by_key(|(from, to, kind, _)| (place.get(from), place.get(to), *kind));
        self.links.dedup();
        let row_id = |index: &u32| place.get(index).map(|at| rows[*at].1.id.to_string());
        let links = self
            .links
            .iter()
            .filter_map(|(from, to, kind, confidence)| {
                Some(LinkRow {
                    from_row_id: row_id(from)?,
                    to_row_id: row_id(to)?,
                    kind: *kind,
                    confidence: *confidence,
                })
            })
            .collect();
        let events = rows
            .iter()
            .map(|(role, event)| {
                Ok(ChainEvent {
                    role: *role,
                    event: event.row(session)?,
                })
            })
            .collect::<Result<_, Error>>()?;
        Ok((events, links))
    }
}

/// Walks from one seed.
pub(super) fn walk(
    session: &TraceSession,
    seed: &StoredEvent,
    around: &Surroundings,
) -> Result<Walked, Error> {
    let mut chain = Chain {
        around,
        roles: BTreeMap::new(),
        links: Vec::new(),
    };
    let is_device = role_of(seed) == Role::Device;
    let (launch, below) = if is_device {
        let launch = chain.add_device(seed);
        let below = Below {
            shown: vec![seed.id.index],
            total: 1,
            total_ns: seed.start_ns.and(seed.duration_ns).unwrap_or(0),
            only_launch: None,
        };
        (launch, below)
    } else {
        chain.add(seed, role_of(seed));
        let below = around.below.get(&seed.id.index).cloned().unwrap_or_default();
        (chain.get(below.only_launch), below)
    };
    if let Some(source) = around.projected_from.get(&seed.id.index) {
        chain.add(source, role_of(source));
        chain.link(
            source.id.index,
            seed.id.index,
            LinkKind::Projects,
            Confidence::ExternalId,
        );
    }
    let anchor = if is_device { launch.unwrap_or(seed) } else { seed };
    chain.add_contexts(seed, anchor);
    if !is_device {
        chain.add_below(seed, &below);
    }
    chain.add_autograd(seed);
    let first = below.shown.first().and_then(|row| chain.get(Some(*row)));
    let times = match (launch, first) {
        (Some(launch), Some(device)) if device.id.row_type.is_device_work() => {
            Some(launch_times(launch, device))
        }
        _ => None,
    };
    let reason = Reasons {
        session,
        seed,
        launch,
        first,
        below: &below,
    }
    .reason()?;
    let (events, links) = chain.finish(session)?;
    let seed_id = seed.id.to_string();
    Ok(Walked {
        is_truncated: (below.shown.len() as u64) < below.total,
        row: CorrelateRow {
            key: seed_id.clone(),
            seed: seed_id,
            events,
            links,
            launch: times,
            device_total: below.total,
            device_total_ns: below.total_ns,
            reason,
        },
    })
}

/// Returns by how much a device row starts before its call, where it does.
fn inversion_ns(launch: &StoredEvent, device: &StoredEvent) -> Option<i64> {
    let early = launch.start_ns? - device.start_ns?;
    (early > 0).then_some(early)
}

/// Returns the times of a launch; see the module `correlate` for what they are.
fn launch_times(launch: &StoredEvent, device: &StoredEvent) -> LaunchTimes {
    let starts = launch
        .start_ns
        .zip(device.start_ns)
        .filter(|(call, work)| call <= work);
    let queue_ns = starts.zip(launch.end_ns()).map(|((_, start_ns), call_end_ns)| {
        // Without earlier work on the stream nothing was waited for.
        let free_ns = device.stream_free_ns.unwrap_or(call_end_ns);
        (start_ns.min(free_ns) - call_end_ns).max(0)
    });
    LaunchTimes {
        launch_row_id: launch.id.to_string(),
        device_row_id: device.id.to_string(),
        api_ns: launch.duration_ns,
        launch_to_start_ns: starts.map(|(call, work)| work - call),
        queue_ns,
    }
}

/// What the reasons for an incomplete chain depend on.
struct Reasons<'a> {
    session: &'a TraceSession,
    seed: &'a StoredEvent,
    launch: Option<&'a StoredEvent>,
    /// The first device row.
    first: Option<&'a StoredEvent>,
    below: &'a Below,
}

impl Reasons<'_> {
    fn has(&self, capability: &str) -> bool {
        let capabilities = &self.session.inventory().capabilities;
        capabilities
            .get(capability)
            .is_some_and(|capability| capability.available)
    }

    fn reason(&self) -> Result<Option<String>, Error> {
        let mut reasons = Vec::new();
        let strings = self.session.strings()?;
        let name = |event: &StoredEvent| event.name.map_or("", |name| strings.get(name));
        match role_of(self.seed) {
            Role::Device if self.launch.is_none() => reasons.push(self.why_unlaunched()),
            Role::Device if self.seed.op.is_none() && self.has("cpu_ops") => {
                reasons.push("no operator around the launch".to_owned());
            }
            Role::Device => {}
            Role::Runtime | Role::Driver if self.below.total == 0 => {
                reasons.push(if is_launch(name(self.seed)) {
                    "its device rows are not in the file: captured into a graph, dropped, or not recorded"
                        .to_owned()
                } else {
                    "not a launch".to_owned()
                });
            }
            Role::Annotation if self.seed.is_device_side() => reasons.push(
                "an annotation projected on a stream: it spans device work and launches none".to_owned(),
            ),
            Role::Step | Role::Annotation | Role::Python | Role::CpuOp if self.below.total == 0 => {
                reasons.push(if self.has("gpu_activity") {
                    "launched no device work".to_owned()
                } else {
                    "the file has no device rows".to_owned()
                });
            }
            Role::Other => reasons.push("not a launch".to_owned()),
            _ => {}
        }
        if self.launch.is_some_and(|launch| is_graph_launch(name(launch))) {
            reasons.push(
                "graph launch: the operators around it launched the graph, not what was captured into it"
                    .to_owned(),
            );
        }
        if let Some(early_ns) = self
            .launch
            .zip(self.first)
            .and_then(|(launch, first)| inversion_ns(launch, first))
        {
            reasons.push(format!(
                "the clocks contradict: the device row starts {early_ns} ns before its launch call"
            ));
        }
        Ok((!reasons.is_empty()).then(|| reasons.join("; ")))
    }

    fn why_unlaunched(&self) -> String {
        match self.seed.correlation_id {
            None => "no correlation".to_owned(),
            Some(number) if number <= 0 => format!("correlation {number}"),
            Some(_) if !self.has("runtime") && !self.has("driver") => {
                "no launch calls were recorded".to_owned()
            }
            Some(_) => "launched before the capture began".to_owned(),
        }
    }
}
