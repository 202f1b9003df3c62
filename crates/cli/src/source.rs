//! The bytes of a document: a file, or what a URL leads to.

use std::{error, fs, net::IpAddr, path::Path, time::Duration};

use reqwest::{
    Client, Response, Url,
    redirect::{Action, Attempt, Policy},
};
use tokio::runtime::Builder;

use crate::Error;

/// The time limit for a download.
const LONGEST: Duration = Duration::from_secs(30);
/// The maximum size of a download.
const LARGEST: usize = 64 << 20;
/// The maximum number of redirects.
const MOST_REDIRECTS: usize = 5;

/// Returns true for a URL, false for a file.
pub(crate) fn is_url(source: &str) -> bool {
    Url::parse(source).is_ok_and(|url| matches!(url.scheme(), "http" | "https"))
}

/// Returns true for a URL of this machine.
pub(crate) fn is_loopback(url: &str) -> bool {
    let url = Url::parse(url).ok();
    let host = url.as_ref().and_then(Url::host_str).unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse().is_ok_and(|it: IpAddr| it.is_loopback())
}

/// Returns an argument as a file may keep it: a URL without user and query, which may have a key.
pub(crate) fn without_secrets(argument: String) -> String {
    match Url::parse(&argument) {
        Ok(mut url) if is_url(&argument) => {
            url.set_query(None);
            // A URL of http has a place for both.
            _ = url.set_username("").and_then(|()| url.set_password(None));
            url.into()
        }
        _ => argument,
    }
}

/// Returns the text of a file or a URL.
pub(crate) fn read(source: &str) -> Result<String, Error> {
    let bytes = if is_url(source) {
        download(Url::parse(source)?)
    } else {
        fs::read(source).map_err(Error::from)
    };
    let bytes = bytes.map_err(|error| format!("{source} cannot be read: {error}"))?;
    String::from_utf8(bytes).map_err(|_| format!("{source} is not text in UTF-8").into())
}

/// Returns the text of a file, which is not a URL.
pub(crate) fn read_file(file: &Path) -> Result<String, Error> {
    let text = fs::read_to_string(file);
    text.map_err(|error| format!("{} cannot be read: {error}", file.display()).into())
}

fn download(url: Url) -> Result<Vec<u8>, Error> {
    let mut runtime = Builder::new_current_thread();
    let bytes = runtime.enable_all().build()?.block_on(get(url));
    bytes.map_err(|error| causes(&*error).into())
}

async fn get(url: Url) -> Result<Vec<u8>, Error> {
    let client = Client::builder().timeout(LONGEST);
    let client = client.redirect(Policy::custom(follow)).build()?;
    let response = client.get(url).send().await;
    let mut response = response.map_err(reqwest::Error::without_url)?;
    if !response.status().is_success() {
        return Err(format!("the server answers {}", response.status()).into());
    }
    body(&mut response, LARGEST).await
}

/// Returns the body of a response, unless it is larger than `most` bytes.
pub(crate) async fn body(response: &mut Response, most: usize) -> Result<Vec<u8>, Error> {
    let mut bytes = Vec::new();
    while let Some(chunk) = response.chunk().await? {
        if bytes.len() + chunk.len() > most {
            return Err(format!("it is larger than {} MB", most >> 20).into());
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// Follows only redirects to https: whoever changes a document decides where tools send secrets.
fn follow(attempt: Attempt) -> Action {
    if attempt.previous().len() > MOST_REDIRECTS {
        return attempt.error("too many redirects");
    }
    match attempt.url().scheme() {
        "https" => attempt.follow(),
        _ => attempt.error("it redirects to a URL that is not https"),
    }
}

/// Returns the messages of an error and of its causes; reqwest's own say only what it was doing.
pub(crate) fn causes(error: &(dyn error::Error + 'static)) -> String {
    let all = std::iter::successors(Some(error), |it| it.source());
    all.map(ToString::to_string).collect::<Vec<_>>().join(": ")
}

#[cfg(test)]
mod tests {
    use super::is_loopback;

    #[test]
    fn only_addresses_of_this_machine_are_its_own() {
        let own = "http://127.0.0.1:8000/v1 http://localhost http://[::1]:8000";
        assert!(own.split(' ').all(is_loopback));
        let others = "http://0.0.0.0:8000 http://10.0.0.1 http://127.0.0.1.example \
                      http://localhost@pets.example 127.0.0.1";
        for url in others.split(' ') {
            assert!(!is_loopback(url), "{url}");
        }
    }
}
