//! Captured log lines.

use std::{
    io,
    sync::{Arc, LazyLock, Mutex},
};

use tracing_subscriber::fmt::MakeWriter;

/// A writer for `tracing-subscriber` that keeps everything written to it.
#[derive(Clone)]
pub struct Lines(Arc<Mutex<Vec<u8>>>);

/// `tracing` caches for each call site, across all threads, whether any subscriber is interested.
/// When one test drops its subscriber, that cache could silence a concurrent test, unless a global
/// subscriber is always interested.
static GLOBAL_SUBSCRIBER: LazyLock<()> = LazyLock::new(|| {
    let everything = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
    let sink = everything.with_writer(io::sink).finish();
    tracing::subscriber::set_global_default(sink).expect("tests set no other global subscriber");
});

impl Default for Lines {
    fn default() -> Self {
        LazyLock::force(&GLOBAL_SUBSCRIBER);
        Self(Arc::default())
    }
}

impl Lines {
    /// Returns what has been written.
    pub fn text(&self) -> String {
        String::from_utf8(self.0.lock().unwrap().clone()).unwrap()
    }
}

impl io::Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Self;

    fn make_writer(&'a self) -> Self {
        self.clone()
    }
}
