//! The decisions of a search.

use std::{fmt, time::Duration};

use super::{
    network::{Request, Sent},
    process::Freeze,
};

/// The limits of a search, for each execution.
#[derive(Clone, Copy)]
pub(crate) struct Bounds {
    /// The maximum number of faults.
    pub(crate) faults: usize,
    /// The maximum number of times that time passes.
    pub(crate) passes: usize,
    /// The milliseconds that may pass at a time. Requests that are not answered meanwhile remain
    /// unanswered during all of that time.
    pub(crate) steps: &'static [u64],
    /// True if a copy of a request may arrive after the request was answered.
    pub(crate) copies: bool,
    /// The clocks of a process after it has stopped running for some time. `None` if none does.
    pub(crate) freezes: Option<Freeze>,
}

impl Bounds {
    /// Bounds without copies of requests, and without processes that stop for some time.
    pub(crate) const fn new(faults: usize, passes: usize, steps: &'static [u64]) -> Self {
        Self {
            faults,
            passes,
            steps,
            copies: false,
            freezes: None,
        }
    }
}

/// True if the searches use their large bounds, which take minutes and a release build.
pub(crate) fn is_full() -> bool {
    std::env::var("INTERLEAVINGS").is_ok_and(|it| it == "full")
}

/// Something that went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    Crash,
    Freeze,
    /// A request failed, or was treated badly by its service.
    Request,
    /// A request got no response for some time.
    Slowness,
}

/// The fate of a request to the store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Delivery {
    /// It is carried out, and the response arrives.
    Answered,
    /// It is carried out although its sender has stopped waiting.
    Late,
    /// It is not carried out, and its sender gets an error.
    Refused,
    /// It is carried out, and its sender gets an error.
    AnswerLost,
    /// It is carried out, and the response is lost: the client will send it again.
    Repeated,
    /// It is carried out, the response arrives, and a copy may arrive later.
    Copied,
}

impl Delivery {
    pub(super) fn is_fault(self) -> bool {
        !matches!(self, Self::Answered | Self::Late)
    }

    /// True if the sender, or another process, may fail because of it.
    pub(super) fn is_harmful(self) -> bool {
        self.is_fault() && self != Self::Repeated
    }

    /// The ways in which a request to the store may be delivered.
    pub(super) fn of(sent: &Sent) -> &'static [Self] {
        match (&sent.request, sent.is_awaited()) {
            (_, false) => &[Self::Late],
            (Request::Get(_), true) => &[Self::Answered, Self::Refused],
            _ => &[
                Self::Answered,
                Self::Refused,
                Self::AnswerLost,
                Self::Repeated,
                Self::Copied,
            ],
        }
    }
}

/// A decision.
#[derive(Clone, Debug)]
pub(super) enum Action {
    /// The next call arrives at its process.
    Start,
    /// A request to the store is delivered.
    Deliver(usize, Delivery),
    /// Another service treats a request.
    Serve(usize, &'static str, bool),
    /// A process stops for good, with everything it does.
    Crash(usize),
    /// A process stops running, until it continues.
    Freeze(usize),
    Thaw(usize),
    Pass(Duration),
    /// The store deletes a record that has expired.
    Remove(String),
    End,
}

impl Action {
    pub(super) fn is_fault(&self) -> bool {
        match self {
            Self::Deliver(_, delivery) => delivery.is_fault(),
            Self::Serve(_, _, is_fault) => *is_fault,
            Self::Crash(_) | Self::Freeze(_) => true,
            _ => false,
        }
    }

    pub(super) fn makes_copy(&self) -> bool {
        matches!(self, Self::Deliver(_, Delivery::Copied))
    }
}

impl fmt::Display for Request {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short = |version: &u64| version % 10_000;
        match self {
            Self::Get(id) => write!(f, "get {}", short_id(id)),
            Self::Put {
                id, record, over, ..
            } => {
                let (id, version) = (short_id(id), short(&record.version));
                let names: Vec<_> = record.fields.iter().map(|(name, _)| &**name).collect();
                write!(f, "put {id} version {version} {names:?}")?;
                match over {
                    Some(over) => write!(f, " over {}", short(over)),
                    None => write!(f, " if free"),
                }
            }
            Self::Delete { id, version } => {
                write!(f, "delete {} version {}", short_id(id), short(version))
            }
            Self::Service(text) => f.write_str(text),
        }
    }
}

fn short_id(id: &str) -> &str {
    id.split_once('#').map_or("call", |(kind, _)| kind)
}
