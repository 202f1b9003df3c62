//! One execution: the processes, what has happened to them, and what may happen next. The search
//! is depth first, by running each execution from the beginning.

use std::{
    collections::HashSet,
    hash::{DefaultHasher, Hash, Hasher},
    time::{Duration, Instant},
};

use crate::{
    Bounds, Scenario,
    network::{Network, Request, Response, Sent},
    process::Process,
};

/// The time within which a response is prompt.
const PROMPT: Duration = Duration::from_millis(500);

/// A decision.
#[derive(Clone, Debug)]
pub(crate) enum Action {
    /// The next call arrives at its process.
    Start,
    /// The store or another service treats a request, well or badly.
    Treat(usize, &'static str, bool),
    /// A process stops for good, with everything it does.
    Crash(usize),
    Suspend(usize),
    Resume(usize),
    Pass(Duration),
    End,
}

impl Action {
    fn is_fault(&self) -> bool {
        let is_bad = matches!(self, Self::Treat(_, _, true));
        is_bad || matches!(self, Self::Crash(_) | Self::Suspend(_))
    }
}

/// The place of a process.
#[derive(Default)]
struct Slot {
    /// `None` before its first call, and after a crash.
    process: Option<Process>,
    /// A digest of the responses that the process has received, and of the times at which it has
    /// received them: as a process is deterministic, they determine its state.
    history: DefaultHasher,
}

impl Slot {
    fn is_busy(&self) -> bool {
        self.process.as_ref().is_some_and(Process::is_busy)
    }
}

/// An execution of a scenario.
pub(crate) struct Execution<'s> {
    scenario: &'s dyn Scenario,
    bounds: Bounds,
    slots: Vec<Slot>,
    faults: usize,
    passes: usize,
    started: usize,
}

impl<'s> Execution<'s> {
    pub(crate) fn new(scenario: &'s dyn Scenario, bounds: Bounds) -> Self {
        let setup = scenario.setup();
        setup.network.with(|network| *network = Network::default());
        scenario.reset();
        Self {
            scenario,
            bounds,
            // One more for the calls after the end.
            slots: (0..=setup.leads.len()).map(|_| Slot::default()).collect(),
            faults: 0,
            passes: 0,
            started: 0,
        }
    }

    fn with<T>(&self, change: impl FnOnce(&mut Network) -> T) -> T {
        self.scenario.setup().network.with(change)
    }

    /// Returns an error if a rule does not hold.
    fn checked(&self) -> Result<(), String> {
        self.with(|network| network.violation.clone().map_or(Ok(()), Err))
    }

    fn is_suspended(&self, process: usize) -> bool {
        self.with(|network| network.suspended.contains(&process))
    }

    /// Returns the possible decisions, in a fixed order.
    pub(crate) fn actions(&self) -> Vec<Action> {
        let (mut actions, setup) = (Vec::new(), self.scenario.setup());
        let is_busy = self.slots.iter().any(Slot::is_busy);
        let next = setup.calls.get(self.started);
        self.with(|network| {
            for (index, sent) in network.sent.iter().enumerate() {
                actions.extend(self.treatments(index, sent));
            }
            if next.is_some_and(|process| !network.suspended.contains(process)) {
                actions.push(Action::Start);
            }
            if next.is_none() && !(is_busy && network.sent.iter().any(Sent::is_awaited)) {
                actions.push(Action::End);
            }
        });
        if (is_busy || next.is_some()) && self.passes < self.bounds.passes {
            let steps = self.bounds.steps.iter();
            actions.extend(steps.map(|ms| Action::Pass(Duration::from_millis(*ms))));
        }
        for (number, slot) in self.slots.iter().enumerate() {
            if self.is_suspended(number) {
                actions.push(Action::Resume(number));
            } else if slot.is_busy() {
                actions.push(Action::Crash(number));
                // A tool, or an HTTP client, cannot know that its time limit has passed meanwhile.
                let is_served = |it: &Network| it.served().any(|(process, _)| process == number);
                if self.bounds.suspends && !self.with(|network| is_served(network)) {
                    actions.push(Action::Suspend(number));
                }
            }
        }
        actions.retain(|action| !action.is_fault() || self.faults < self.bounds.faults);
        actions
    }

    /// Returns the ways in which a request may be treated: the first is the good one. The sender of
    /// a late one has stopped waiting; that of a repeated one sends it again, as its response is
    /// lost.
    fn treatments(&self, index: usize, sent: &Sent) -> impl Iterator<Item = Action> + use<> {
        let is_late = !sent.is_awaited();
        let treatments: &'static [_] = match &sent.request {
            _ if is_late => &["late"],
            Request::Service(text) => self.scenario.treatments(text),
            Request::Get(_) => &["answered", "refused"],
            Request::Write(..) => &["answered", "refused", "answer lost", "repeated"],
        };
        let treatments = treatments.iter().enumerate();
        treatments.map(move |(number, name)| Action::Treat(index, name, !is_late && number > 0))
    }

    /// Carries out a decision.
    pub(crate) fn apply(&mut self, action: &Action) -> Result<(), String> {
        self.faults += usize::from(action.is_fault());
        match action {
            Action::Start => {
                self.started += 1;
                self.start(self.started - 1);
            }
            Action::Treat(index, treatment, is_bad) => self.treat(*index, treatment, *is_bad),
            Action::Crash(number) => self.crash(*number),
            Action::Suspend(number) => self.with(|network| {
                network.suspended.insert(*number);
                network.disturbed.insert(*number);
            }),
            Action::Resume(number) => self.resume(*number),
            Action::Pass(time) => {
                self.passes += 1;
                self.pass(*time);
            }
            Action::End => self.finish()?,
        }
        self.with(|network| {
            let is_write = |it: &Sent| matches!(it.request, Request::Write(..));
            network.sent.retain(|it| it.is_awaited() || is_write(it));
            network.sent.sort_by_key(|it| it.from);
        });
        self.checked()
    }

    /// Starts a call in its process, which is started if it is not running.
    pub(crate) fn start(&mut self, call: usize) {
        let (setup, now) = (self.scenario.setup(), self.with(|network| network.now));
        let connection = setup.connection(call);
        let lead = setup.lead(connection.process);
        let slot = &mut self.slots[connection.process];
        call.hash(&mut slot.history);
        let new = || Process::new(connection, lead, now);
        let running = slot.process.get_or_insert_with(new);
        let (work, network) = (self.scenario.call(call), setup.network.clone());
        let work = async move {
            work.await;
            network.with(|network| network.ended.insert(call));
        };
        running.enter(async { drop(tokio::spawn(work)) });
    }

    fn treat(&mut self, index: usize, treatment: &str, is_bad: bool) {
        let mut sent = self.with(|network| network.sent.remove(index));
        let (process, _) = sent.from;
        if is_bad && treatment != "repeated" {
            self.with(|network| network.disturbed.insert(process));
        }
        let response = match &mut sent.request {
            Request::Service(text) => match self.scenario.serve(process, text, treatment) {
                Ok(answer) => Response::Served(answer),
                Err(acted) => {
                    *text = acted;
                    return self.with(|network| network.sent.push(sent));
                }
            },
            _ if treatment == "refused" => Response::Failed,
            _ => self.with(|network| network.carry_out(&sent)),
        };
        if let Request::Write(id, Some(record), over, _) = &sent.request
            && matches!(response, Response::Written)
        {
            self.scenario.written(id, record, *over);
        }
        // A suspended process reads it later.
        if let (Request::Get(id), Response::Current(Some(record))) = (&sent.request, &response)
            && !self.is_suspended(process)
        {
            self.scenario.read(process, id, record);
        }
        match treatment {
            "late" => {}
            "repeated" => self.with(|network| network.sent.push(sent)),
            "answer lost" => self.answer(sent, treatment, Response::Failed),
            _ => self.answer(sent, treatment, response),
        }
    }

    fn answer(&mut self, sent: Sent, treatment: &str, response: Response) {
        let (process, number) = sent.from;
        // Random versions are no part of the digest: a record is known by the request that wrote it.
        let (_, id) = sent.parts();
        let writer = self.with(|network| network.records.get(id).map(|(_, writer)| *writer));
        let is_suspended = self.is_suspended(process);
        let slot = &mut self.slots[process];
        (number, treatment, writer).hash(&mut slot.history);
        if let Response::Served(text) = &response {
            text.hash(&mut slot.history);
        }
        let _ = sent.reply.send(response);
        if let Some(running) = slot.process.as_ref().filter(|_| !is_suspended) {
            running.enter(async {});
        }
    }

    fn crash(&mut self, number: usize) {
        self.slots[number].process = None;
        "crash".hash(&mut self.slots[number].history);
        let calls = self.scenario.setup().calls.iter().take(self.started);
        let of_process = calls.enumerate().filter(|(_, process)| **process == number);
        self.with(|network| {
            network.disturbed.insert(number);
            network.crashed.insert(number);
            network.ended.extend(of_process.map(|(call, _)| call));
        });
    }

    fn resume(&mut self, number: usize) {
        let now = self.with(|network| {
            network.suspended.remove(&number);
            network.now
        });
        let slot = &mut self.slots[number];
        ("resumed", now).hash(&mut slot.history);
        if let Some(process) = &slot.process {
            process.resume_at(now);
        }
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, time: Duration) {
        let network = &self.scenario.setup().network;
        let now = network.with(|network| {
            network.now += time;
            network.now
        });
        for (number, slot) in self.slots.iter_mut().enumerate() {
            if time > PROMPT && slot.is_busy() {
                // Requests get no response meanwhile, those that are on their way and later ones.
                network.with(|network| network.disturbed.insert(number));
            }
            if network.with(|network| network.suspended.contains(&number)) {
                continue;
            }
            time.hash(&mut slot.history);
            if let Some(process) = &slot.process {
                process.pass_until(now);
            }
        }
    }

    /// Answers all requests until nothing happens any more. An error if that takes too long.
    pub(crate) fn drain(&mut self) -> Result<(), String> {
        const ROUNDS: usize = 300;
        for number in self.with(|network| network.suspended.clone()) {
            self.resume(number);
        }
        for _ in 0..ROUNDS {
            let action = self.with(|network| {
                let index = network.sent.iter().position(Sent::is_awaited)?;
                self.treatments(index, &network.sent[index]).next()
            });
            match action {
                Some(action) => self.apply(&action)?,
                None if self.slots.iter().any(Slot::is_busy) => self.pass(PROMPT),
                None => return self.checked(),
            }
        }
        Err("a call waits forever".to_owned())
    }

    fn finish(&mut self) -> Result<(), String> {
        self.drain()?;
        let ended = self.with(|network| network.ended.clone());
        let mut calls = 0..self.scenario.setup().calls.len();
        match calls.find(|call| !ended.contains(call)) {
            Some(call) => Err(format!("call {call} got no response")),
            None => self.scenario.end(self),
        }
    }

    /// Returns a digest of everything on which the rest of the execution depends.
    pub(crate) fn digest(&self) -> u64 {
        let mut state = DefaultHasher::new();
        (self.faults, self.passes).hash(&mut state);
        for slot in &self.slots {
            (slot.process.is_some(), slot.history.finish()).hash(&mut state);
        }
        self.with(|network| network.hash(&mut state));
        self.scenario.digest(&mut state);
        state.finish()
    }

    /// Returns a line that describes a decision, before it is carried out.
    pub(crate) fn describe(&self, action: &Action) -> String {
        let text = match action {
            Action::Treat(index, treatment, _) => self.with(|network| {
                let sent = &network.sent[*index];
                let ((process, _), (operation, text)) = (sent.from, sent.parts());
                format!("process {process}: {operation} {text:.60}: {treatment}")
            }),
            other => format!("{other:?}"),
        };
        let now = self.with(|network| network.now);
        format!("{:>7.3} s  {text}", now.as_secs_f64())
    }
}

/// The number of a decision, and the number of alternatives.
type Choice = (usize, usize);

/// Searches for a violation; if the environment says so, with one more fault, which takes minutes and
/// a release build.
#[track_caller]
pub(crate) fn hold(name: &str, scenario: &dyn Scenario, mut bounds: Bounds) {
    let is_full = std::env::var("INTERLEAVINGS").is_ok_and(|it| it == "full");
    bounds.faults += usize::from(is_full);
    assert!(!violates(name, scenario, bounds), "{name}: see above");
}

/// Does the same for a tool that may run again and for one that runs at most once.
#[track_caller]
pub(crate) fn hold_both<S: Scenario>(name: &str, scenario: impl Fn(bool) -> S, bounds: Bounds) {
    for policy in [false, true] {
        let name = format!("{name}, at most once: {policy}");
        hold(&name, &scenario(policy), bounds);
    }
}

/// Searches all executions of a scenario within the bounds, those with few faults first, until a rule
/// does not hold. Prints this execution, which another search finds again, and returns true.
pub(crate) fn violates(name: &str, scenario: &dyn Scenario, bounds: Bounds) -> bool {
    let (started, mut executions, mut violation) = (Instant::now(), 0, false);
    for faults in 0..=bounds.faults {
        let bounds = Bounds { faults, ..bounds };
        let (mut path, mut visited) = (Vec::new(), HashSet::new());
        while !violation {
            executions += 1;
            violation = run(scenario, bounds, &mut path, &mut visited, false).is_err();
            if violation {
                let found = run(scenario, bounds, &mut path, &mut visited, true);
                println!("  {}", found.unwrap_err());
            } else if !advance(&mut path) {
                break;
            }
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!("{name}: {executions} executions, {seconds:.1} s");
    violation
}

/// Runs one execution, along a path and then with the first of all decisions, until it ends or
/// reaches a state that has been visited. Completes the path. Prints the decisions if `prints` says so.
fn run(
    scenario: &dyn Scenario,
    bounds: Bounds,
    path: &mut Vec<Choice>,
    visited: &mut HashSet<u64>,
    prints: bool,
) -> Result<(), String> {
    let mut execution = Execution::new(scenario, bounds);
    for depth in 0.. {
        let actions = execution.actions();
        if depth == path.len() {
            if !visited.insert(execution.digest()) {
                break;
            }
            path.push((0, actions.len()));
        }
        let (chosen, count) = path[depth];
        assert_eq!(count, actions.len(), "an execution is not deterministic");
        let action = actions.get(chosen).ok_or("nothing can happen")?;
        if prints {
            println!("  {}", execution.describe(action));
        }
        execution.apply(action)?;
        if matches!(action, Action::End) {
            break;
        }
    }
    Ok(())
}

/// Turns to the next path. Returns false if there is none.
fn advance(path: &mut Vec<Choice>) -> bool {
    while let Some((chosen, count)) = path.pop() {
        if chosen + 1 < count {
            path.push((chosen + 1, count));
            return true;
        }
    }
    false
}
