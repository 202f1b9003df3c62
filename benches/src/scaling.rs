//! The growth of the cost with the number of tools, the size of inputs and the size of schemas.

use std::{
    error::Error,
    hint::black_box,
    time::{Duration, Instant},
};

use lambda_http::aws_lambda_events::apigw::ApiGatewayV2httpRequest;
use serde_json::{Value, json};

use crate::{
    events,
    function::{Function, Start},
    measure::check,
    runtime_api::{Event, Reply},
    spread::Spread,
};

const ROUNDS: usize = 15;

/// The results for one number of tools.
pub(crate) struct Tools {
    pub(crate) count: usize,
    pub(crate) cold: Spread,
    pub(crate) first_list: Spread,
    pub(crate) warm_list: Spread,
    /// A list that the client already has; none if lists have no tag.
    pub(crate) unchanged_list: Option<Spread>,
    pub(crate) call: Spread,
    pub(crate) list_bytes: usize,
}

/// The results for one size of input.
pub(crate) struct Input {
    pub(crate) bytes: usize,
    pub(crate) latency: Spread,
    pub(crate) cpu_per_call: Spread,
    /// The time to parse the event once and its body once with `serde_json`, in this process.
    pub(crate) parsing: Spread,
}

/// The results for one schema.
pub(crate) struct Schema {
    pub(crate) name: &'static str,
    pub(crate) first: Spread,
    pub(crate) warm: Spread,
}

/// The results of all scaling measurements.
pub(crate) struct Scaling {
    pub(crate) tools: Vec<Tools>,
    pub(crate) inputs: Vec<Input>,
    pub(crate) schemas: Vec<Schema>,
}

impl Scaling {
    pub(crate) fn most_tools(&self) -> &Tools {
        self.tools.last().expect("numbers of tools are measured")
    }

    pub(crate) fn large_input(&self) -> &Input {
        self.inputs.last().expect("sizes of inputs are measured")
    }

    /// The cold start with the most tools over that with one, in milliseconds.
    pub(crate) fn cold_start_of_many(&self) -> f64 {
        let ms = |tools: &Tools| tools.cold.median.as_secs_f64() * 1000.0;
        ms(self.most_tools()) - ms(&self.tools[0])
    }
}

pub(crate) fn measure(scale: &Start) -> Result<Scaling, Box<dyn Error>> {
    Ok(Scaling {
        tools: tools(scale)?,
        inputs: inputs(scale)?,
        schemas: schemas(scale)?,
    })
}

fn tools(scale: &Start) -> Result<Vec<Tools>, Box<dyn Error>> {
    let counts = [1, 10, 100, 1000, 10_000];
    let start = |count: usize| Start {
        environment: vec![("TOOLS".into(), count.to_string())],
        ..scale.clone()
    };
    let mut times = counts.map(|_| ToolsTimes::default());
    for _ in 0..ROUNDS {
        for (count, times) in counts.into_iter().zip(&mut times) {
            times.add(&Function::start(&start(count))?)?;
        }
    }
    eprintln!("numbers of tools: done");
    let times = counts.into_iter().zip(times);
    Ok(times.map(|(count, times)| times.spreads(count)).collect())
}

#[derive(Default)]
struct ToolsTimes {
    cold: Vec<Duration>,
    first: Vec<Duration>,
    warm: Vec<Duration>,
    unchanged: Vec<Duration>,
    call: Vec<Duration>,
    bytes: usize,
}

impl ToolsTimes {
    /// Adds the times of one process.
    fn add(&mut self, function: &Function) -> Result<(), Box<dyn Error>> {
        let latencies = |replies: &[Reply]| -> Vec<_> {
            let later = replies[1..].iter();
            later.map(|reply| reply.latency).collect()
        };
        self.cold.push(function.cold_start);
        let (lists, _) = function.run(&vec![events::list(); 6]);
        check(&lists, "Calculator.Add@1.0.0")?;
        self.bytes = lists[0].body.len();
        self.first.push(lists[0].latency);
        self.warm.extend(latencies(&lists));
        if let Some(tag) = tag(&lists[0])? {
            let (replies, _) = function.run(&vec![events::list_unless(&tag); 21]);
            check(&replies, "\"statusCode\":304")?;
            self.unchanged.extend(latencies(&replies));
        }
        let (calls, _) = function.run(&vec![events::add(); 101]);
        check(&calls, "\"value\\\":15")?;
        self.call.extend(latencies(&calls));
        Ok(())
    }

    fn spreads(self, count: usize) -> Tools {
        Tools {
            count,
            cold: Spread::of(self.cold),
            first_list: Spread::of(self.first),
            warm_list: Spread::of(self.warm),
            unchanged_list: (!self.unchanged.is_empty()).then(|| Spread::of(self.unchanged)),
            call: Spread::of(self.call),
            list_bytes: self.bytes,
        }
    }
}

/// The entity tag of a response.
fn tag(reply: &Reply) -> Result<Option<String>, serde_json::Error> {
    let response: Value = serde_json::from_slice(&reply.body)?;
    let headers = response["headers"].as_object();
    let tag = headers.and_then(|headers| {
        let mut headers = headers.iter();
        headers.find(|(name, _)| name.eq_ignore_ascii_case("etag"))
    });
    Ok(tag.and_then(|(_, tag)| Some(tag.as_str()?.to_owned())))
}

fn inputs(scale: &Start) -> Result<Vec<Input>, Box<dyn Error>> {
    let function = Function::start(scale)?;
    let mut all = Vec::new();
    for bytes in [1_000, 100_000, 5_000_000] {
        let event = events::records(bytes);
        let calls = if bytes > 1_000_000 { 10 } else { 100 };
        let (mut latency, mut cpu, mut parsing) = (vec![], vec![], vec![]);
        for round in 0..=5 {
            let before = function.cpu()?;
            let (replies, _) = function.run(&vec![event.clone(); calls]);
            let used = function.cpu()?.saturating_sub(before);
            check(&replies, "\"success\\\":true")?;
            if round > 0 {
                latency.extend(replies.iter().map(|reply| reply.latency));
                cpu.push(used / u32::try_from(calls)?);
                parsing.push(time_to_parse(&event)?);
            }
        }
        all.push(Input {
            bytes: event.len(),
            latency: Spread::of(latency),
            cpu_per_call: Spread::of(cpu),
            parsing: Spread::of(parsing),
        });
    }
    eprintln!("sizes of inputs: done");
    Ok(all)
}

fn time_to_parse(event: &Event) -> Result<Duration, Box<dyn Error>> {
    let begun = Instant::now();
    let parsed: ApiGatewayV2httpRequest = serde_json::from_slice(event)?;
    let body: Value = serde_json::from_str(parsed.body.as_deref().unwrap_or_default())?;
    let elapsed = begun.elapsed();
    black_box(body);
    Ok(elapsed)
}

fn schemas(scale: &Start) -> Result<Vec<Schema>, Box<dyn Error>> {
    let wide = |count: usize| {
        let input: serde_json::Map<_, _> = (0..count)
            .map(|i| (format!("p{i}"), "text".into()))
            .collect();
        events::call(&format!("Wide.W{count}@1.0.0"), &Value::Object(input))
    };
    let deep = (0..10).fold(json!("text"), |inner, _| json!({"in": inner}));
    let all = [
        ("2 properties", events::add()),
        ("5 properties", wide(5)),
        ("500 properties", wide(500)),
        ("10 levels deep", events::call("Deep.D10@1.0.0", &deep)),
    ];
    let mut times = all.each_ref().map(|_| (vec![], vec![]));
    for _ in 0..ROUNDS {
        for ((_, event), (first, warm)) in all.iter().zip(&mut times) {
            let function = Function::start(scale)?;
            let (replies, _) = function.run(&vec![event.clone(); 51]);
            check(&replies, "\"success\\\":true")?;
            first.push(replies[0].latency);
            warm.extend(replies[1..].iter().map(|reply| reply.latency));
        }
    }
    eprintln!("sizes of schemas: done");
    let figures = |((name, _), (first, warm))| Schema {
        name,
        first: Spread::of(first),
        warm: Spread::of(warm),
    };
    Ok(all.into_iter().zip(times).map(figures).collect())
}
