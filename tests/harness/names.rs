//! A name server for servers under test, a provider behind some of its names, and a sentinel at
//! addresses that must not be reached.
//!
//! Everything is on loopback, in a range that each test picks at random: `127.x.y.1` is forbidden,
//! and `127.x.y.2` belongs to the provider. A server started with [`Names::hold`] may connect to
//! the latter.

use std::{
    collections::HashMap,
    io,
    net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, UdpSocket},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::Mutex;
use tempfile::TempDir;
use tokio::{io::copy_bidirectional, net::TcpStream};

use crate::{FakeApp, host::Setup, loopback, room::Room, tls};

/// Answer to a query for a name.
#[derive(Debug, Clone)]
pub enum Record {
    /// Addresses of either family.
    To(Vec<IpAddr>),
    /// Another name (`TYPE_CNAME`).
    Alias(String),
    /// A different record for each query; the last record is then repeated.
    InTurn(Vec<Record>),
    /// No answer at all.
    Silent,
}

/// A name server with a provider behind it.
#[derive(Debug)]
pub struct Names {
    /// Address to which no connection is allowed.
    pub forbidden: Ipv4Addr,
    /// Address of the provider.
    pub application: Ipv4Addr,
    shared: Arc<Shared>,
    folder: TempDir,
    room: Room,
}

#[derive(Debug, Default)]
struct Shared {
    zone: Mutex<HashMap<String, Record>>,
    /// Queried names, one entry for each query of IPv4 addresses.
    asked: Mutex<Vec<String>>,
}

/// Counter of connections to forbidden addresses.
#[derive(Debug, Clone, Default)]
pub struct Sentinel(Arc<AtomicUsize>);

impl Names {
    /// Starts a name server, with the provider behind these names on port 443. Returns `None` if
    /// this user may not use ports below 1024, or may not replace the file that configures the
    /// system's name server.
    pub fn start(application: &FakeApp, certified: &[&str]) -> Option<Self> {
        let [x, y] = random();
        let address = |last| Ipv4Addr::new(127, x, y, last);
        let shared = Arc::<Shared>::default();
        let socket = UdpSocket::bind((address(53), 53)).ok()?;
        let door = TcpListener::bind((address(2), 443)).ok()?;
        let folder = tempfile::tempdir().expect("a temporary folder can be made");
        let file = |name: &str, text: String| {
            let path = folder.path().join(name);
            std::fs::write(&path, text).expect("a file can be written");
            path
        };
        let resolver = file("resolv.conf", format!("nameserver {}\n", address(53)));
        let order = file("nsswitch.conf", "hosts: files dns\n".to_owned());
        let script = r#"mount --bind "$0" "$(readlink -f /etc/resolv.conf)" && touch /etc/nsswitch.conf &&
            mount --bind "$1" "$(readlink -f /etc/nsswitch.conf)""#;
        let room = Room::prepare(script, &[resolver, order])?;
        tls::make_server_certificate(folder.path(), certified);
        let acceptor = tls::acceptor(folder.path(), None);
        let origin = application.origin.trim_start_matches("http://").to_owned();
        let served = shared.clone();
        std::thread::spawn(move || served.serve(&socket));
        loopback::serve_connections(door, move |stream| {
            let acceptor = acceptor.clone();
            let origin = origin.clone();
            async move {
                let mut plain = acceptor.accept(stream).await?;
                let mut application = TcpStream::connect(origin).await?;
                let copied = copy_bidirectional(&mut plain, &mut application).await;
                copied.map(drop)
            }
        });
        Some(Self {
            forbidden: address(1),
            application: address(2),
            shared,
            folder,
            room,
        })
    }

    /// Returns the same settings for a server that uses this name server, trusts the provider's
    /// certificate and may connect to its address.
    pub fn hold(&self, setup: Setup) -> Setup {
        let authority = self.folder.path().join("server.crt").display().to_string();
        let setup = setup
            .with_variable("SSL_CERT_FILE", authority)
            .with("net.allow", format!("{}/32", self.application));
        self.room.hold(setup)
    }

    /// Sets the record of a name.
    pub fn say(&self, name: &str, record: Record) {
        self.shared.zone.lock().insert(name.to_owned(), record);
    }

    /// Returns the number of queries for a name.
    pub fn asked(&self, name: &str) -> usize {
        self.shared.queries(name)
    }
}

impl Sentinel {
    /// Listens on a port of this address and counts its connections.
    ///
    /// # Errors
    /// If the port is taken or not available to this user.
    pub fn watch(&self, address: impl Into<IpAddr>, port: u16) -> io::Result<SocketAddr> {
        let listener = TcpListener::bind((address.into(), port))?;
        let place = listener.local_addr()?;
        let came = self.0.clone();
        std::thread::spawn(move || {
            while listener.accept().is_ok() {
                came.fetch_add(1, Ordering::Relaxed);
            }
        });
        Ok(place)
    }

    /// Returns the number of connections.
    pub fn seen(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

/// Returns two numbers that other tests are unlikely to have.
fn random() -> [u8; 2] {
    let mut bytes = [0; 2];
    getrandom::fill(&mut bytes).expect("the operating system gives random bytes");
    bytes.map(|byte| byte.clamp(1, 254))
}

const TYPE_A: u16 = 1;
const TYPE_CNAME: u16 = 5;
const TYPE_AAAA: u16 = 28;

impl Shared {
    fn serve(&self, socket: &UdpSocket) {
        let mut packet = [0; 512];
        while let Ok((length, from)) = socket.recv_from(&mut packet) {
            if let Some(answer) = self.answer(&packet[..length]) {
                socket.send_to(&answer, from).ok();
            }
        }
    }

    /// Builds the response to a query (RFC 1035, section 4). Its time to live is 0, so it may not
    /// be cached.
    fn answer(&self, packet: &[u8]) -> Option<Vec<u8>> {
        let mut labels = Vec::new();
        let mut at = 12;
        while let Some(length @ 1..) = packet.get(at).map(|length| usize::from(*length)) {
            labels
                .push(String::from_utf8_lossy(packet.get(at + 1..at + 1 + length)?).to_lowercase());
            at += 1 + length;
        }
        let name = labels.join(".");
        let end = at + 5;
        let kind = u16::from_be_bytes([*packet.get(at + 1)?, *packet.get(at + 2)?]);
        if kind == TYPE_A {
            self.asked.lock().push(name.clone());
        }
        if matches!(self.zone.lock().get(&name), Some(Record::Silent)) {
            return None;
        }
        let found = self.records(&name, kind);
        // The flags mark an authoritative response with recursion available. The code for an
        // unknown name is NXDOMAIN.
        let code = if found.is_some() { 0 } else { 3 };
        let found = found.unwrap_or_default();
        let mut answer = packet.get(..2)?.to_vec();
        let records = u8::try_from(found.len()).ok()?;
        answer.extend([0x85, 0x80 | code, 0, 1, 0, records, 0, 0, 0, 0]);
        answer.extend(packet.get(12..end)?);
        for (owner, kind, data) in found {
            answer.extend(written(&owner));
            answer.extend(kind.to_be_bytes());
            answer.extend([0, 1, 0, 0, 0, 0]);
            answer.extend(u16::try_from(data.len()).ok()?.to_be_bytes());
            answer.extend(data);
        }
        Some(answer)
    }

    /// Returns the number of queries for a name.
    fn queries(&self, name: &str) -> usize {
        let asked = self.asked.lock();
        asked.iter().filter(|asked| *asked == name).count()
    }

    /// Returns the records of a name, following aliases, or `None` if the name is unknown.
    fn records(&self, name: &str, kind: u16) -> Option<Vec<(String, u16, Vec<u8>)>> {
        let turn = self.queries(name);
        let mut record = self.zone.lock().get(name)?.clone();
        if let Record::InTurn(records) = record {
            record = records
                .get(turn.saturating_sub(1))
                .or(records.last())?
                .clone();
        }
        match record {
            Record::To(addresses) => {
                let data = addresses
                    .into_iter()
                    .filter_map(|address| match (address, kind) {
                        (IpAddr::V4(address), TYPE_A) => Some(address.octets().to_vec()),
                        (IpAddr::V6(address), TYPE_AAAA) => Some(address.octets().to_vec()),
                        _ => None,
                    });
                Some(data.map(|data| (name.to_owned(), kind, data)).collect())
            }
            Record::Alias(other) => {
                let mut all = vec![(name.to_owned(), TYPE_CNAME, written(&other))];
                all.extend(self.records(&other, kind)?);
                Some(all)
            }
            Record::InTurn(_) | Record::Silent => None,
        }
    }
}

/// Encodes a name in wire format.
fn written(name: &str) -> Vec<u8> {
    let labels = name.split('.');
    let labels = labels.flat_map(|label| [&[label.len() as u8][..], label.as_bytes()].concat());
    labels.chain([0]).collect()
}

/// Returns spellings of a private address, each of which some parser accepts.
pub fn spellings(address: Ipv4Addr) -> Vec<String> {
    let [a, b, c, d] = address.octets();
    let bits = u32::from(address);
    let tail = bits & 0x00ff_ffff;
    let pair = bits & 0xffff;
    let [high, low] = [bits >> 16, pair];
    let teredo = Ipv6Addr::from((0x2001_0000_u128 << 96) | u128::from(!bits));
    vec![
        address.to_string(),
        format!("{address}."),
        bits.to_string(),
        format!("{bits:#x}"),
        format!("0{bits:o}"),
        format!("{a}.{tail}"),
        format!("{a:#x}.{tail}"),
        format!("{a:#x}.{b:#x}.{c:#x}.{d:#x}"),
        format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
        format!("{a}.{b}.{pair}"),
        format!("{a}。{b}。{c}。{d}"),
        address.to_string().replace('1', "１"),
        format!("%3{}{}", a / 100, format!("{address}").split_at(1).1),
        format!("[::ffff:{address}]"),
        format!("[::ffff:{high:x}:{low:x}]"),
        format!("[::{address}]"),
        format!("[64:ff9b::{high:x}:{low:x}]"),
        format!("[64:ff9b:1::{high:x}:{low:x}]"),
        format!("[2002:{high:x}:{low:x}::1]"),
        format!("[{teredo}]"),
        "[::1]".to_owned(),
        "[::]".to_owned(),
        "[fe80::1%25lo]".to_owned(),
        "[fe80::1]".to_owned(),
        "0".to_owned(),
        "localhost".to_owned(),
        "localhost.".to_owned(),
        "LOCALHOST".to_owned(),
        "ⓛocalhost".to_owned(),
    ]
}
