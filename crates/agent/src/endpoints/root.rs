//! `/`: a page for people who ask for one; for everybody else `{"name": leader}`, as the elector sidecar of Kubernetes answered.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::Response;
use bellwether_election::leader_json;
use serde_json::json;

use super::{Context, Shared, answer, object};

pub(super) async fn root(State(context): Shared, headers: HeaderMap) -> Response {
    if wants_html(&headers) {
        return page(&context);
    }
    // The sidecar's was never null.
    let leader = context.election.leader().map(|id| id.to_string()).unwrap_or_default();
    object(StatusCode::OK, &json!({ "name": leader }))
}

/// Whether `text/html` is asked for by name. A browser does; `*/*` is what everybody else sends.
fn wants_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|range| {
        let mut parts = range.split(';').map(str::trim);
        let is_html = parts.next().is_some_and(|media_type| media_type.eq_ignore_ascii_case("text/html"));
        let is_refused = parts.filter_map(|part| part.strip_prefix("q=")).any(|q| q.parse() == Ok(0.0_f32));
        is_html && !is_refused
    })
}

fn page(context: &Context) -> Response {
    let now = leader_json(&context.election);
    let election = escaped(context.election.name().as_str());
    let leader = now["leader"].as_str().map_or_else(|| "nobody".to_owned(), escaped);
    let links = ["leader", "status", "history", "events", "metrics", "livez", "readyz"];
    let links: String =
        links.iter().map(|name| format!("<li><a href=\"/{name}\">/{name}</a></li>\n")).collect();
    let html = format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{election} – Bellwether</title>\n\
         <h1>{election}</h1>\n<p><strong>{leader}</strong> leads.</p>\n<ul>\n{links}</ul>\n</html>\n"
    );
    let mut response = answer(StatusCode::OK, "text/html; charset=utf-8", html);
    let policy = HeaderValue::from_static("default-src 'self'; frame-ancestors 'none'; base-uri 'none'");
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

/// A name is anybody's to choose, and must not become part of the page.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            c => escaped.push(c),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_is_for_those_who_ask_for_it_by_name() {
        let wants = |accept: &'static str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            wants_html(&headers)
        };
        assert!(wants("text/html") && wants("text/html,application/xhtml+xml;q=0.9,*/*;q=0.8"));
        assert!(wants("application/json, TEXT/HTML;q=0.1"));
        assert!(
            !wants("*/*") && !wants("application/json") && !wants("text/html;q=0") && !wants("text/htmlx")
        );
        assert!(!wants_html(&HeaderMap::new()));
    }
}
