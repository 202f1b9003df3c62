//! Records requests with their times, to count those that wait for each other.

use std::{
    sync::{Arc, Mutex, OnceLock},
    time::{Duration, Instant},
};

use axum::{
    Router,
    extract::Request,
    middleware::{Next, from_fn},
};

/// The requests to one or more servers.
#[derive(Clone)]
pub struct Recorder {
    requests: Arc<Mutex<Vec<RecordedRequest>>>,
    delay: Duration,
}

#[derive(Clone)]
struct RecordedRequest {
    name: String,
    begin: Instant,
    /// Set when the response is sent.
    end: Arc<OnceLock<Instant>>,
}

/// The requests that were received within some time.
pub struct Recorded(Vec<RecordedRequest>);

impl Recorder {
    /// Delays each response by this time, so that requests that are sent together overlap.
    pub fn with_delay(delay: Duration) -> Self {
        let requests = Arc::default();
        Self { requests, delay }
    }

    /// Records a request whose response `respond` makes.
    pub async fn record<T>(&self, name: &str, respond: impl Future<Output = T>) -> T {
        let end = Arc::new(OnceLock::new());
        self.requests.lock().unwrap().push(RecordedRequest {
            name: name.to_owned(),
            begin: Instant::now(),
            end: Arc::clone(&end),
        });
        tokio::time::sleep(self.delay).await;
        let response = respond.await;
        let _ = end.set(Instant::now());
        response
    }

    /// Returns a router whose requests are recorded, by their paths.
    pub fn layer(&self, router: Router) -> Router {
        let recorder = self.clone();
        router.layer(from_fn(move |request: Request, next: Next| {
            let recorder = recorder.clone();
            async move {
                let name = request.uri().path().to_owned();
                recorder.record(&name, next.run(request)).await
            }
        }))
    }

    /// Returns the number of requests since the last [`Self::take`].
    pub fn count(&self) -> usize {
        self.requests.lock().unwrap().len()
    }

    /// Takes the requests since the previous call.
    pub fn take(&self) -> Recorded {
        Recorded(std::mem::take(&mut *self.requests.lock().unwrap()))
    }
}

impl Recorded {
    /// Returns the names of the requests, in the order of their arrival.
    pub fn names(&self) -> Vec<&str> {
        self.0.iter().map(|request| &*request.name).collect()
    }

    /// Returns the number of requests that wait for each other: the most that were answered and of
    /// which none overlaps another.
    pub fn waits(&self) -> usize {
        let times = self.0.iter();
        let times = times.filter_map(|request| Some((*request.end.get()?, request.begin)));
        let mut times: Vec<_> = times.collect();
        times.sort_unstable();
        let mut last_end = None;
        let mut waits = 0;
        for (end, begin) in times {
            if last_end.is_none_or(|last| begin >= last) {
                waits += 1;
                last_end = Some(end);
            }
        }
        waits
    }
}
