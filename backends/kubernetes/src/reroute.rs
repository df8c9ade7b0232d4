//! The same API server by way of another address, as by a proxy.
//!
//! The address is in a kubeconfig, so a copy of that is written, in which the server is elsewhere and keeps its name for TLS. It holds the
//! same credentials, and nobody else may read it.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use bellwether_backend::url;
use bellwether_core::StoreError;
use http::Uri;
use kube::config::{AuthInfo, Cluster, Context, Kubeconfig, NamedAuthInfo, NamedCluster, NamedContext};

use crate::errors::{BACKEND, invalid, misconfigured};

/// Where a pod finds what its service account may do.
const ACCOUNT: &str = "/var/run/secrets/kubernetes.io/serviceaccount";
/// The names in a kubeconfig that is made for a service account.
const OF_POD: &str = "pod";

/// `HOST:PORT` of the API server that a URL means.
///
/// # Errors
/// When the URL or the kubeconfig cannot be used.
pub fn place(url: &str) -> Result<String, StoreError> {
    let mut kubeconfig = kubeconfig(url)?;
    let uri = server(cluster(&mut kubeconfig)?)?;
    let port = uri.port_u16().unwrap_or(if uri.scheme_str() == Some("http") { 80 } else { 443 });
    Ok(format!("{}:{port}", uri.host().unwrap_or_default()))
}

/// The URL for the same API server at this address, with a kubeconfig that is written into this directory.
///
/// # Errors
/// As [`place`], and when the file cannot be written.
pub fn through(url: &str, address: SocketAddr, directory: &Path) -> Result<String, StoreError> {
    let mut kubeconfig = kubeconfig(url)?;
    let cluster = cluster(&mut kubeconfig)?;
    let uri = server(cluster)?;
    if cluster.tls_server_name.is_none() {
        let host = uri.host().unwrap_or_default().trim_start_matches('[').trim_end_matches(']');
        cluster.tls_server_name = Some(host.to_owned());
    }
    let path = uri.path().trim_end_matches('/');
    cluster.server = Some(format!("{}://{address}{path}", uri.scheme_str().unwrap_or("https")));
    let file = directory.join("kubeconfig");
    write(&file, &kubeconfig)?;
    let (place, query) = url.split_once('?').unwrap_or((url, ""));
    let is_kept = |option: &&str| {
        !option.is_empty()
            && !["kubeconfig", "context"].contains(&option.split('=').next().unwrap_or_default())
    };
    let named = format!("kubeconfig={}", escaped(&file));
    let options: Vec<&str> = query.split('&').filter(is_kept).chain([named.as_str()]).collect();
    Ok(format!("{place}?{}", options.join("&")))
}

/// What the URL means, with the context that it names as the current one.
fn kubeconfig(url: &str) -> Result<Kubeconfig, StoreError> {
    let (mut file, mut context) = (None, None);
    for option in url::options(BACKEND, url.split_once('?').map_or("", |(_, query)| query)) {
        match option? {
            ("kubeconfig", value) => file = Some(PathBuf::from(value)),
            ("context", value) => context = Some(value),
            _ => {}
        }
    }
    let unfit = |error| misconfigured("the kubeconfig cannot be used").caused_by(error);
    let mut kubeconfig = match (&file, &context) {
        (Some(file), _) => Kubeconfig::read_from(file).map_err(unfit)?,
        (None, Some(_)) => Kubeconfig::read().map_err(unfit)?,
        (None, None) => match Kubeconfig::read() {
            Ok(read) => read,
            // No file at all is how it is in a pod.
            Err(error) => from_env().ok_or_else(|| unfit(error))?,
        },
    };
    kubeconfig.current_context = context.or(kubeconfig.current_context);
    Ok(kubeconfig)
}

/// That of the pod's service account, if this is a pod.
fn from_env() -> Option<Kubeconfig> {
    let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let (host, port) = (variable("KUBERNETES_SERVICE_HOST")?, variable("KUBERNETES_SERVICE_PORT")?);
    let host = if host.contains(':') { format!("[{host}]") } else { host };
    let cluster = Cluster {
        server: Some(format!("https://{host}:{port}")),
        certificate_authority: Some(format!("{ACCOUNT}/ca.crt")),
        ..Cluster::default()
    };
    let account = AuthInfo { token_file: Some(format!("{ACCOUNT}/token")), ..AuthInfo::default() };
    let namespace = std::fs::read_to_string(format!("{ACCOUNT}/namespace")).ok();
    let context = Context {
        cluster: OF_POD.to_owned(),
        user: Some(OF_POD.to_owned()),
        namespace,
        ..Context::default()
    };
    Some(Kubeconfig {
        clusters: vec![NamedCluster {
            name: OF_POD.to_owned(),
            cluster: Some(cluster),
            ..Default::default()
        }],
        auth_infos: vec![NamedAuthInfo {
            name: OF_POD.to_owned(),
            auth_info: Some(account),
            ..Default::default()
        }],
        contexts: vec![NamedContext {
            name: OF_POD.to_owned(),
            context: Some(context),
            ..Default::default()
        }],
        current_context: Some(OF_POD.to_owned()),
        ..Kubeconfig::default()
    })
}

/// The cluster of the current context.
fn cluster(kubeconfig: &mut Kubeconfig) -> Result<&mut Cluster, StoreError> {
    let current = kubeconfig.current_context.clone().unwrap_or_default();
    let context = kubeconfig.contexts.iter().find(|named| named.name == current);
    let name = context.and_then(|named| named.context.as_ref()).map(|context| context.cluster.clone());
    let found = kubeconfig.clusters.iter_mut().find(|named| Some(&named.name) == name.as_ref());
    let missing = || invalid(format!("the kubeconfig has no cluster for the context {current:?}"));
    found.and_then(|named| named.cluster.as_mut()).ok_or_else(missing)
}

fn server(cluster: &Cluster) -> Result<Uri, StoreError> {
    if cluster.proxy_url.is_some() {
        return Err(invalid("the kubeconfig has a proxy on the way to the server"));
    }
    let uri: Option<Uri> = cluster.server.as_ref().and_then(|server| server.parse().ok());
    uri.filter(|uri| uri.host().is_some()).ok_or_else(|| invalid("the kubeconfig names no server"))
}

fn write(path: &Path, kubeconfig: &Kubeconfig) -> Result<(), StoreError> {
    let text = serde_json::to_string(kubeconfig)
        .map_err(|error| misconfigured("the kubeconfig cannot be written").caused_by(error))?;
    let file = File::options().write(true).create(true).truncate(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|error| misconfigured(format!("{} cannot be written", path.display())).caused_by(error))
}

/// As a value in a URL.
fn escaped(path: &Path) -> String {
    let escape = |byte: &u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => char::from(*byte).to_string(),
        _ => format!("%{byte:02x}"),
    };
    std::os::unix::ffi::OsStrExt::as_bytes(path.as_os_str()).iter().map(escape).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const KUBECONFIG: &str = r#"{"apiVersion": "v1", "kind": "Config", "current-context": "one",
        "contexts": [{"name": "one", "context": {"cluster": "a", "user": "u", "namespace": "apps"}},
                     {"name": "two", "context": {"cluster": "b", "user": "u"}}],
        "clusters": [{"name": "a", "cluster": {"server": "https://api.example/base/"}},
                     {"name": "b", "cluster": {"server": "https://10.0.0.1:6443", "tls-server-name": "kube"}}],
        "users": [{"name": "u", "user": {"token": "t0ken"}}]}"#;

    #[test]
    fn the_server_of_the_context_is_elsewhere_and_keeps_its_name_and_its_credentials() {
        let scratch = bellwether_support::Scratch::new();
        let file = scratch.path().join("a config");
        std::fs::write(&file, KUBECONFIG).unwrap();
        let named = format!("kubeconfig={}", escaped(&file));
        let address = ([127, 0, 0, 1], 9).into();
        for (query, was, server, name) in [
            (named.clone(), "api.example:443", "https://127.0.0.1:9/base", "api.example"),
            (format!("{named}&context=two&watch=1s"), "10.0.0.1:6443", "https://127.0.0.1:9", "kube"),
        ] {
            let url = format!("kubernetes://ns?{query}");
            assert_eq!(place(&url).unwrap(), was);
            let rerouted = through(&url, address, scratch.path()).unwrap();
            assert_eq!(rerouted.contains("watch=1s"), query.contains("watch"), "{rerouted}");
            let mut written = kubeconfig(&rerouted).unwrap();
            let found = cluster(&mut written).unwrap();
            assert_eq!(found.server.as_deref(), Some(server));
            assert_eq!(found.tls_server_name.as_deref(), Some(name));
            let text = std::fs::read_to_string(scratch.path().join("kubeconfig")).unwrap();
            assert!(text.contains("t0ken") && text.contains("apps"), "{text}");
        }
        let other = format!("kubernetes://?{named}&context=three");
        assert!(place(&other).unwrap_err().to_string().contains("three"));
    }
}
