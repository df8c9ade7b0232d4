//! `HOST:PORT` as text.

use std::net::Ipv6Addr;

/// What is wrong with a text that should be `HOST:PORT`; `None` if nothing is.
///
/// Whether the host exists is found out when it is dialled.
pub(crate) fn wrong(text: &str) -> Option<String> {
    let Some((host, port)) = text.rsplit_once(':').filter(|(_, port)| !port.ends_with(']')) else {
        return Some(format!("{text:?} has no port: write HOST:PORT"));
    };
    if let Some(inside) = host.strip_prefix('[') {
        let address = inside.strip_suffix(']').map(str::parse::<Ipv6Addr>);
        if !matches!(address, Some(Ok(_))) {
            return Some(format!("{host:?} is not an IPv6 address in brackets: write [ADDRESS]:PORT"));
        }
    } else if host.contains(':') && !host.contains('/') {
        return Some(format!("{text:?} is ambiguous: write an IPv6 address in brackets, [ADDRESS]:PORT"));
    } else if !is_host(host) {
        return Some(format!("{host:?} is not a host: use letters, digits, `-`, `_` and `.`"));
    }
    // Not by `u16` alone, which takes `+80`.
    let digits = !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match port.parse::<u16>() {
        Ok(number) if digits && number > 0 => None,
        _ => Some(format!("{port:?} is not a port: write a number from 1 to 65535")),
    }
}

fn is_host(host: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    !host.is_empty() && host.chars().all(is_part)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_or_addresses() {
        for good in
            ["a:1", "app-0.app.ns.svc:7000", "10.0.0.1:65535", "[::1]:7000", "[fd00::1:2]:1", "h_1.:9"]
        {
            assert_eq!(wrong(good), None, "{good}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_with_what_to_write() {
        for (bad, part) in [
            ("", "no port"),
            ("a", "no port"),
            ("[::1]", "no port"),
            ("::1:7000", "in brackets"),
            ("fd00::1", "in brackets"),
            ("[::g]:1", "not an IPv6 address"),
            ("[10.0.0.1]:1", "not an IPv6 address"),
            ("http://a:1", "not a host"),
            (":1", "not a host"),
            ("a b:1", "not a host"),
            ("a/b:1", "not a host"),
            ("a:", "from 1 to 65535"),
            ("a:0", "from 1 to 65535"),
            ("a:65536", "from 1 to 65535"),
            ("a:+80", "from 1 to 65535"),
            ("a:http", "from 1 to 65535"),
        ] {
            let sentence = wrong(bad).unwrap_or_else(|| panic!("{bad} is taken"));
            assert!(sentence.contains(part), "{bad}: {sentence}");
        }
    }
}
