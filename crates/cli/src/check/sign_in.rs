//! Signing in: registration (RFC 7591), PKCE, and a redirect to this machine (RFC 8252).

use std::{process::Command, thread, time::Duration};

use oauth2::{CsrfToken, PkceCodeChallenge};
use reqwest::Url;
use serde_json::{Map, Value, json};
use tokio::{
    io::{AsyncBufReadExt, AsyncWriteExt, BufReader},
    net::TcpListener,
    time::timeout,
};

use super::client::{Client, text};
use crate::{Error, output};

/// The time that a person has.
const LONGEST: Duration = Duration::from_mins(5);
/// The time for a request of the browser, which may also connect without one.
const SHORT: Duration = Duration::from_secs(1);
/// The answer to the browser.
const PAGE: &[u8] = b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nYou can close this page.";

/// Lets a person sign in, as clients without a secret do, and refreshes the token.
pub(super) fn sign_in(client: &mut Client) -> Result<Value, Error> {
    if !client.options.sign_in {
        return Ok(Value::Null);
    }
    let resource = &client.known["resource metadata"];
    let issuer = &client.known["authorization server"];
    // A server that claims to be another one, or another one's issuer, would get a token that is for that.
    if !resource["rest"].is_string() || issuer["is_equal"] != true {
        return Ok(json!({}));
    }
    let server = &issuer["document"];
    let listener = client.runtime.block_on(TcpListener::bind("127.0.0.1:0"))?;
    let own = format!("http://{}/callback", listener.local_addr()?);
    let endpoint = |name: &str| client.named(server[name].as_str()?).ok();
    let registration = match (&client.options.client_id, endpoint("registration_endpoint")) {
        (Some(id), _) => json!({"status": 200, "body": {"client_id": id}}),
        (None, None) => Value::Null,
        (None, Some(url)) => {
            let metadata = json!({
                "client_name": "lambda-tools check", "redirect_uris": [own], "token_endpoint_auth_method": "none",
                "grant_types": ["authorization_code", "refresh_token"],
            });
            let request = client.http.post(url).body(metadata.to_string());
            client.send(request.header("content-type", "application/json"))?
        }
    };
    let id = text(&registration["body"]["client_id"]).to_owned();
    let mut facts = json!({"registration": registration});
    let endpoints = ["authorization_endpoint", "token_endpoint"].map(endpoint);
    let ([Some(page), Some(tokens)], false) = (endpoints, id.is_empty()) else {
        return Ok(facts);
    };
    let (scope, resource) = (&resource["scope"], &resource["document"]["resource"]);
    let (challenge, verifier) = PkceCodeChallenge::new_random_sha256();
    let state = CsrfToken::new_random().into_secret();
    let page = |redirect: &str| {
        let parameters = json!({
            "response_type": "code", "client_id": id, "redirect_uri": redirect, "state": state, "resource": resource,
            "code_challenge": challenge.as_str(), "code_challenge_method": "S256",
        });
        let request = client.http.get(page.clone()).query(&parameters);
        request.query(&[("scope", scope.as_str().filter(|it| !it.is_empty()))])
    };
    // A client that has registered once listens on another port later.
    let other = client.send(page("http://127.0.0.1:1/callback"))?;
    facts["with_another_port"] = other["status"].clone();
    let url = page(&own).build()?.url().clone();
    let response = async { timeout(LONGEST, redirected(&listener, url)).await };
    let response = client.runtime.block_on(response)??;
    // RFC 9207, 2.4.
    let is_promised = server["authorization_response_iss_parameter_supported"] == true;
    let is_left_out = response["iss"].is_null() && !is_promised;
    facts["is_of_issuer"] = (is_left_out || response["iss"] == server["issuer"]).into();
    facts["is_own"] = (response["state"] == state).into();
    let code = response["code"].clone();
    facts["response"] = response;
    if !code.is_string() || facts["is_own"] == false || facts["is_of_issuer"] == false {
        return Ok(facts);
    }
    let token = |grant| client.send(client.http.post(tokens.clone()).form::<Value>(&grant));
    facts["token"] = token(json!({
        "grant_type": "authorization_code", "code": code, "redirect_uri": own, "client_id": id,
        "code_verifier": verifier.secret(), "resource": resource,
    }))?;
    let refresh = &facts["token"]["body"]["refresh_token"];
    if refresh.is_string() {
        facts["refresh"] = token(json!({
            "grant_type": "refresh_token", "refresh_token": refresh, "client_id": id, "resource": resource,
        }))?;
    }
    Ok(facts)
}

/// Opens a page, and returns the parameters with which the browser comes back.
async fn redirected(listener: &TcpListener, page: Url) -> Result<Value, Error> {
    output::print(&format!("Sign in at {page}"));
    let mut openers = ["xdg-open", "open"].into_iter();
    // Without these programs, the person follows the link.
    let opens = move |it| Command::new(it).arg(page.as_str()).output().is_ok();
    thread::spawn(move || openers.any(opens));
    loop {
        let (stream, _) = listener.accept().await?;
        let (mut stream, mut head) = (BufReader::new(stream), String::new());
        let whole = async { while stream.read_line(&mut head).await.is_ok_and(|it| it > 2) {} };
        _ = timeout(SHORT, whole).await;
        let path = head.split(' ').nth(1).unwrap_or_default();
        if path.starts_with("/callback?") {
            stream.write_all(PAGE).await?;
            let url = Url::parse("http://localhost")?.join(path)?;
            let pairs = url.query_pairs();
            let pairs = pairs.map(|(name, value)| (name.into_owned(), Value::from(value)));
            return Ok(pairs.collect::<Map<_, _>>().into());
        }
    }
}
