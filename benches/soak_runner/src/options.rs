//! The options of the command.

use std::{path::PathBuf, time::Duration};

use crate::store::Schedule;

/// The duration and the pace of the run, and the program that is tested.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    pub(crate) program: PathBuf,
    pub(crate) length: Duration,
    /// The time in which caches are filled.
    pub(crate) warm_up: Duration,
    /// Requests per second, of all clients together.
    pub(crate) pace: f64,
    pub(crate) clients: u32,
    /// The time from one failing period of the store to the next.
    pub(crate) cycle: Duration,
    /// The time after which the issuer publishes a new key.
    pub(crate) rotation: Duration,
    /// False checks the answers only, for runs that are too short for the rest.
    pub(crate) limits_resources: bool,
    /// True runs the program as a local server.
    pub(crate) is_local: bool,
    /// The folder of the report.
    pub(crate) output: Option<PathBuf>,
}

const USAGE: &str = "usage: soak --program FILE [--minutes N] [--warm-up MINUTES] \
                     [--pace REQUESTS_PER_SECOND] [--clients N] [--cycle MINUTES] [--rotation SECONDS] \
                     [--local] [--answers-only] [--output FOLDER]";

impl Options {
    /// Reads the arguments, of which only the program is required.
    pub(crate) fn parse(arguments: impl IntoIterator<Item = String>) -> Result<Self, String> {
        let mut arguments = arguments.into_iter();
        let mut options = Self {
            program: PathBuf::new(),
            length: Duration::from_hours(1),
            warm_up: Duration::from_mins(5),
            pace: 250.0,
            clients: 64,
            cycle: Duration::from_mins(10),
            rotation: Duration::from_mins(3),
            limits_resources: true,
            is_local: false,
            output: None,
        };
        while let Some(name) = arguments.next() {
            match &*name {
                "--answers-only" => {
                    options.limits_resources = false;
                    continue;
                }
                "--local" => {
                    options.is_local = true;
                    continue;
                }
                _ => {}
            }
            let value = arguments.next().ok_or(USAGE)?;
            let number = || {
                value
                    .parse::<f64>()
                    .ok()
                    .filter(|it| *it > 0.0 && *it < 1e6)
            };
            let seconds = |unit: f64| Some(Duration::from_secs_f64(number()? * unit));
            match &*name {
                "--minutes" => options.length = seconds(60.0).ok_or(USAGE)?,
                "--warm-up" => options.warm_up = seconds(60.0).ok_or(USAGE)?,
                "--cycle" => options.cycle = seconds(60.0).ok_or(USAGE)?,
                "--rotation" => options.rotation = seconds(1.0).ok_or(USAGE)?,
                "--pace" => options.pace = number().ok_or(USAGE)?,
                "--clients" => {
                    let clients = value.parse().ok().filter(|it| (1..=1000).contains(it));
                    options.clients = clients.ok_or(USAGE)?;
                }
                "--program" => options.program = value.into(),
                "--output" => options.output = Some(value.into()),
                _ => return Err(USAGE.into()),
            }
        }
        if options.program.as_os_str().is_empty() {
            return Err(USAGE.into());
        }
        let is_long_enough = options.warm_up < options.length || !options.limits_resources;
        is_long_enough
            .then_some(options)
            .ok_or_else(|| "the warm-up must be shorter than the run".into())
    }

    /// When the store fails: for a tenth of each cycle, and of a run that is shorter than one.
    pub(crate) fn schedule(&self) -> Schedule {
        let cycle = self.cycle.min(self.length);
        Schedule {
            cycle,
            begin: cycle * 3 / 10,
            length: cycle / 10,
        }
    }

    /// The time between two requests of one client.
    pub(crate) fn interval(&self) -> Duration {
        Duration::from_secs_f64(f64::from(self.clients) / self.pace)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<Options, String> {
        Options::parse(text.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn a_run_takes_an_hour_by_default() {
        let options = parse("--program bootstrap").unwrap();
        assert_eq!(options.length, Duration::from_hours(1));
        assert_eq!(options.clients, 64);
        assert_eq!(options.schedule().begin, Duration::from_mins(3));
    }

    #[test]
    fn options_change_the_run() {
        let options = parse("--program bootstrap --minutes 7.5 --warm-up 2 --pace 640").unwrap();
        assert_eq!(options.length, Duration::from_secs(450));
        assert_eq!(options.warm_up, Duration::from_mins(2));
        assert_eq!(options.interval(), Duration::from_millis(100));
        assert_eq!(options.schedule().length, Duration::from_secs(45));
    }

    #[test]
    fn a_mistake_is_an_error() {
        for wrong in [
            "",
            "--minutes 1",
            "--program bootstrap --minutes",
            "--program bootstrap --minutes 0",
            "--program bootstrap --minutes x",
            "--program bootstrap --hours 1",
            "--program bootstrap --clients 0",
            "--program bootstrap --minutes 5",
        ] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
        assert!(parse("--program bootstrap --minutes 1 --answers-only").is_ok());
    }
}
