//! The steps of a client of MCP, from its URL to a call.

use std::time::Instant;

use serde_json::{Map, Value, json};

use super::client::{Client, MODERN, text};
use crate::{Error, source};

const MOST_PAGES: usize = 100;
/// The number of requests whose time is compared with that of the first.
const TIMED: usize = 10;

/// Looks at the URL as it is typed into a client.
pub(super) fn url(client: &mut Client) -> Result<Value, Error> {
    let url = &client.options.url;
    let is_local = source::is_loopback(url.as_str());
    Ok(json!({"is_local": is_local, "root": url.join("/")?.as_str(), "path": url.path()}))
}

/// Sends a client's first request, which tells whether the server wants credentials.
pub(super) fn first_request(client: &mut Client) -> Result<Value, Error> {
    let start = Instant::now();
    let mut response = client.initialize()?;
    response["milliseconds"] = json!(start.elapsed().as_millis());
    Ok(response)
}

/// Finds out which eras the server speaks, and goes on in the newer one.
pub(super) fn protocol(client: &mut Client) -> Result<Value, Error> {
    let issued = |it: &str| client.known["sign-in"][it]["body"]["access_token"].as_str();
    let key = client.options.key.as_deref();
    let key = key.or(issued("refresh")).or(issued("token"));
    let bearer = key.map(|it| ("authorization", format!("Bearer {it}")));
    if bearer.is_none() && client.known["first request"]["status"] == 401 {
        return Ok(json!({"lacks_key": true}));
    }
    client.headers.extend(bearer);
    client.is_modern = true;
    let discover = client.message("server/discover", json!({}))?;
    client.is_modern = false;
    let initialize = client.initialize()?;
    let revisions = discover["body"]["result"]["supportedVersions"].as_array();
    client.is_modern = revisions.is_some_and(|it| it.contains(&MODERN.into()));
    if !client.is_modern {
        let revision = text(&initialize["body"]["result"]["protocolVersion"]).to_owned();
        let session = text(&initialize["headers"]["mcp-session-id"]).to_owned();
        let headers = ["mcp-protocol-version", "mcp-session-id"].into_iter();
        let agreed = headers.zip([revision, session]);
        client.headers.extend(agreed.filter(|it| !it.1.is_empty()));
        // Servers with sessions serve nothing before it.
        client.message("notifications/initialized", json!({}))?;
    }
    Ok(json!({"is_modern": client.is_modern, "discover": discover, "initialize": initialize}))
}

/// Reads the list of tools, page by page.
pub(super) fn tools(client: &mut Client) -> Result<Value, Error> {
    let (mut names, mut tools, mut pages) = (Vec::new(), Map::new(), 0);
    let mut cursor = json!({});
    while cursor.is_object() && pages < MOST_PAGES {
        pages += 1;
        let page = client.result("tools/list", cursor)?;
        let next = page["nextCursor"].as_str();
        cursor = next.map_or(Value::Null, |it| json!({"cursor": it}));
        for tool in page["tools"].as_array().ok_or("there is no list")? {
            names.push(text(&tool["name"]).to_owned());
            tools.insert(text(&tool["name"]).to_owned(), tool.clone());
        }
    }
    Ok(json!({"names": names, "tools": tools, "pages": pages, "next": cursor}))
}

/// Reads the first pages of the other lists that the server says it has.
pub(super) fn others(client: &mut Client) -> Result<Value, Error> {
    let era = if client.is_modern {
        "discover"
    } else {
        "initialize"
    };
    let result = &client.known["protocol"][era]["body"]["result"];
    let mut names = Vec::new();
    for (list, method) in [("resources", "resources/list"), ("prompts", "prompts/list")] {
        if result["capabilities"][list].is_object() {
            let found = client.result(method, json!({}))?;
            let items = found[list].as_array().ok_or("there is no list")?.iter();
            names.extend(items.map(|it| text(&it["name"]).to_owned()));
        }
    }
    Ok(json!({"names": names}))
}

/// Calls the tool that the options name, or else one that only reads and needs no input.
pub(super) fn call(client: &mut Client) -> Result<Value, Error> {
    let is_harmless = |it: &&Value| {
        let required = it["inputSchema"]["required"].as_array();
        it["annotations"]["readOnlyHint"] == true && required.is_none_or(Vec::is_empty)
    };
    let tools = client.known["tools"]["tools"].as_object();
    let harmless = tools.and_then(|it| it.values().find(is_harmless));
    let params = match &*client.options.call {
        [name, input] => json!({"name": name, "arguments": input.parse::<Value>()?}),
        _ => json!({"name": harmless.map(|it| &it["name"]), "arguments": {}}),
    };
    let Some(name) = params["name"].as_str() else {
        return Ok(json!({"is_missing": true}));
    };
    let tool = &client.known["tools"]["tools"][name];
    let only_reads = tool["annotations"]["readOnlyHint"] == true;
    let start = Instant::now();
    let result = client.result("tools/call", params.clone())?;
    let time = start.elapsed().as_millis();
    Ok(json!({"call": params, "result": result, "only_reads": only_reads, "time": time}))
}

/// Compares the time of the first request, and of the first call, with that of further ones: of calls if
/// they have no effect, or else of lists.
pub(super) fn latency(client: &mut Client) -> Result<Value, Error> {
    let called = &client.known["call"];
    let (method, params) = if called["only_reads"] == true {
        ("tools/call", called["call"].clone())
    } else {
        ("tools/list", json!({}))
    };
    let mut times = Vec::new();
    for _ in 0..TIMED {
        let start = Instant::now();
        client.result(method, params.clone())?;
        times.push(start.elapsed().as_millis());
    }
    times.sort_unstable();
    Ok(json!({
        "first": client.known["first request"]["milliseconds"], "call": called["time"], "method": method,
        "median": times[TIMED / 2], "slowest": times[TIMED - 1],
    }))
}
