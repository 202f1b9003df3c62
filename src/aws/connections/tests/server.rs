//! A server whose certificate is signed by an authority that no store contains.

use std::{
    env, fs,
    io::{Read, Write},
    net::{SocketAddr, TcpListener, TcpStream},
    path::{Path, PathBuf},
    sync::Arc,
    thread::{self, JoinHandle},
    time::Duration,
};

use base64::{Engine, engine::general_purpose::STANDARD};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::{
    ServerConfig, ServerConnection, Stream, crypto::aws_lc_rs::default_provider,
    pki_types::PrivatePkcs8KeyDer,
};

/// A certificate authority, and the file with its certificate.
pub(super) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    file: PathBuf,
}

impl Authority {
    pub(super) fn new(name: &str) -> Self {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let certificate = params.self_signed(&key).unwrap();
        let file = env::temp_dir().join(format!("{name}-{}.pem", std::process::id()));
        let text = STANDARD.encode(certificate.der());
        let pem = format!("-----BEGIN CERTIFICATE-----\n{text}\n-----END CERTIFICATE-----\n");
        fs::write(&file, pem).unwrap();
        Self {
            issuer: Issuer::new(params, key),
            file,
        }
    }

    pub(super) fn file(&self) -> &Path {
        &self.file
    }

    fn server_config(&self) -> ServerConfig {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["localhost".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der());
        ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key.into())
            .unwrap()
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.file);
    }
}

/// The time to wait for a client.
const LIMIT: Duration = Duration::from_secs(10);

/// The events in order: `rejected` or `accepted` for a handshake, or the body of a request.
type Log = Vec<String>;

/// A server that returns the body of each request. It serves one connection after the other.
pub(super) struct Server {
    address: SocketAddr,
    serving: JoinHandle<Log>,
}

impl Server {
    pub(super) fn start(authority: &Authority) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let config = Arc::new(authority.server_config());
        let serving = thread::spawn(move || {
            let mut log = Log::new();
            for socket in listener.incoming() {
                let socket = socket.unwrap();
                socket.set_read_timeout(Some(LIMIT)).unwrap();
                // Clients send something; `log` does not.
                if socket.peek(&mut [0]).is_ok_and(|length| length == 0) {
                    break;
                }
                serve(socket, Arc::clone(&config), &mut log);
            }
            log
        });
        Self { address, serving }
    }

    pub(super) fn url(&self) -> String {
        format!("https://localhost:{}/", self.address.port())
    }

    /// Stops the server after the connections that clients have opened, and returns its log: a client
    /// knows of a rejection before the server does.
    pub(super) fn log(self) -> Log {
        drop(TcpStream::connect(self.address).unwrap());
        self.serving.join().unwrap()
    }
}

fn serve(mut socket: TcpStream, config: Arc<ServerConfig>, log: &mut Log) {
    let mut connection = ServerConnection::new(config).unwrap();
    while connection.is_handshaking() {
        if connection.complete_io(&mut socket).is_err() {
            return log.push("rejected".to_owned());
        }
    }
    log.push("accepted".to_owned());
    let mut stream = Stream::new(&mut connection, &mut socket);
    while let Some(body) = read_request(&mut stream) {
        let length = body.len();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        stream.flush().unwrap();
        log.push(body);
    }
}

/// Reads a request and returns its body; none at the end of the connection.
fn read_request(stream: &mut impl Read) -> Option<String> {
    let mut request = Vec::new();
    let mut bytes = [0; 4096];
    loop {
        let text = String::from_utf8(request.clone()).unwrap();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let (_, length) = head.split_once("content-length: ").unwrap();
            let length = length.lines().next().unwrap().parse().unwrap();
            if body.len() >= length {
                return Some(body.to_owned());
            }
        }
        match stream.read(&mut bytes) {
            Ok(0) | Err(_) => return None,
            Ok(read) => request.extend_from_slice(&bytes[..read]),
        }
    }
}
