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
    measure::{Spread, check},
    runtime_api::Event,
};

const ROUNDS: usize = 15;

/// The results for one number of tools.
pub(crate) struct Tools {
    pub(crate) count: usize,
    pub(crate) cold: Spread,
    pub(crate) first_list: Spread,
    pub(crate) warm_list: Spread,
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
    let mut times: Vec<_> = counts.map(|_| (vec![], vec![], vec![], vec![], 0)).into();
    for _ in 0..ROUNDS {
        for (count, (cold, first, warm, call, bytes)) in counts.into_iter().zip(&mut times) {
            let function = Function::start(&start(count))?;
            cold.push(function.cold_start);
            let (replies, _) = function.run(&vec![events::list(); 6]);
            check(&replies, "Calculator.Add@1.0.0")?;
            *bytes = replies[0].body.len();
            first.push(replies[0].latency);
            warm.extend(replies[1..].iter().map(|reply| reply.latency));
            let (replies, _) = function.run(&vec![events::add(); 101]);
            check(&replies, "\"value\\\":15")?;
            call.extend(replies[1..].iter().map(|reply| reply.latency));
        }
    }
    eprintln!("numbers of tools: done");
    let figures = |(count, (cold, first, warm, call, list_bytes))| Tools {
        count,
        cold: Spread::of(cold),
        first_list: Spread::of(first),
        warm_list: Spread::of(warm),
        call: Spread::of(call),
        list_bytes,
    };
    Ok(counts.into_iter().zip(times).map(figures).collect())
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
