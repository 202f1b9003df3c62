//! What is known of the tasks in an execution, with the rules that `docs/long-calls.md` promises.

use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{Hash, Hasher},
};

use lambda_tools::store::{Field, Record};
use serde_json::Value;

use crate::{network::Network, service::number_of};

/// A run of the tool.
#[derive(Default)]
pub(super) struct Run {
    /// The number of the event that started it.
    event: usize,
    has_acted: bool,
    /// The end that the tool caused: `value`, `failure`, `retry` or `panic`.
    pub(super) result: Option<String>,
}

/// An event with which the function invokes itself.
pub(super) struct Event {
    pub(super) text: String,
    /// The id of its task.
    task: String,
    /// The number of the task's call id.
    call: usize,
}

/// A task that a client knows.
pub(super) struct Told {
    pub(super) id: String,
    /// True if a client has asked for its cancellation.
    is_cancelled: bool,
    /// True if its cancellation was confirmed before it started.
    is_stopped: bool,
    /// The status that it ended with, and the result or the error, as a client was told.
    end: Option<(String, String)>,
}

#[derive(Default)]
pub(super) struct Ledger {
    pub(super) is_at_most_once: bool,
    pub(super) runs: Vec<Run>,
    pub(super) events: Vec<Event>,
    pub(super) told: Vec<Told>,
    /// The ids of the tasks that were started.
    pub(super) started: BTreeSet<String>,
    /// The newest task of each record.
    pub(super) newest: BTreeMap<String, String>,
}

/// A broken rule.
type Broken = Result<(), String>;

fn rule(holds: bool, text: impl Into<String>) -> Broken {
    if holds { Ok(()) } else { Err(text.into()) }
}

fn field<'r>(record: &'r Record, name: &str) -> Option<&'r Field> {
    let mut fields = record.fields.iter();
    fields.find(|(it, _)| *it == name).map(|(_, value)| value)
}

impl Ledger {
    /// Records that an event is sent for the task of a call.
    pub(super) fn send(&mut self, call: usize, text: String) {
        let event: Value = serde_json::from_str(&text).expect("events are JSON");
        let task = event["lambda_tools"]["task"].as_str().unwrap().to_owned();
        self.events.push(Event { text, task, call });
    }

    /// Records that the record of a task was written.
    pub(super) fn write(&mut self, key: &str, record: &Record) {
        let Some(Field::Text(call)) = field(record, "call") else {
            return;
        };
        let call: Value = serde_json::from_str(call).expect("calls are JSON");
        let Some(random) = call["task"]["id"].as_str() else {
            return;
        };
        let id = format!("{key}{random}");
        let is_running = call["state"]["running"].is_object();
        if is_running && field(record, "sealed").is_none() {
            self.started.insert(id.clone());
        }
        self.newest.insert(key.to_owned(), id);
    }

    /// Records that the tool starts, and returns the number of the run.
    pub(super) fn begin(&mut self, event: usize, network: &Network) -> Result<usize, String> {
        let Event { task, call, .. } = &self.events[event];
        let mut runs = self.runs.iter();
        let is_same = |run: &Run| self.events[run.event].task == *task;
        rule(!runs.any(is_same), "a task runs twice")?;
        let numbers = network.served().filter_map(|(_, text)| number_of(text));
        let mut running = numbers.filter_map(|number| self.runs.get(number));
        let is_same = |run: &Run| self.events[run.event].call == *call;
        rule(
            !running.any(is_same),
            "two runs of one call at the same time",
        )?;
        if let Some(told) = self.told.iter().find(|it| it.id == *task) {
            rule(!told.is_stopped, "a task runs that was cancelled before")?;
            rule(told.end.is_none(), "a task runs that has ended")?;
        }
        self.runs.push(Run {
            event,
            ..Run::default()
        });
        Ok(self.runs.len() - 1)
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

    fn told(&mut self, id: &str) -> &mut Told {
        let number = self.told.iter().position(|it| it.id == id);
        &mut self.told[number.expect("a client knows it")]
    }

    /// Records the response to a call. `is_disturbed` says that its process had to fail.
    pub(super) fn answer(&mut self, call: usize, response: &Value, is_disturbed: bool) -> Broken {
        let result = &response["result"];
        if result["resultType"] == "task" {
            let id = result["taskId"].as_str().unwrap_or_default();
            rule(
                result["status"] == "working",
                "a task begins as it should not",
            )?;
            if !self.told.iter().any(|it| it.id == id) {
                self.told.push(Told {
                    id: id.to_owned(),
                    is_cancelled: false,
                    is_stopped: false,
                    end: None,
                });
            }
            return Ok(());
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

    /// Records that a client asks for a task's cancellation.
    pub(super) fn cancel(&mut self, id: &str) {
        self.told(id).is_cancelled = true;
    }

    /// Records the response to that.
    pub(super) fn cancelled(&mut self, id: &str, response: &Value, is_disturbed: bool) -> Broken {
        if response["result"]["resultType"] == "complete" {
            let is_started = self.started.contains(id);
            self.told(id).is_stopped |= !is_started;
            return Ok(());
        }
        self.unanswered(id, response, is_disturbed)
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
            return self.unanswered(id, response, is_disturbed);
        };
        if status == "working" {
            return rule(!had_ended, "a task works that has ended");
        }
        let text = match status {
            "completed" => text_of(result),
            _ => result["error"]["message"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
        };
        let of_task = |event: &Event| event.task == id;
        let is_true = match status {
            "cancelled" => self.told(id).is_cancelled,
            "failed" => self.is_true(&format!("failure: {text}"), of_task),
            _ => self.is_true(&text, of_task),
        };
        rule(is_true, format!("a task '{status}: {text}', out of place"))?;
        let end = (status.to_owned(), text);
        let told = self.told(id);
        let first = told.end.get_or_insert_with(|| end.clone());
        rule(
            *first == end,
            format!("a task ends twice: {first:?}, {end:?}"),
        )
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

    /// Checks a response without a status: a client may ask again, or has replaced the task.
    fn unanswered(&self, id: &str, response: &Value, is_disturbed: bool) -> Broken {
        let is_allowed = match response["error"]["code"].as_i64() {
            Some(-32602) => self.is_replaced(id),
            Some(-32603) => is_disturbed,
            _ => false,
        };
        rule(is_allowed, format!("a task without a status: {response}"))
    }

    /// Returns true if a text describes the end of a run, or of a task without one.
    fn is_true(&self, text: &str, is_meant: impl Fn(&Event) -> bool) -> bool {
        let mut runs = self.runs.iter();
        let meant = |run: &&Run| is_meant(&self.events[run.event]);
        let ended_so = |number: &str, results: &[&str]| {
            let run = number.parse().ok().and_then(|it: usize| self.runs.get(it));
            run.filter(meant)
                .and_then(|it| it.result.as_deref())
                .is_some_and(|it| results.contains(&it))
        };
        let (kind, text) = text.split_once(": ").unwrap_or_default();
        let has = |part| text.contains(part);
        match kind {
            "value" => ended_so(text, &["value"]),
            "failure" if has("did not start in time") => !runs.any(|it| meant(&it)),
            "failure" if has("internal error") => {
                runs.any(|it| meant(&it) && it.result.as_deref() == Some("panic"))
            }
            "failure" if has("did not finish in time") || has("has run") => {
                runs.any(|it| meant(&it))
            }
            // It may have had its effect: the client must be told even if it has not begun.
            "failure" if has("was cut off") => true,
            "failure" if has("no time left") => true,
            "failure" => ended_so(text, &["failure", "retry"]),
            _ => false,
        }
    }

    /// Adds what is known to a digest: tasks by their events, because their ids are random.
    pub(super) fn hash(&self, mut state: &mut dyn Hasher) {
        let event_of = |task: &String| self.events.iter().position(|it| it.task == *task);
        for run in &self.runs {
            (run.event, run.has_acted, &run.result).hash(&mut state);
        }
        for event in &self.events {
            let is_newest = self.newest.values().any(|it| *it == event.task);
            let is_started = self.started.contains(&event.task);
            (event.call, is_newest, is_started).hash(&mut state);
        }
        for told in &self.told {
            let flags = (told.is_cancelled, told.is_stopped);
            (event_of(&told.id), flags, &told.end).hash(&mut state);
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
