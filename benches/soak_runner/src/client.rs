//! The clients: each knows what it must get.

mod calls;
mod faults;
mod grants;
mod large;
mod lists;
mod rejected;
mod remembered;
mod request;

pub(crate) use calls::LOAD_KEY;
pub(crate) use faults::FAULT_KEY;

use std::{
    collections::BTreeMap,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use fastrand::Rng;

use crate::{
    answer::Answer,
    event::Credential,
    issuer::{Issuer, LIFETIME},
    local::Connection,
    protocol::Protocol,
    recorder::Recorder,
    server::Server,
};

/// The API keys, by the ids of their secrets.
pub(crate) const KEYS: [(&str, &str); 2] = [
    ("KEY_ONE", "marked-one-0123456789abcdef0123456789"),
    ("KEY_TWO", "marked-two-0123456789abcdef0123456789"),
];
/// Begins every secret, and nothing else that a client sends.
pub(crate) const MARK: &str = "marked-";

/// The state that all clients share.
pub(crate) struct Shared {
    pub(crate) server: Server,
    pub(crate) issuer: Issuer,
    pub(crate) recorder: Recorder,
    /// The time between two requests of one client.
    pub(crate) interval: Duration,
    pub(crate) is_over: AtomicBool,
    /// Until then, the clients fill what the function keeps.
    pub(crate) filling_until: Instant,
    /// The first answers to requests whose answers never change.
    pub(crate) references: Mutex<BTreeMap<String, Answer>>,
}

/// A client's token, and the time from which it gets a new one.
struct Token {
    token: String,
    renewed_at: Instant,
}

/// One of the clients.
pub(crate) struct Client {
    number: u32,
    shared: Arc<Shared>,
    random: Rng,
    /// The number of the last call.
    last: u64,
    next: Instant,
    token: Option<Token>,
    /// To a local server.
    connection: Option<Connection>,
    /// Calls whose claims the failing store may still hold.
    unsettled: Vec<remembered::Unsettled>,
}

/// The next action of a client, with its share of all choices.
const CHOICES: [(u32, Scenario); 14] = [
    (330, Scenario::Call),
    (75, Scenario::Remembered),
    (25, Scenario::RememberedFailure),
    (20, Scenario::Unsettled),
    (90, Scenario::List),
    (60, Scenario::Document),
    (110, Scenario::Invalid),
    (70, Scenario::Unauthorized),
    (15, Scenario::Grant),
    (20, Scenario::Fault),
    (3, Scenario::Hang),
    (60, Scenario::Secret),
    (2, Scenario::LargeInput),
    (2, Scenario::LargeOutput),
];

/// The factor of [`Scenario::fills`] at the beginning.
const FILLING: u32 = 6;

#[derive(Clone, Copy)]
enum Scenario {
    Call,
    Remembered,
    RememberedFailure,
    Unsettled,
    List,
    Document,
    Invalid,
    Unauthorized,
    Grant,
    Fault,
    Hang,
    Secret,
    LargeInput,
    LargeOutput,
}

impl Scenario {
    /// True if a part of the warm-up would otherwise be too short for it: the function keeps the
    /// secrets of 1,000 calls, and its heap is as large as the largest request has made it.
    fn fills(self) -> bool {
        matches!(self, Self::Secret | Self::LargeInput | Self::LargeOutput)
    }

    /// The choice with this random number.
    fn chosen(random: &mut Rng, is_filling: bool) -> Self {
        let weights = CHOICES.map(|(weight, scenario)| {
            let factor = if is_filling && scenario.fills() {
                FILLING
            } else {
                1
            };
            weight * factor
        });
        let mut choice = random.u32(..weights.iter().sum::<u32>());
        for (weight, (_, scenario)) in weights.into_iter().zip(CHOICES) {
            if choice < weight {
                return scenario;
            }
            choice -= weight;
        }
        unreachable!("the number is less than the sum")
    }
}

impl Client {
    pub(crate) fn new(number: u32, shared: &Arc<Shared>, begin: Instant) -> Self {
        Self {
            number,
            shared: Arc::clone(shared),
            random: Rng::with_seed(u64::from(number)),
            last: 0,
            next: begin,
            token: None,
            connection: None,
            unsettled: Vec::new(),
        }
    }

    /// Sends requests until the run is over.
    pub(crate) async fn run(mut self) {
        while !self.is_over() {
            let is_filling = self.is_filling();
            let scenario = Scenario::chosen(&mut self.random, is_filling);
            // A scenario ends early if one of its answers is wrong or an error of the store.
            let _ = self.play(scenario).await;
        }
    }

    /// Blocks a thread of the function every `period`, until the run is over.
    pub(crate) async fn block(mut self, period: Duration) {
        while !self.is_over() {
            let _ = self.blocked_thread().await;
            self.next += period;
        }
    }

    fn is_over(&self) -> bool {
        self.shared.is_over.load(Relaxed)
    }

    fn is_filling(&self) -> bool {
        Instant::now() < self.shared.filling_until
    }

    async fn play(&mut self, scenario: Scenario) -> Option<()> {
        match scenario {
            Scenario::Call => self.call().await,
            Scenario::Remembered => self.remembered().await,
            Scenario::RememberedFailure => self.remembered_failure().await,
            Scenario::Unsettled => self.settle_one().await,
            Scenario::List => self.list().await,
            Scenario::Document => self.document().await,
            Scenario::Invalid => self.invalid().await,
            Scenario::Unauthorized => self.unauthorized().await,
            Scenario::Grant => self.grant().await,
            Scenario::Fault => self.fault().await,
            Scenario::Hang => self.hang().await,
            Scenario::Secret => self.secret().await,
            Scenario::LargeInput => self.large_input().await,
            Scenario::LargeOutput => self.large_output().await,
        }
    }

    /// A new id for a call.
    fn new_id(&mut self) -> String {
        self.last += 1;
        format!("c{}-{}", self.number, self.last)
    }

    fn any_protocol(&mut self) -> Protocol {
        if self.shared.server.is_local() {
            // A direct call is an event.
            return self.any_protocol_over_http();
        }
        Protocol::ALL[self.random.usize(..Protocol::ALL.len())]
    }

    fn any_protocol_over_http(&mut self) -> Protocol {
        // The last one is a direct call.
        Protocol::ALL[self.random.usize(..Protocol::ALL.len() - 1)]
    }

    /// A user of this client, if it names one itself.
    fn user(&self) -> String {
        format!("user-{}", self.number)
    }

    /// Two of four clients have API keys, the others access tokens.
    fn key(&self) -> Option<&'static str> {
        let key = KEYS.get(usize::try_from(self.number % 4).ok()?)?;
        Some(key.1)
    }

    fn credential(&mut self) -> Credential {
        if let Some(key) = self.key() {
            return Credential::ApiKey(key);
        }
        let now = Instant::now();
        let token = self.token.take().filter(|token| now < token.renewed_at);
        let token = token.unwrap_or_else(|| Token {
            token: self.shared.issuer.token(&self.user()),
            renewed_at: now + LIFETIME / 4,
        });
        let credential = Credential::Token(token.token.clone());
        self.token = Some(token);
        credential
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The share of these choices in a thousand.
    fn share(is_filling: bool, is_it: impl Fn(Scenario) -> bool) -> usize {
        let mut random = Rng::with_seed(7);
        let choices = (0..100_000).map(|_| Scenario::chosen(&mut random, is_filling));
        choices.filter(|scenario| is_it(*scenario)).count() / 100
    }

    #[test]
    fn choices_have_their_shares() {
        let is_call = |scenario| matches!(scenario, Scenario::Call);
        // 330 of 882 and of 1202, 4 of 882, and 384 of 1202.
        assert!((365..383).contains(&share(false, is_call)));
        assert!((265..283).contains(&share(true, is_call)));
        let is_large = |scenario| matches!(scenario, Scenario::LargeInput | Scenario::LargeOutput);
        assert!((3..7).contains(&share(false, is_large)));
        assert!((310..330).contains(&share(true, Scenario::fills)));
        assert!((15..25).contains(&share(true, is_large)));
    }
}
