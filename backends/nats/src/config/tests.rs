//! URLs that are read, and those that are refused.

use super::*;

#[test]
fn servers_users_and_options_are_read() {
    let config =
        Config::from_url("nats://a,b:4223,[::1]:1?bucket=x_1&creds=/run/a%20b&create&replicas=3").unwrap();
    assert_eq!(config.servers, ["nats://a:4222", "nats://b:4223", "nats://[::1]:1"]);
    assert_eq!((config.bucket(), config.create, config.replicas, config.tls), ("x_1", true, 3, false));
    assert!(
        matches!(config.identity, Authentication::Credentials(path) if path.to_str() == Some("/run/a b"))
    );
    let config = Config::from_url("tls://u:p%40ss@[::1]/?ca=ca.pem&cert=c&key=k&ping=200ms").unwrap();
    assert_eq!((config.servers[0].as_str(), config.tls), ("nats://[::1]:4222", true));
    assert_eq!(config.ping_interval, Duration::from_millis(200));
    assert!(
        matches!(config.identity, Authentication::User(user, password) if user == "u" && password == "p@ss")
    );
    let config = Config::from_url("nats://s3cret@a").unwrap();
    assert!(!format!("{config:?}").contains("s3cret"));
    assert!(matches!(config.identity, Authentication::Token(token) if token == "s3cret"));
}

#[test]
fn notes_have_a_bucket_that_is_nobody_s_but_ours() {
    for (query, notes) in [
        ("", None),
        ("bucket=b", None),
        ("profile=cluster", Some("bellwether")),
        ("profile=cluster&notes=past", Some("past")),
        ("profile=leader&bucket=b", Some("bellwether")),
        ("profile=leader&bucket=b&notes=past", Some("past")),
        ("profile=leader&bucket=bellwether", Some("bellwether-notes")),
    ] {
        let config = Config::from_url(&format!("nats://a?{query}")).unwrap();
        assert_eq!(config.notes(), notes, "{query}");
    }
}

#[test]
fn what_cannot_be_read_is_refused_with_what_to_write_and_without_the_password() {
    for (url, part) in [
        ("file:x", "write nats://HOST:PORT"),
        ("nats://u:s3cret@a:port", "HOST:PORT"),
        ("nats://u:s3cret@", "HOST:PORT"),
        ("nats://u:s3cret%@a", "%25"),
        ("nats://a?bucket=a.b", "letters, digits"),
        ("nats://a?profile=raft", "there are native"),
        ("nats://a?profile=leader", "bucket=NAME"),
        ("nats://a?profile=leader&bucket=", "letters, digits"),
        ("nats://a?profile=leader&bucket=b&key=k", "group=KEY"),
        ("nats://a?profile=leader&bucket=b&group=a..b", "single dots"),
        ("nats://a?group=b", "profile leader"),
        ("nats://a?profile=cluster&group=b", "profile leader"),
        ("nats://a?profile=cluster&bucket=past", "notes=NAME"),
        ("nats://a?profile=cluster&notes=cluster-a", "another name"),
        ("nats://a?profile=leader&bucket=b&notes=b", "another bucket"),
        ("nats://a?profile=cluster&notes=a.b", "letters, digits"),
        ("nats://a?notes=past", "leave it out"),
        ("nats://a?cert=x", "belong together"),
        ("nats://a?replicas=9", "from 1 to 5"),
        ("nats://a?colour=blue", "there is no option \"colour\""),
        ("nats://a?ping=0s", "at least 10ms"),
        ("nats://a?create=perhaps", "yes or no"),
    ] {
        let error = Config::from_url(url).unwrap_err();
        assert_eq!(error.kind(), bellwether_core::ErrorKind::InvalidInput);
        assert!(error.to_string().contains(part), "{url}: {error}");
        assert!(!error.to_string().contains("s3cret"), "{error}");
    }
}
