//! The tasks of an execution, checked against the rules in `docs/calls.md`.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{Hash, Hasher},
    time::{Duration, SystemTime},
};

use lambda_tools::store::{Field, Record};
use serde_json::Value;

use crate::{network::Network, number_of};

/// The time within which a task has to start.
const LONGEST_QUEUE: Duration = Duration::from_mins(5);

/// A run of the tool.
#[derive(Default, Hash)]
pub(super) struct Run {
    /// The number of the event that started it.
    event: usize,
    has_acted: bool,
    /// The end that the tool caused: `value`, `failure`, `retry` or `panic`.
    pub(super) result: Option<String>,
    /// True if its process has read that the task is cancelled.
    is_told: bool,
}

/// An event with which the function invokes itself.
struct Event {
    text: String,
    /// The id of its task.
    task: String,
    /// The number of the task's call id.
    call: usize,
    /// By the clock of its sender.
    sent_at: SystemTime,
}

/// A task that a client knows.
#[derive(Default)]
pub(super) struct Told {
    id: String,
    /// True if a client has asked for its cancellation.
    pub(super) is_cancelled: bool,
    /// The status that it ended with, and the result or the error, as a client was told.
    end: Option<(String, String)>,
}

#[derive(Default)]
pub(super) struct Ledger {
    pub(super) is_at_most_once: bool,
    pub(super) runs: Vec<Run>,
    events: Vec<Event>,
    told: Vec<Told>,
    /// The ids of the tasks whose end is recorded.
    ended: BTreeSet<String>,
    /// The steps that were too late to start a task.
    late: BTreeSet<usize>,
    /// The newest task of each record.
    newest: BTreeMap<String, String>,
}

/// A broken rule.
type Broken = Result<(), String>;

fn rule(holds: bool, text: impl Into<String>) -> Broken {
    if holds { Ok(()) } else { Err(text.into()) }
}

/// Returns the call in a record, and the id of its task.
fn task_in(key: &str, record: &Record) -> Option<(Value, String)> {
    let mut fields = record.fields.iter();
    let call = fields.find_map(|(name, value)| match value {
        Field::Text(text) if *name == "call" => serde_json::from_str::<Value>(text).ok(),
        _ => None,
    })?;
    let id = format!("{key}{}", call["task"]["id"].as_str()?);
    Some((call, id))
}

fn is_running(call: &Value) -> bool {
    call["state"]["running"].is_object()
}

impl Ledger {
    /// Records that an event is sent for the task of a call.
    pub(super) fn send(&mut self, call: usize, text: String, sent_at: SystemTime) {
        let event: Value = serde_json::from_str(&text).expect("events are JSON");
        let task = event["lambda_tools"]["task"].as_str().unwrap().to_owned();
        self.events.push(Event {
            text,
            task,
            call,
            sent_at,
        });
    }

    /// Records that an event arrives in a step, at a time by the clock of its process. Returns the
    /// event, if it was sent.
    pub(super) fn arrive(&mut self, step: usize, event: usize, now: SystemTime) -> Option<String> {
        let event = self.events.get(event)?;
        if now > event.sent_at + LONGEST_QUEUE {
            self.late.insert(step);
        }
        Some(event.text.clone())
    }

    /// Records that the record of a task was written.
    pub(super) fn write(&mut self, key: &str, record: &Record) -> Broken {
        let Some((call, id)) = task_in(key, record) else {
            return Ok(());
        };
        self.newest.insert(key.to_owned(), id.clone());
        let is_first = is_running(&call) || self.ended.insert(id);
        rule(is_first, "a task's end is recorded twice")
    }

    /// Records that the process of a task's run has read the task's record.
    pub(super) fn read(&mut self, key: &str, record: &Record) {
        let Some((call, id)) = task_in(key, record) else {
            return;
        };
        let is_told = is_running(&call) && call["task"]["is_cancelled"] == true;
        for run in &mut self.runs {
            run.is_told |= is_told && self.events[run.event].task == id;
        }
    }

    /// Records that the tool starts in a step, for an event, and returns the number of the run.
    pub(super) fn begin(
        &mut self,
        step: usize,
        event: usize,
        network: &Network,
    ) -> Result<usize, String> {
        let Event { task, call, .. } = &self.events[event];
        rule(!self.late.contains(&step), "a task starts too late")?;
        let mut runs = self.runs.iter();
        let is_same = |run: &Run| self.events[run.event].task == *task;
        rule(!runs.any(is_same), "a task runs twice")?;
        let numbers = network.served().filter_map(|(_, text)| number_of(text));
        let mut running = numbers.filter_map(|number| self.runs.get(number));
        let is_same = |run: &Run| self.events[run.event].call == *call;
        let runs_alone = !running.any(is_same);
        rule(runs_alone, "two runs of one call at the same time")?;
        let has_ended = self.ended.contains(task);
        rule(!has_ended, "a task runs that has ended, or was cancelled")?;
        self.runs.push(Run {
            event,
            ..Run::default()
        });
        Ok(self.runs.len() - 1)
    }

    /// Records that a run learns whether its task is cancelled: then it does nothing more, and fails.
    pub(super) fn stop(&mut self, run: usize, is_cancelled: bool) -> Broken {
        let run = &mut self.runs[run];
        if !is_cancelled {
            return rule(!run.is_told, "a cancelled task goes on");
        }
        run.result = Some("failure".to_owned());
        let task = &self.events[run.event].task;
        let mut told = self.told.iter();
        let is_asked = told.any(|it| it.id == *task && it.is_cancelled);
        rule(is_asked, "a task is cancelled that nobody has cancelled")
    }

    /// Records the effect of a run.
    pub(super) fn act(&mut self, run: usize) -> Broken {
        self.runs[run].has_acted = true;
        let call = self.events[self.runs[run].event].call;
        let of_call = |run: &&Run| run.has_acted && self.events[run.event].call == call;
        let effects = self.runs.iter().filter(of_call).count();
        let is_allowed = !self.is_at_most_once || effects < 2;
        rule(is_allowed, "two effects of a call that may have one")
    }

    /// Returns the task with this number, if a client knows it, and whether it has ended.
    pub(super) fn known(&self, number: usize) -> Option<(String, bool)> {
        let told = self.told.get(number)?;
        Some((told.id.clone(), told.end.is_some()))
    }

    /// Returns what a client knows of a task.
    pub(super) fn told(&mut self, id: &str) -> &mut Told {
        let number = self.told.iter().position(|it| it.id == id);
        &mut self.told[number.expect("a client knows it")]
    }

    /// Records the response to a call. `is_disturbed` says that its process had to fail.
    pub(super) fn answer(&mut self, call: usize, response: &Value, is_disturbed: bool) -> Broken {
        let result = &response["result"];
        if result["resultType"] == "task" {
            let id = result["taskId"].as_str().unwrap_or_default();
            if !self.told.iter().any(|it| it.id == id) {
                self.told.push(Told {
                    id: id.to_owned(),
                    ..Told::default()
                });
            }
            let is_working = result["status"] == "working";
            return rule(is_working, "a task begins as it should not");
        }
        let text = text_of(response);
        let of_call = |event: &Event| event.call == call;
        let is_true = match &*text {
            it if it.contains("The tool server is temporarily unavailable") => is_disturbed,
            it if it.starts_with("failure: This call is still running") => is_disturbed,
            // Only such a tool is not run again after it was cut off.
            it if it.contains("was cut off") => self.is_at_most_once,
            _ => self.is_true(&text, of_call),
        };
        rule(is_true, format!("a response '{text}', out of place"))
    }

    /// Records what a client is told about a task. `had_ended` says that it knew the end when it asked.
    pub(super) fn status(
        &mut self,
        id: &str,
        had_ended: bool,
        response: &Value,
        is_disturbed: bool,
    ) -> Broken {
        let result = &response["result"];
        let Some(status) = result["status"].as_str() else {
            // A client may ask again, or has replaced the task.
            let is_allowed = match response["error"]["code"].as_i64() {
                Some(-32602) => self.is_replaced(id),
                Some(-32603) => is_disturbed,
                _ => false,
            };
            return rule(is_allowed, format!("a task without a status: {response}"));
        };
        if status == "working" {
            return rule(!had_ended, "a task works that has ended");
        }
        let text = match (status, result["error"]["message"].as_str()) {
            ("completed", _) => text_of(result),
            (_, message) => format!("failure: {}", message.unwrap_or_default()),
        };
        let of_task = |event: &Event| event.task == id;
        let is_true = match status {
            "cancelled" => self.told(id).is_cancelled,
            _ => self.is_true(&text, of_task),
        };
        rule(is_true, format!("a task '{status}: {text}', out of place"))?;
        let is_recorded = self.ended.contains(id);
        rule(is_recorded, "an end is told before it is recorded")?;
        let end = (status.to_owned(), text);
        let first = self.told(id).end.get_or_insert_with(|| end.clone());
        let text = format!("a task ends twice: {first:?}, {end:?}");
        rule(*first == end, text)
    }

    /// Checks that a task has ended, or that a repeated call has replaced it.
    pub(super) fn check_ended(&self, number: usize) -> Broken {
        let told = self.told.get(number);
        let is_over = |it: &Told| it.end.is_some() || self.is_replaced(&it.id);
        rule(told.is_none_or(is_over), "a task never ends")
    }

    fn is_replaced(&self, id: &str) -> bool {
        self.newest.get(&id[..64]).is_some_and(|it| it != id)
    }

    /// Returns true if a text describes the end of a run that is meant, or a failure of the library.
    fn is_true(&self, text: &str, is_meant: impl Fn(&Event) -> bool) -> bool {
        let runs = self.runs.iter();
        let mut meant = runs.map(|run| is_meant(&self.events[run.event]));
        let (kind, text) = text.split_once(": ").unwrap_or_default();
        let Ok(number) = text.parse::<usize>() else {
            let is_unstarted = text.contains("did not start in time");
            return kind == "failure" && !(is_unstarted && meant.any(|it| it));
        };
        let is_meant = meant.nth(number).unwrap_or(false);
        let result = self.runs.get(number).and_then(|it| it.result.as_deref());
        is_meant
            && match result {
                Some("value") => kind == "value",
                Some("failure" | "retry") => kind == "failure",
                _ => false,
            }
    }

    /// Adds what is known to a digest: tasks by their events, because their ids are random.
    pub(super) fn hash(&self, mut state: &mut dyn Hasher) {
        let event_of = |task: &String| self.events.iter().position(|it| it.task == *task);
        self.runs.hash(&mut state);
        for event in &self.events {
            let is_newest = self.newest.values().any(|it| *it == event.task);
            let has_ended = self.ended.contains(&event.task);
            (event.call, event.sent_at, is_newest, has_ended).hash(&mut state);
        }
        self.late.hash(&mut state);
        for told in &self.told {
            (event_of(&told.id), told.is_cancelled, &told.end).hash(&mut state);
        }
    }
}

/// Returns the text of a call's result or error, after `value`, `failure` or `error`.
fn text_of(response: &Value) -> String {
    if let Some(message) = response["error"]["message"].as_str() {
        return format!("error: {message}");
    }
    let result = &response["result"];
    let text = result["content"][0]["text"].as_str().unwrap_or_default();
    match &result["structuredContent"]["result"] {
        Value::Null => format!("failure: {}", text.lines().next().unwrap_or_default()),
        value => format!("value: {value}"),
    }
}
