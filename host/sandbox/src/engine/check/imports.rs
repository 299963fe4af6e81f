//! Interfaces that a toolkit may import, and advice about all others.

const CONTRACT_PREFIX: &str = "toolhost:toolkit/";
/// Interfaces of the contract that a toolkit may import, at any 1.0 version.
const CONTRACT_INTERFACES: [&str; 8] = [
    "types", "http", "log", "clock", "random", "state", "blob", "webhook",
];
/// WASI interfaces that are linked for guests in other languages, with every access denied.
const WASI_INTERFACES: [&str; 15] = [
    "wasi:cli/environment",
    "wasi:cli/exit",
    "wasi:cli/stdin",
    "wasi:cli/stdout",
    "wasi:cli/stderr",
    "wasi:clocks/monotonic-clock",
    "wasi:clocks/wall-clock",
    "wasi:random/random",
    "wasi:random/insecure",
    "wasi:random/insecure-seed",
    "wasi:io/error",
    "wasi:io/poll",
    "wasi:io/streams",
    "wasi:filesystem/types",
    "wasi:filesystem/preopens",
];
/// Newest linked release of WASI 0.2.
const WASI_PATCH: u32 = 12;

/// Returns true if a toolkit may import this name, by exact name and version. Allowed are
/// interfaces of the contract, and of WASI for guests in other languages.
#[must_use]
pub fn is_import_available(name: &str) -> bool {
    let Some((interface, version)) = name.rsplit_once('@') else {
        return false;
    };
    match interface.strip_prefix(CONTRACT_PREFIX) {
        Some(ours) => CONTRACT_INTERFACES.contains(&ours) && patch(version, "1.0.").is_some(),
        None => {
            WASI_INTERFACES.contains(&interface)
                && patch(version, "0.2.").is_some_and(|patch| patch <= WASI_PATCH)
        }
    }
}

/// Returns advice about an unavailable import.
#[must_use]
pub fn import_advice(name: &str) -> &'static str {
    let interface = name.split('@').next().unwrap_or_default();
    let package = interface.split('/').next().unwrap_or_default();
    match package {
        _ if interface.starts_with(CONTRACT_PREFIX) => {
            "this host supports version 1.0 of the contract; build the toolkit with this release of `toolkit`"
        }
        _ if WASI_INTERFACES.contains(&interface) => {
            "this host supports releases 0.2.0 to 0.2.12 of the interface; build the toolkit for one of them"
        }
        "wasi:http" => {
            "send requests with the SDK's `http` or `Client`, which use `toolhost:toolkit/http`"
        }
        "wasi:sockets" => {
            "sockets are not available: send HTTP requests with the SDK's `http` or `Client`, and remove dependencies that need sockets"
        }
        "wasi:filesystem" => "a file system is not available: use the SDK's `File`",
        "wasi:keyvalue" | "wasi:blobstore" => {
            "use the SDK's `state` for data of a trigger, and its `File` for files"
        }
        _ => "remove the dependency that needs it",
    }
}

/// Returns the last number of a version that starts with `prefix`.
fn patch(version: &str, prefix: &str) -> Option<u32> {
    let patch = version.strip_prefix(prefix)?;
    let number = patch.bytes().all(|byte| byte.is_ascii_digit())
        && (patch.len() == 1 || !patch.starts_with('0'));
    patch.parse().ok().filter(|_| number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn imports_are_judged_by_name_and_version() {
        for name in [
            "toolhost:toolkit/http@1.0.0",
            "toolhost:toolkit/types@1.0.7",
            "wasi:cli/exit@0.2.0",
            "wasi:io/poll@0.2.12",
        ] {
            assert!(is_import_available(name), "{name}");
        }
        for name in [
            "toolhost:toolkit/http",
            "toolhost:toolkit/http@1.1.0",
            "toolhost:toolkit/http@1.0.0-rc",
            "toolhost:toolkit/http@1.0.",
            "toolhost:toolkit/http@1.0.01",
            "toolhost:toolkit/entry@1.0.0",
            "toolhost:toolkit/secrets@1.0.0",
            "wasi:sockets/tcp@0.2.0",
            "wasi:http/outgoing-handler@0.2.0",
            "wasi:cli/terminal-input@0.2.0",
            "wasi:cli/exit@0.2.13",
            "wasi:cli/exit@0.3.0",
            "wasi:cli/exit@0.2.0+x",
            "",
            "@",
            "http",
            "toolhost:toolkit/../http@1.0.0",
        ] {
            assert!(!is_import_available(name), "{name}");
        }
    }

    #[test]
    fn refused_imports_come_with_advice() {
        for (name, word) in [
            ("wasi:http/outgoing-handler@0.2.0", "toolhost:toolkit/http"),
            ("wasi:sockets/tcp@0.2.0", "sockets are not available"),
            ("wasi:cli/exit@0.3.0", "0.2.0 to 0.2.12"),
            ("toolhost:toolkit/http@2.0.0", "1.0"),
            ("evil:api/thing", "remove the dependency"),
        ] {
            assert!(
                import_advice(name).contains(word),
                "{name}: {}",
                import_advice(name)
            );
        }
    }
}
