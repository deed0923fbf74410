//! Reads the metrics page of a server on this machine: one request, limited in size and to one second.

use super::runs::process::descendants;
use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Instant;

/// Timeout of a request, seconds.
const TIMEOUT: u64 = 1;
/// Maximum size of a page, bytes: vLLM's page has about 200 kB.
const MOST: usize = 4 << 20;
/// Maximum size of the headers, bytes.
const HEADERS: usize = 16 << 10;

/// Ports that servers listen on by default: vLLM, `SGLang`.
const USUAL_PORTS: [u16; 2] = [8000, 30000];

/// Fetches a page as text.
///
/// # Errors
///
/// Fails with one sentence if the server does not answer in time, does not answer with 200, or sends too much.
pub fn fetch_page(url: &str) -> Result<String, String> {
    let begun = Instant::now();
    let request = minreq::get(url)
        .with_timeout(TIMEOUT)
        .with_max_headers_size(HEADERS)
        .with_max_status_line_length(1 << 10)
        .with_max_redirects(0)
        .with_header("Accept", "text/plain");
    let response = request.send_lazy().map_err(|e| e.to_string())?;
    if response.status_code != 200 {
        return Err(format!("{url} answers {} {}", response.status_code, response.reason_phrase));
    }
    let expected = response.headers.get("content-length").and_then(|n| n.parse::<usize>().ok());
    let mut bytes = Vec::new();
    for byte in response {
        let (byte, _) = byte.map_err(|e| e.to_string())?;
        bytes.push(byte);
        // Do not wait for a server that only trickles bytes.
        if bytes.len() > MOST || bytes.len() % 4096 == 0 && begun.elapsed().as_secs() > TIMEOUT {
            return Err(format!("{url} sends too much, or too slowly"));
        }
    }
    if expected.is_some_and(|n| n != bytes.len()) {
        return Err(format!("{url} sends a part of its page"));
    }
    String::from_utf8(bytes).map_err(|_| format!("{url} does not send text"))
}

/// Returns the command line of a process; empty if it cannot be read.
fn command_words(pid: u32) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    bytes.split(|b| *b == 0).map(|w| String::from_utf8_lossy(w).into_owned()).collect()
}

/// Returns the ports given as `--port N` or `--port=N`.
fn ports_in(words: &[String]) -> Vec<u16> {
    let mut out = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let value = match word.strip_prefix("--port") {
            Some("") => words.get(at + 1).map(String::as_str),
            Some(rest) => rest.strip_prefix('='),
            None => None,
        };
        out.extend(value.and_then(|v| v.parse::<u16>().ok()));
    }
    out
}

/// Returns the inodes of a process's open sockets.
fn socket_inodes(pid: u32) -> Vec<u64> {
    let inode = |link: &Path| link.to_str()?.strip_prefix("socket:[")?.strip_suffix(']')?.parse().ok();
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    files.filter_map(|f| std::fs::read_link(f.path()).ok()).filter_map(|link| inode(&link)).collect()
}

/// A listening socket: the address at which this machine reaches it, and its inode.
type Listening = (SocketAddr, u64);

/// Parses `/proc/PID/net/tcp` and `tcp6`: addresses are 32-bit words in host byte order.
fn parse_listening(table: &str) -> Vec<Listening> {
    let row = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let (address, port) = fields.get(1)?.rsplit_once(':')?;
        // 0A is TCP_LISTEN.
        (*fields.get(3)? == "0A").then_some(())?;
        let words: Option<Vec<[u8; 4]>> =
            address.as_bytes().chunks(8).map(|w| Some(u32::from_str_radix(str::from_utf8(w).ok()?, 16).ok()?.to_ne_bytes())).collect();
        let bytes = words?.concat();
        let address: IpAddr = match (<[u8; 4]>::try_from(&bytes[..]), <[u8; 16]>::try_from(&bytes[..])) {
            (Ok(four), _) => Ipv4Addr::from(four).into(),
            (_, Ok(sixteen)) => Ipv6Addr::from(sixteen).to_canonical(),
            _ => return None,
        };
        // A socket bound to all addresses also accepts IPv4, unless the program disables that.
        let reached = if address.is_unspecified() { Ipv4Addr::LOCALHOST.into() } else { address };
        Some((SocketAddr::new(reached, u16::from_str_radix(port, 16).ok()?), fields.get(9)?.parse().ok()?))
    };
    table.lines().skip(1).filter_map(row).collect()
}

/// Returns the URLs of the metrics pages that a program or its children may serve: on the ports in its command line and
/// on the servers' default ports, if one of its processes listens on them.
pub fn find_metrics_urls(root: u32) -> Vec<String> {
    let children = root.try_into().map(descendants).unwrap_or_default();
    let tree: Vec<u32> = std::iter::once(root).chain(children.iter().map(|p| p.pid.cast_unsigned())).collect();
    let named = tree.iter().flat_map(|pid| ports_in(&command_words(*pid)));
    let addresses = listening_addresses(root, &tree, &named.chain(USUAL_PORTS).collect::<Vec<_>>());
    addresses.into_iter().map(|address| format!("http://{address}/metrics")).collect()
}

/// Returns the addresses with one of the wanted ports that a process of the tree listens on, in the order of the ports.
fn listening_addresses(root: u32, tree: &[u32], wanted: &[u16]) -> Vec<SocketAddr> {
    let tables = ["tcp", "tcp6"].map(|t| std::fs::read_to_string(format!("/proc/{root}/net/{t}")).unwrap_or_default());
    let rank = |l: &Listening| wanted.iter().position(|port| *port == l.0.port());
    let mut listening: Vec<Listening> = tables.iter().flat_map(|t| parse_listening(t)).filter(|l| rank(l).is_some()).collect();
    if listening.is_empty() {
        return Vec::new();
    }
    let own: HashSet<u64> = tree.iter().flat_map(|pid| socket_inodes(*pid)).collect();
    listening.retain(|l| own.contains(&l.1));
    listening.sort_by_key(rank);
    let mut addresses: Vec<SocketAddr> = listening.into_iter().map(|l| l.0).collect();
    addresses.dedup();
    addresses
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// Serves one connection with these bytes, and then keeps it open.
    fn serve(answer: &'static [u8]) -> (String, u16) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(answer);
            // Blocks until the client gives up.
            let _ = stream.read(&mut [0; 1]);
        });
        (format!("http://127.0.0.1:{port}/metrics"), port)
    }

    #[test]
    fn servers_that_hang_or_lie_cost_a_second() {
        let (url, _) = serve(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nvllm:");
        assert_eq!(fetch_page(&url).as_deref(), Ok("vllm:"));
        for answer in [
            &b""[..],
            b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\nvllm:",
            b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\nvllm:",
            b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n\xff\xfe",
            b"SSH-2.0-OpenSSH_9.2\r\n",
        ] {
            let (url, _) = serve(answer);
            assert!(fetch_page(&url).is_err(), "{answer:?}");
        }
        assert!(fetch_page("http://127.0.0.1:1/metrics").is_err());
        assert!(fetch_page("not a url").is_err());
    }

    #[test]
    fn ports_are_those_of_the_program() {
        let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(ports_in(&words("vllm serve m --port 8123 --portal 9 --port=77 --port x")), [8123, 77]);
        let own = std::process::id();
        for bound in ["127.0.0.1:0", "0.0.0.0:0", "127.3.2.1:0", "[::1]:0"] {
            // The machine may not have IPv6.
            let Ok(listener) = TcpListener::bind(bound) else { continue };
            let local = listener.local_addr().unwrap();
            let reached = if local.ip().is_unspecified() { SocketAddr::new(Ipv4Addr::LOCALHOST.into(), local.port()) } else { local };
            assert_eq!(listening_addresses(own, &[own], &[1, local.port(), local.port()]), [reached], "{bound}");
            // The port is open, but the process that opened it is outside the tree.
            assert!(listening_addresses(own, &[1], &[local.port()]).is_empty());
        }
    }
}
