//! One execution: the processes, and what has happened to them.

use std::time::Duration;

use super::{
    Scenario, Served,
    action::{Action, Bounds, Delivery, Fault},
    history::content_of,
    network::{Network, Request, Response, Sent, with_network},
    process::{Freeze, Process},
    slot::Slot,
};

/// The time within which a response is prompt.
pub(super) const PROMPT: Duration = Duration::from_millis(500);

/// An execution of a scenario.
pub(crate) struct Execution<'s> {
    pub(super) scenario: &'s dyn Scenario,
    pub(super) bounds: Bounds,
    pub(super) slots: Vec<Slot>,
    pub(super) now: Duration,
    pub(super) faults: usize,
    pub(super) passes: usize,
    pub(super) started: usize,
    /// The calls whose process has crashed.
    pub(super) crashed: Vec<bool>,
    /// A line for each action, if they are wanted.
    pub(super) lines: Option<Vec<String>>,
}

impl<'s> Execution<'s> {
    pub(super) fn new(scenario: &'s dyn Scenario, bounds: Bounds, keeps_lines: bool) -> Self {
        with_network(|network| *network = Network::default());
        scenario.reset();
        Self {
            scenario,
            bounds,
            slots: scenario
                .setup()
                .leads
                .iter()
                .map(|_| Slot::default())
                .collect(),
            now: Duration::ZERO,
            faults: 0,
            passes: 0,
            started: 0,
            crashed: vec![false; scenario.setup().calls.len()],
            lines: keeps_lines.then(Vec::new),
        }
    }

    /// True if a process has something left to do.
    pub(super) fn is_busy(&self) -> bool {
        self.slots.iter().any(Slot::is_busy)
    }

    /// Carries out a decision. Returns the rule that does not hold, if any.
    pub(super) fn apply(&mut self, action: &Action) -> Result<(), String> {
        self.note(action);
        self.faults += usize::from(action.is_fault());
        match action {
            Action::Start => {
                let number = self.started;
                self.started += 1;
                self.start(number, self.scenario.setup().calls[number]);
            }
            Action::Deliver(index, delivery) => self.deliver(*index, *delivery),
            Action::Serve(index, treatment, is_fault) => self.serve(*index, treatment, *is_fault),
            Action::Crash(number) => self.crash(*number),
            Action::Freeze(number) => {
                self.slots[*number].is_frozen = true;
                self.scenario.faulted(*number, Fault::Freeze);
            }
            Action::Thaw(number) => self.thaw(*number),
            Action::Pass(time) => {
                self.passes += 1;
                self.pass(*time);
            }
            Action::Remove(id) => with_network(|network| {
                network.records.remove(id);
            }),
            Action::End => self.finish()?,
        }
        with_network(|network| {
            let is_read = |sent: &Sent| matches!(sent.request, Request::Get(_));
            network.sent.retain(|it| it.is_awaited() || !is_read(it));
            network.sent.sort_by_key(|it| it.from);
        });
        self.scenario.violation().map_or(Ok(()), Err)
    }

    /// Starts a call in a process, which is started if it is not running.
    pub(crate) fn start(&mut self, call: usize, process: usize) {
        let lead = self.scenario.setup().leads.get(process).copied();
        while self.slots.len() <= process {
            self.slots.push(Slot::default());
        }
        let slot = &mut self.slots[process];
        slot.history.add(("start", call));
        let now = self.now;
        let running = slot
            .process
            .get_or_insert_with(|| Process::new(process, lead.unwrap_or_default(), now));
        running.start(self.scenario.call(call));
    }

    pub(super) fn deliver(&mut self, index: usize, delivery: Delivery) {
        let conditions = self.scenario.setup().conditions;
        let (sent, response) = with_network(|network| {
            let sent = network.sent.remove(index);
            if delivery == Delivery::Refused {
                return (sent, Response::Failed);
            }
            let response = network.carry_out(conditions, sent.from, &sent.request);
            (sent, response)
        });
        if let (
            Request::Put {
                id, record, over, ..
            },
            Response::Put(outcome),
        ) = (&sent.request, &response)
        {
            self.scenario.written(id, record, *over, outcome);
        }
        if delivery.is_harmful() {
            self.scenario.faulted(sent.from.0, Fault::Request);
        }
        match delivery {
            Delivery::Answered => self.answer(sent, response),
            Delivery::Late => {}
            Delivery::Refused | Delivery::AnswerLost => self.answer(sent, Response::Failed),
            Delivery::Repeated => with_network(|network| network.sent.push(sent)),
            Delivery::Copied => {
                let (from, request, reply) = (sent.from, sent.request.clone(), None);
                let copy = Sent {
                    from,
                    request,
                    reply,
                };
                with_network(|network| network.sent.push(copy));
                self.answer(sent, response);
            }
        }
    }

    fn answer(&mut self, sent: Sent, response: Response) {
        let slot = &mut self.slots[sent.from.0];
        slot.history.add((sent.from.1, content_of(&response)));
        if let Some(reply) = sent.reply {
            let _ = reply.send(response);
        }
        slot.proceed();
    }

    pub(super) fn serve(&mut self, index: usize, treatment: &str, is_fault: bool) {
        let mut sent = with_network(|network| network.sent.remove(index));
        let Request::Service(text) = &mut sent.request else {
            return;
        };
        if is_fault {
            self.scenario.faulted(sent.from.0, Fault::Request);
        }
        match self.scenario.serve(sent.from, text, treatment) {
            Served::Answer(answer) => self.answer(sent, Response::Served(answer)),
            Served::Acted(now) => {
                *text = now;
                with_network(|network| network.sent.push(sent));
            }
        }
    }

    fn crash(&mut self, number: usize) {
        if let Some(process) = self.slots[number].process.take() {
            process.crash();
        }
        self.slots[number].history.add("crash");
        self.scenario.faulted(number, Fault::Crash);
        for (call, process) in self
            .scenario
            .setup()
            .calls
            .iter()
            .enumerate()
            .take(self.started)
        {
            self.crashed[call] |= *process == number && !self.scenario.has_ended(call);
        }
    }

    pub(super) fn thaw(&mut self, number: usize) {
        let slot = &mut self.slots[number];
        slot.is_frozen = false;
        slot.history.add(("thaw", self.now));
        self.scenario.thaws(number);
        if let Some(process) = &mut slot.process {
            process.continue_at(self.now, self.bounds.freezes.unwrap_or(Freeze::Stopped));
        }
    }

    /// Lets time pass.
    pub(crate) fn pass(&mut self, time: Duration) {
        // Requests get no response meanwhile, neither those that are on their way nor later ones.
        for number in 0..self.slots.len() {
            if time > PROMPT && self.slots[number].is_busy() {
                self.scenario.faulted(number, Fault::Slowness);
            }
        }
        self.now += time;
        for slot in self.slots.iter_mut().filter(|slot| !slot.is_frozen) {
            slot.history.add(time);
            if let Some(process) = &slot.process {
                process.pass_until(self.now);
            }
        }
        self.scenario.passed(time);
    }

    fn note(&mut self, action: &Action) {
        let Some(lines) = &mut self.lines else {
            return;
        };
        let sent = |index: &usize| {
            with_network(|network| {
                let sent = &network.sent[*index];
                format!("process {}: {}", sent.from.0, sent.request)
            })
        };
        let text = match action {
            Action::Deliver(index, delivery) => format!("{}: {delivery:?}", sent(index)),
            Action::Serve(index, treatment, _) => format!("{}: {treatment}", sent(index)),
            Action::Start => format!(
                "Start call {} in process {}",
                self.started,
                self.scenario.setup().calls[self.started]
            ),
            other => format!("{other:?}"),
        };
        lines.push(format!("{:>7.3} s  {text}", self.now.as_secs_f64()));
    }
}

impl Drop for Execution<'_> {
    fn drop(&mut self) {
        for slot in &mut self.slots {
            if let Some(process) = slot.process.take() {
                process.crash();
            }
        }
    }
}
