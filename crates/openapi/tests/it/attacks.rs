//! Inputs, responses and documents that try to make a request leave the API.

use lambda_tools_core::Failure;
use lambda_tools_openapi::{ApiTools, OpenApi, OpenApiOptions, Reduction};
use serde_json::{Value, json};
use test_support::answer;

use crate::recorder::{Recorded, Recorder, call, context, json_answer, toolkit};

fn document(server: &str) -> Value {
    let document = include_str!("../documents/files.json");
    let mut document: Value = serde_json::from_str(document).unwrap();
    document["servers"][0]["url"] = server.into();
    document
}

/// Returns the API of a document, all of whose operations are chosen.
fn api_of(document: Value) -> OpenApi {
    OpenApi::new(document, OpenApiOptions::all()).unwrap()
}

fn reduced(document: Value) -> Reduction {
    api_of(document).reduce().unwrap()
}

fn tools(server: &str) -> ApiTools {
    reduced(document(server)).tools
}

/// Values that lead elsewhere if a program puts them into a URL as they are.
const VALUES: &str = r##"[
    "../../admin", "..%2f..%2fadmin", "%2e%2e%2fadmin", "%252e%252e", "..;/admin", "..\\..\\admin",
    "\\\\evil.example\\share", "//evil.example", "/\\evil.example", "https://evil.example/",
    "http://169.254.169.254/latest/meta-data/", "@evil.example", ":80@evil.example/", "a@evil.example:443/",
    "#@evil.example/", "?host=evil.example", "a\u2215b", "\uff0e\uff0e\uff0fadmin", "a\r\nHost: evil.example",
    "a\nX-Evil: 1", "x; Domain=evil.example", "..", ".", "../..", "%2e%2e", ".%2e", "a/b", "a%2Fb", "a\rb",
    "a\u0000b", "a b", "\tadmin", " ", "", "x, y", "{file}", "{any}", "%", "%zz", "é/ü"
]"##;

/// Returns true for a request of the operation, and not of another resource.
fn stays(request: &Recorded, host: &str) -> bool {
    let path = request.target.split('?').next().unwrap();
    let segments: Vec<_> = path.split('/').collect();
    let is_ours = match &*segments {
        ["", "base", "v1", "files", file, format] => {
            !file.is_empty() && format.starts_with("text.")
        }
        ["", "base", any] => !any.is_empty(),
        _ => false,
    };
    let is_dotted = segments.iter().any(|it| matches!(*it, "." | ".."));
    is_ours
        && !is_dotted
        && request.header("host") == Some(host)
        && request.header("x-evil").is_none()
}

#[tokio::test]
async fn no_input_leaves_the_api() {
    let recorder = Recorder::start().await;
    let host = recorder.url.trim_start_matches("http://").to_owned();
    let tools = tools("https://files.example");
    let cx = context(&tools);
    let base = format!("{}/base", recorder.url);
    let toolkit = toolkit(tools, base);
    let (read, drop) = (&toolkit.entries()[0], &toolkit.entries()[1]);
    let mut sent = 0;
    let values: Vec<String> = serde_json::from_str(VALUES).unwrap();
    for value in values {
        let inputs = [
            json!({"file": value, "format": "md"}),
            json!({"file": "a", "format": value}),
            json!({"file": "a", "format": "md", "q": value}),
            json!({"file": "a", "format": "md", "x-trace": value}),
            json!({"file": "a", "format": "md", "theme": value}),
        ];
        for input in inputs {
            let result = call(read, input.clone(), &cx).await;
            let requests = recorder.take();
            let expected = usize::from(result.is_ok());
            assert_eq!(requests.len(), expected, "{input}: {result:?}");
            let stay = requests.iter().all(|it| stays(it, &host));
            assert!(stay, "{input}: {requests:?}");
            sent += requests.len();
        }
        let _ = call(drop, json!({"any": value}), &cx).await;
        let requests = recorder.take();
        let stay = requests.iter().all(|it| stays(it, &host));
        assert!(stay, "{value:?}: {requests:?}");
    }
    // Most values are harmless where they are encoded.
    assert!(sent > 100, "{sent}");
}

/// Starts an API that redirects everything to a place, except for what is at `/new`.
async fn redirecting(status: u16, place: String) -> Recorder {
    Recorder::answering(move |request| match &*request.target {
        "/new" => json_answer(200, "7"),
        _ => answer(status, &[("location", &*place)], "7"),
    })
    .await
}

/// Reads a file of an API.
async fn read(api: &Recorder) -> Result<Value, Failure> {
    let tools = tools("https://files.example");
    let cx = context(&tools);
    let toolkit = toolkit(tools, &api.url);
    let input = json!({"file": "a", "format": "md"});
    call(&toolkit.entries()[0], input, &cx).await
}

#[tokio::test]
async fn redirects_lead_nowhere_else() {
    let trap = Recorder::start().await;
    let places = [
        format!("{}/a", trap.url),
        trap.url.replace("127.0.0.1", "localhost"),
        format!("//{}/a", trap.url.trim_start_matches("http://")),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "https://evil.example/".to_owned(),
        "file:///etc/passwd".to_owned(),
    ];
    for place in places {
        for status in [301, 302, 303, 307, 308] {
            let api = redirecting(status, place.clone()).await;
            let failure = read(&api).await.unwrap_err();
            assert!(failure.message().contains("redirects"), "{failure:?}");
            assert_eq!(api.take().len(), 1);
            assert!(trap.take().is_empty());
        }
    }
    let api = redirecting(307, "/new".to_owned()).await;
    assert_eq!(read(&api).await.unwrap(), json!(7));
}

/// Addresses of this machine, of its network, and of services of clouds, in many spellings.
const OWN_NETWORK: &str = "\
    https://169.254.169.254 https://169.254.169.254:443/latest https://2852039166 \
    https://0xa9fea9fe https://0xa9.0xfe.0xa9.0xfe https://0251.0376.0251.0376 \
    https://169.254.43518 https://[::ffff:169.254.169.254] https://[::ffff:a9fe:a9fe] \
    https://[64:ff9b::a9fe:a9fe] https://[fd00:ec2::254] https://169.254.170.2 https://127.0.0.1 \
    https://127.1 https://0 https://[::1] https://[::] https://10.0.0.1 https://192.168.0.1 \
    https://172.16.0.1 https://100.64.0.1 https://localhost https://LOCALHOST \
    https://api.localhost https://１６９.２５４.１６９.２５４ http://files.example";

#[test]
fn no_document_leads_to_an_address_of_the_own_network() {
    for server in OWN_NETWORK.split(' ') {
        let error = tools(server).tools().err().map(|it| it.to_string());
        let error = error.unwrap_or_default();
        assert!(error.contains("allow_private"), "{server}");
    }
    let servers = "https://user@files.example https://files.example?a=b \
        https://files.example#a ftp://files.example";
    for server in servers.split(' ') {
        assert!(api_of(document(server)).reduce().is_err(), "{server}");
    }
    assert!(tools("https://files.example").tools().is_ok());
    assert!(tools("https://1.1.1.1").tools().is_ok());
}

/// Returns a document whose operation needs a scheme.
fn secured(title: &str, name: &str, scheme: &Value) -> Value {
    let mut document = document("https://files.example");
    document["info"]["title"] = title.into();
    document["components"] = json!({"securitySchemes": {name: scheme}});
    document["security"] = json!([{name: []}]);
    document
}

/// Returns true if all operations of a document are left out, because of their scheme.
fn is_left_out(api: &OpenApi) -> bool {
    if let Ok(reduction) = api.reduce() {
        assert!(reduction.report.left_out.is_empty());
        return false;
    }
    let mut api = api.clone();
    api.options.bearer = Some("FILES_TOKEN".to_owned());
    assert!(api.reduce().is_ok());
    true
}

/// URLs without TLS, of another scheme, or with more than a URL has.
const UNSAFE_URLS: &str = r#"[
    "https://a.example/x\", { std::fs::write(\"/tmp/P\", \"\").ok(); \"", "javascript:alert(1)", "javascript:x",
    "file:///etc/passwd", "data:text/html,x", "http://169.254.169.254/latest/meta-data", "http://login.example",
    "http://10.0.0.1/token", "http://127.0.0.1.example/token", "https://ada:pass@login.example",
    "https://login.example/#x", "https://login.example/a\nb", "https://login.example/{{ x }}", "https://", ""
]"#;

#[test]
fn urls_of_authorization_servers_use_tls() {
    let good = "https://login.example/oauth?p=1";
    let code = |authorize: &str, token: &str| {
        let flow = json!({"authorizationUrl": authorize, "tokenUrl": token});
        json!({"type": "oauth2", "flows": {"authorizationCode": flow}})
    };
    let schemes = |url: &str| {
        let client = json!({"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": url}}});
        let schemes = [code(url, good), code(good, url), client];
        schemes.map(|it| api_of(secured("Files API", "login", &it)))
    };
    let urls: Vec<String> = serde_json::from_str(UNSAFE_URLS).unwrap();
    for url in urls {
        assert!(schemes(&url).iter().all(is_left_out), "{url}");
    }
    let local = "http://127.0.0.1:8080/token http://localhost/t http://[::1]/t";
    for url in local.split(' ').chain([good]) {
        assert!(!schemes(url).iter().any(is_left_out), "{url}");
    }
    // Without a permission, no request of the server is sent to this network.
    let own = "https://169.254.169.254/token https://10.0.0.1 http://localhost/t";
    for url in own.split(' ') {
        // The first page is opened by the user's browser.
        for api in schemes(url).into_iter().skip(1) {
            let tools = api.reduce().unwrap().tools;
            let error = tools.tools().err().unwrap().to_string();
            assert!(error.contains("allow_private"), "{url}: {error}");
        }
    }
}

/// Titles and names of schemes, whose secrets are those of the server or of its platform.
const TAKEN: &str = "Tools API/ApiKey, Tools/oauthKey, TOOLS/sign-in-client-secret, \
    AWS/secret access key, Aws API/SessionToken, Lambda/TaskRoot, LD/Preload, LD/LIBRARY_PATH, \
    Rust/log, SSL/cert file, HTTPS/proxy, No/Proxy, LC/ALL, OTel/ExporterOtlpHeaders, \
    OAuth/ClientSecret, API/URL, Record/events, Malloc/arena";

#[test]
fn no_document_chooses_a_secret_of_the_server_or_of_its_platform() {
    let pairs = |rows: &'static str| rows.split(", ").map(|it| it.split_once('/').unwrap());
    let api = |title: &str, name: &str, scheme: &Value| api_of(secured(title, name, scheme));
    let naming = |mut api: OpenApi, name: &str, secret: &str| {
        let pair = (name.to_owned(), secret.to_owned());
        api.options.secrets.extend([pair]);
        api
    };
    let key = json!({"type": "apiKey", "in": "header", "name": "X-Key"});
    let client = json!({"type": "oauth2", "flows": {"clientCredentials": {"tokenUrl": "https://login.example"}}});
    for (title, name) in pairs(TAKEN) {
        let api = api(title, name, &key);
        assert!(is_left_out(&api), "{title} {name}");
        // An id that the owner names is accepted.
        let named = naming(api, name, "FILES_KEY");
        assert!(!is_left_out(&named), "{title} {name}");
    }
    assert!(is_left_out(&api("AWS", "login", &client)));
    let named = naming(api("Files", "key", &key), "key", "AWS_SECRET_ACCESS_KEY");
    assert!(!is_left_out(&named));
    for (title, name) in pairs("Toolshed/key, Awsome/key, Pathfinder/home") {
        assert!(!is_left_out(&api(title, name, &key)), "{title} {name}");
    }
    // A token of the user is no secret of the server.
    let user = json!({"type": "oauth2", "flows": {"authorizationCode": {
        "authorizationUrl": "https://login.example/a", "tokenUrl": "https://login.example/t"}}});
    assert!(!is_left_out(&api("Tools API", "login", &user)));
}

/// RFC 9110, 7.6.1.
#[test]
fn no_document_sets_headers_of_the_connection() {
    let own = "Connection keep-alive TE Trailer Transfer-Encoding UPGRADE Proxy-Authorization \
               Proxy-Connection Host Content-Length";
    for name in own.split(' ') {
        let mut document = document("https://files.example");
        let parameters =
            &mut document["paths"]["/v1/files/{file}/text.{format}"]["get"]["parameters"];
        let added =
            json!({"name": name, "in": "header", "required": true, "schema": {"type": "string"}});
        parameters.as_array_mut().unwrap().push(added);
        let reduction = reduced(document);
        let tools = reduction.tools.to_json();
        assert!(!tools.contains(&format!("\"{name}\"")), "{tools}");
        let notes = &reduction.report.notes;
        let note = notes.iter().find(|it| it.operation.starts_with("GET"));
        assert!(
            note.is_some_and(|it| it.text.contains("headers of the connection")),
            "{name}: {notes:?}"
        );
        let key = json!({"type": "apiKey", "in": "header", "name": name});
        let api = api_of(secured("Files", "key", &key));
        assert!(is_left_out(&api), "{name}");
    }
    // Others of similar names are parameters, and none of these names is refused elsewhere.
    let mut document = document("https://files.example");
    document["paths"]["/v1/files/{file}/text.{format}"]["get"]["parameters"] = json!([
        {"name": "file", "in": "path", "schema": {"type": "string"}},
        {"name": "format", "in": "path", "schema": {"type": "string"}},
        {"name": "X-Connection", "in": "header", "schema": {"type": "string"}},
        {"name": "Te-Quality", "in": "header", "schema": {"type": "string"}},
        {"name": "host", "in": "query", "schema": {"type": "string"}},
    ]);
    let reduction = reduced(document);
    let tools = reduction.tools.to_json();
    for name in ["X-Connection", "Te-Quality", "host"] {
        assert!(tools.contains(&format!("\"{name}\"")), "{tools}");
    }
    assert!(reduction.report.notes.is_empty());
}

/// Returns a schema with these texts.
type SchemaOf<'a> = &'a dyn Fn(&[String]) -> Value;

/// Returns the time of converting a schema with lists of this length, the shorter one of two.
fn time_of(length: usize, schema: impl Fn(&[String]) -> Value) -> std::time::Duration {
    let texts: Vec<_> = (0..length).map(|it| format!("value {it}")).collect();
    let mut document = document("https://files.example");
    document["paths"]["/{any}"]["delete"]["parameters"][0]["schema"] = schema(&texts);
    let api = api_of(document);
    let times = [(); 2].map(|()| {
        let started = std::time::Instant::now();
        assert!(api.reduce().is_ok());
        started.elapsed()
    });
    times[0].min(times[1])
}

#[test]
fn long_lists_in_schemas_take_time_in_proportion() {
    let values = |texts: &[String]| json!({"enum": texts});
    let branches = |texts: &[String]| {
        let branches = texts.iter().map(|it| json!({"title": it}));
        json!({"oneOf": branches.collect::<Vec<_>>()})
    };
    let required = |texts: &[String]| {
        let properties = texts.iter().map(|it| (it.clone(), json!({})));
        let properties: serde_json::Map<_, _> = properties.collect();
        let part = json!({"properties": properties, "required": texts});
        json!({"allOf": [part, part]})
    };
    let schemas: [(&str, SchemaOf); 3] = [
        ("enum", &values),
        ("oneOf", &branches),
        ("required", &required),
    ];
    for (name, schema) in schemas {
        let (short, long) = (time_of(2_000, schema), time_of(16_000, schema));
        // Eight times as many, not 64 times.
        assert!(long < short * 24, "{name}: {short:?}, {long:?}");
    }
}
