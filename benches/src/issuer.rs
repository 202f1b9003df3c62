//! An identity provider: its metadata, its key, and a token.

use std::{
    error::Error,
    io::{self, Read, Write},
    net::{TcpListener, TcpStream},
    thread,
    time::{Duration, SystemTime},
};

use aws_lc_rs::{
    encoding::{AsDer, Pkcs8V1Der},
    rsa::{KeyPair, KeySize},
};
use jsonwebtoken::{Algorithm, EncodingKey, Header, jwk::Jwk};
use serde_json::{Value, json};

/// The audience of the token.
pub(crate) const AUDIENCE: &str = "https://tools.example/mcp";

/// The URL of a running issuer, and a token that it has signed with RS256.
pub(crate) struct Issuer {
    pub(crate) url: String,
    pub(crate) token: String,
}

impl Issuer {
    /// Serves until the benchmark ends.
    pub(crate) fn start() -> Result<Self, Box<dyn Error>> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let url = format!("http://{}", listener.local_addr()?);
        let pair = KeyPair::generate(KeySize::Rsa2048)?;
        let der = AsDer::<Pkcs8V1Der<'_>>::as_der(&pair)?;
        // RFC 5958: version, algorithm, and then the key in the form of RFC 8017.
        let key = EncodingKey::from_rsa_der(&der.as_ref()[26..]);
        let mut public = json!(Jwk::from_encoding_key(&key, Algorithm::RS256)?);
        public["kid"] = "key".into();
        let mut header = Header::new(Algorithm::RS256);
        header.kid = Some("key".into());
        header.typ = Some("at+jwt".into());
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        let claims = json!({
            "iss": url,
            "sub": "248289761001",
            "aud": AUDIENCE,
            "client_id": "3f2504e0-4f89-11d3-9a0c-0305e82c3301",
            "scope": "tools.call mail.read",
            "iat": now.as_secs(),
            "exp": (now + Duration::from_hours(24)).as_secs(),
            "jti": "123e4567-e89b-12d3-a456-426614174000",
        });
        let token = jsonwebtoken::encode(&header, &claims, &key)?;
        let metadata = json!({"issuer": url, "jwks_uri": format!("{url}/keys")});
        let keys = json!({"keys": [public]});
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // A function that has been stopped closes its connection.
                let _ = answer(stream, &metadata, &keys);
            }
        });
        Ok(Self { url, token })
    }
}

/// Answers one request.
fn answer(mut stream: TcpStream, metadata: &Value, keys: &Value) -> io::Result<()> {
    let mut head = [0; 4096];
    let length = stream.read(&mut head)?;
    let is_for_keys = head[..length].starts_with(b"GET /keys ");
    let body = if is_for_keys { keys } else { metadata }.to_string();
    write!(
        stream,
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         connection: close\r\n\r\n{body}",
        body.len()
    )
}
