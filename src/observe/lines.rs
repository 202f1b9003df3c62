//! Lines of the log, for tests.

use std::{
    io,
    sync::{Arc, LazyLock, Mutex},
};

use tracing_subscriber::fmt::MakeWriter;

/// A writer for `tracing-subscriber` that keeps everything written to it.
#[derive(Clone)]
pub(crate) struct Lines(Arc<Mutex<Vec<u8>>>);

/// `tracing` remembers for each call site whether anybody listens, over all threads. Where tests end
/// that listen, one beside them could be taken for deaf, unless somebody listens all the time.
static LISTENING: LazyLock<()> = LazyLock::new(|| {
    let everything = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE);
    let nowhere = everything.with_writer(io::sink).finish();
    tracing::subscriber::set_global_default(nowhere).expect("tests set no other one");
});

impl Default for Lines {
    fn default() -> Self {
        LazyLock::force(&LISTENING);
        Self(Arc::default())
    }
}

impl Lines {
    pub(crate) fn text(&self) -> String {
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
