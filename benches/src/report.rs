//! The report, as Markdown and JSON, and the check of the limits.

use std::{
    error::Error,
    fmt::Write as _,
    fs,
    process::Command,
    time::{Duration, SystemTime},
};

use serde_json::{Value, json};

use crate::{
    measure::{Row, Spread},
    scaling::Scaling,
};

type File = (&'static str, u64, u64);

/// A target: a measured value and the most (or least) it should be.
struct Target {
    what: &'static str,
    measured: String,
    target: String,
    met: bool,
    /// True if a miss fails the run. False where the result depends mainly on the machine, and
    /// where `benches/README.md` explains a known miss.
    is_limit: bool,
}

impl Target {
    fn only_shown(self) -> Self {
        Self {
            is_limit: false,
            ..self
        }
    }
}

/// Writes `benches/RESULTS.md` and `benches/RESULTS.json`; the error names the exceeded limits.
pub(crate) fn write(rows: &[Row], scaling: &Scaling, files: &[File]) -> Result<(), Box<dyn Error>> {
    let targets = targets(rows, scaling, files);
    let mut text = format!("# Benchmark results\n\n{}\n\n", about());
    text += "Written by `benches/run`. The times are from one run on one machine; only ratios \
             apply elsewhere.\n\n";
    contest(&mut text, rows)?;
    sizes(&mut text, files)?;
    scale(&mut text, scaling)?;
    text += "## Targets\n\nA missed limit fails the run; [README.md](README.md) explains other \
             missed targets.\n\n\
             | | measured | target | | limit |\n| --- | --- | --- | --- | --- |\n";
    for it in &targets {
        let met = if it.met { "met" } else { "**missed**" };
        let limit = if it.is_limit { "yes" } else { "no" };
        writeln!(
            text,
            "| {} | {} | {} | {met} | {limit} |",
            it.what, it.measured, it.target
        )?;
    }
    fs::write("benches/RESULTS.md", &text)?;
    let json = figures(rows, scaling, files);
    fs::write("benches/RESULTS.json", format!("{json:#}\n"))?;
    print!("{text}");
    let exceeded = targets
        .iter()
        .filter(|target| target.is_limit && !target.met);
    let exceeded: Vec<_> = exceeded.map(|target| target.what).collect();
    if exceeded.is_empty() {
        return Ok(());
    }
    Err(format!("limits exceeded: {}", exceeded.join("; ")).into())
}

/// The date, machine and versions.
fn about() -> String {
    let output_of = |program: &str, argument: &str| {
        let output = Command::new(program).arg(argument).output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        text.unwrap_or_else(|error| error.to_string())
    };
    let seconds = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let date = output_of("date", &format!("--date=@{}", seconds.as_secs()));
    let model = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = model
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    let model = model
        .unwrap_or("unknown processor")
        .trim_start_matches(['\t', ' ', ':'])
        .to_owned();
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let kernel = output_of("uname", "-sr");
    let python = output_of(
        &std::env::var("BENCH_PYTHON").unwrap_or_default(),
        "--version",
    );
    format!(
        "{date}; {model}, {cores} cores; {kernel}; {}; {}; {python}; {}. Release profile, fat LTO, \
         one codegen unit, optimized for size, stripped; `RUST_BACKTRACE=0`.",
        output_of("rustc", "--version"),
        locked_versions(&[
            "jsonschema",
            "lambda_http",
            "lambda_runtime",
            "lambda_tools",
            "tokio"
        ]),
        pinned_versions(),
    )
}

/// The versions of crates, from the lock file.
fn locked_versions(names: &[&str]) -> String {
    let lock = fs::read_to_string("Cargo.lock").unwrap_or_default();
    let version = |name: &&str| {
        let (_, rest) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
        Some(format!("{name} {}", rest.split('"').next()?))
    };
    names
        .iter()
        .filter_map(version)
        .collect::<Vec<_>>()
        .join(", ")
}

/// The versions of the Python contestants.
fn pinned_versions() -> String {
    let file = fs::read_to_string("benches/python/requirements.txt").unwrap_or_default();
    let pins = file.lines().filter(|line| !line.starts_with('#'));
    pins.map(|pin| pin.replace("==", " "))
        .collect::<Vec<_>>()
        .join(", ")
}

fn contest(text: &mut String, rows: &[Row]) -> Result<(), Box<dyn Error>> {
    *text += "## Comparison with bare `lambda_http` and peers\n\n\
              Median (10th to 90th percentile) of 50 cold starts and of 5,000 warm calls per \
              contestant, in turns.\n\n\
              | | cold start | first call | warm call p50 | p99 | calls/s | CPU per call | peak RSS |\n\
              | --- | --- | --- | --- | --- | --- | --- | --- |\n";
    for row in rows {
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {:.0} | {} | {} |",
            row.name,
            spread(&row.cold),
            spread(&row.first),
            spread(&row.warm),
            time(row.warm.p99),
            row.calls_per_second,
            time(row.cpu_per_call.median),
            megabytes(row.peak_memory),
        )?;
    }
    Ok(())
}

fn sizes(text: &mut String, files: &[File]) -> Result<(), Box<dyn Error>> {
    *text += "\n| | binary | zip |\n| --- | --- | --- |\n";
    for (name, binary, zip) in files {
        writeln!(
            text,
            "| {name} | {} | {} |",
            megabytes(*binary),
            megabytes(*zip)
        )?;
    }
    Ok(())
}

fn scale(text: &mut String, scaling: &Scaling) -> Result<(), Box<dyn Error>> {
    *text += "\n## Scaling\n\n\
              | tools | cold start | first `/tools` | warm `/tools` | list size | warm call |\n\
              | --- | --- | --- | --- | --- | --- |\n";
    for tools in &scaling.tools {
        writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} |",
            tools.count,
            spread(&tools.cold),
            time(tools.first_list.median),
            time(tools.warm_list.median),
            megabytes(tools.list_bytes as u64),
            time(tools.call.median),
        )?;
    }
    *text += "\n| event | warm call | CPU per call | parsing event and body once |\n\
              | --- | --- | --- | --- |\n";
    for input in &scaling.inputs {
        writeln!(
            text,
            "| {} bytes | {} | {} | {} |",
            input.bytes,
            spread(&input.latency),
            time(input.cpu_per_call.median),
            time(input.parsing.median),
        )?;
    }
    *text += "\n| schema | first call | warm call |\n| --- | --- | --- |\n";
    for schema in &scaling.schemas {
        writeln!(
            text,
            "| {} | {} | {} |",
            schema.name,
            spread(&schema.first),
            time(schema.warm.median)
        )?;
    }
    *text += "\n";
    Ok(())
}

#[expect(clippy::too_many_lines, reason = "a list")]
fn targets(rows: &[Row], scaling: &Scaling, files: &[File]) -> Vec<Target> {
    let [
        bare,
        ours,
        modern,
        legacy,
        handwritten,
        handler,
        fastapi,
        with_key,
        with_token,
    ] = rows
    else {
        unreachable!("nine contestants are measured");
    };
    let ms = |time: Duration| time.as_secs_f64() * 1000.0;
    let at_most = |what, measured: f64, limit: f64, unit: &str| Target {
        what,
        measured: format!("{measured:.2}{unit}"),
        target: format!("≤ {limit}{unit}"),
        met: measured <= limit,
        is_limit: true,
    };
    let ratio = |a: Duration, b: Duration| a.as_secs_f64() / b.as_secs_f64();
    // The ratios to Python depend mainly on the share of the machine's network in a call, which is
    // the same for all contestants; bare's figure shows that share.
    let beside_python = |what, ours: &Row, of: &dyn Fn(&Row) -> f64, limit: f64, is_least: bool| {
        let (sign, met) = if is_least {
            ("≥", of(ours) >= limit)
        } else {
            ("≤", of(ours) <= limit)
        };
        Target {
            what,
            measured: format!("{:.3} × (bare: {:.3} ×)", of(ours), of(bare)),
            target: format!("{sign} {limit} ×"),
            met,
            is_limit: false,
        }
    };
    let cpu = |row: &Row| row.cpu_per_call.median;
    let faster_start = handler.cold.median.min(fastapi.cold.median);
    let cheaper = cpu(handler).min(cpu(fastapi));
    let many = ms(scaling.tools[4].cold.median) - ms(scaling.tools[0].cold.median);
    let large = &scaling.inputs[2];
    let zip = |name: &str| {
        let file = files.iter().find(|(file, _, _)| *file == name);
        file.map_or(f64::NAN, |(_, _, zip)| mega(*zip))
    };
    let warm = ratio(ours.warm.median, bare.warm.median);
    let slower_mcp = modern.warm.median.max(legacy.warm.median);
    let over_mcp = ratio(slower_mcp, ours.warm.median);
    let parsing = ratio(large.cpu_per_call.median, large.parsing.median);
    let memory = mega(ours.peak_memory) - mega(bare.peak_memory);
    let start = ms(ours.cold.median) - ms(bare.cold.median);
    vec![
        at_most("cold start over bare", start, 1.0, " ms"),
        at_most("cold start, 10,000 tools over 1", many, 3.0, " ms").only_shown(),
        beside_python(
            "cold start, relative to the faster Python contestant",
            ours,
            &|row| ratio(row.cold.median, faster_start),
            0.01,
            false,
        ),
        at_most("first call", ms(ours.first.median), 1.0, " ms").only_shown(),
        at_most(
            "first call, relative to handwritten",
            ratio(ours.first.median, handwritten.first.median),
            1.2,
            " ×",
        ),
        at_most("warm call p50, relative to bare", warm, 1.15, " ×"),
        at_most("warm MCP call p50, relative to OXP", over_mcp, 1.1, " ×"),
        at_most(
            "warm call p50 with an access token, over one with an API key",
            ms(with_token.warm.median) - ms(with_key.warm.median),
            0.15,
            " ms",
        ),
        at_most(
            "CPU per call, relative to bare",
            ratio(cpu(ours), cpu(bare)),
            1.25,
            " ×",
        ),
        beside_python(
            "CPU per call, relative to the cheaper Python contestant",
            ours,
            &|row| ratio(cpu(row), cheaper),
            0.25,
            false,
        ),
        beside_python(
            "calls/s over MCP 2025-11-25, relative to the MCP handler",
            legacy,
            &|row| row.calls_per_second / handler.calls_per_second,
            1.8,
            true,
        ),
        beside_python(
            "calls/s, relative to FastAPI",
            ours,
            &|row| row.calls_per_second / fastapi.calls_per_second,
            2.3,
            true,
        ),
        at_most(
            "5 MB input, CPU relative to parsing once",
            parsing,
            2.0,
            " ×",
        )
        .only_shown(),
        at_most("peak RSS over bare", memory, 6.0, " MB").only_shown(),
        // 4.5 MB for the AWS clients, plus OAuth.
        at_most("zip of the toolbox", zip("toolbox"), 4.7, " MB"),
        at_most("zip without AWS clients (hello)", zip("hello"), 2.5, " MB"),
    ]
}

fn figures(rows: &[Row], scaling: &Scaling, files: &[File]) -> Value {
    let us = |time: Duration| u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    let times = |spread: &Spread| {
        json!({"p10_us": us(spread.p10), "median_us": us(spread.median),
               "p90_us": us(spread.p90), "p99_us": us(spread.p99)})
    };
    let row = |row: &Row| {
        json!({"name": row.name, "cold": times(&row.cold), "first": times(&row.first),
               "warm": times(&row.warm), "cpu_per_call": times(&row.cpu_per_call),
               "calls_per_second": row.calls_per_second.round(), "peak_memory": row.peak_memory})
    };
    let tools = scaling.tools.iter().map(|tools| {
        json!({"tools": tools.count, "cold": times(&tools.cold), "first_list": times(&tools.first_list),
               "warm_list": times(&tools.warm_list), "call": times(&tools.call),
               "list_bytes": tools.list_bytes})
    });
    let inputs = scaling.inputs.iter().map(|input| {
        json!({"bytes": input.bytes, "latency": times(&input.latency),
               "cpu_per_call": times(&input.cpu_per_call), "parsing": times(&input.parsing)})
    });
    let schemas = scaling.schemas.iter().map(|schema| {
        json!({"schema": schema.name, "first": times(&schema.first), "warm": times(&schema.warm)})
    });
    let files = files
        .iter()
        .map(|(name, binary, zip)| json!({"name": name, "binary": binary, "zip": zip}));
    json!({
        "about": about(),
        "contest": rows.iter().map(row).collect::<Vec<_>>(),
        "files": files.collect::<Vec<_>>(),
        "tools": tools.collect::<Vec<_>>(),
        "inputs": inputs.collect::<Vec<_>>(),
        "schemas": schemas.collect::<Vec<_>>(),
    })
}

fn spread(spread: &Spread) -> String {
    format!(
        "{} ({}–{})",
        time(spread.median),
        time(spread.p10),
        time(spread.p90)
    )
}

fn time(time: Duration) -> String {
    let us = time.as_secs_f64() * 1e6;
    if us < 1000.0 {
        format!("{us:.0} µs")
    } else {
        format!("{:.2} ms", us / 1000.0)
    }
}

#[expect(clippy::cast_precision_loss, reason = "sizes of files and memories")]
fn mega(bytes: u64) -> f64 {
    bytes as f64 / 1e6
}

fn megabytes(bytes: u64) -> String {
    format!("{:.2} MB", mega(bytes))
}
