//! The local server's address.

use std::fmt;

use tokio::net::TcpListener;

use crate::serve::{Error, settings};

/// Listens on `HOST` and `PORT`.
pub(super) async fn listen() -> Result<TcpListener, Error> {
    let host = settings::get("HOST")?.unwrap_or_else(|| "127.0.0.1".into());
    let port = settings::get("PORT")?.unwrap_or_else(|| "9000".into());
    let number: u16 = port
        .parse()
        .map_err(|_| CannotListen(format!("PORT is '{port}', which is not a port number")))?;
    let listener = TcpListener::bind((host.as_str(), number)).await;
    Ok(listener.map_err(|error| {
        CannotListen(format!(
            "cannot listen on {host}:{number}: {error}; set HOST or PORT to listen elsewhere, as \
             in PORT=9001 cargo run"
        ))
    })?)
}

struct CannotListen(String);

impl fmt::Display for CannotListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The same as `Display`: `main` prints its error with `Debug`.
impl fmt::Debug for CannotListen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CannotListen {}
