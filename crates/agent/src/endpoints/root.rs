//! `/`: the dashboard for people who ask for a page; for everybody else `{"name": leader}`, as the elector sidecar of Kubernetes answered.

use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri, header};
use axum::response::Response;
use serde_json::json;

use super::{ALL, Shared, answer, not_found, object};
use crate::dashboard::{FILES, File, PAGE, POLICY};

pub(super) async fn root(State(context): Shared, headers: HeaderMap) -> Response {
    if wants_html(&headers) {
        return file_answer(&PAGE);
    }
    // The sidecar's was never null.
    let leader = context.election.leader().map(|id| id.to_string()).unwrap_or_default();
    object(StatusCode::OK, &json!({ "name": leader }))
}

/// What the page is made of.
pub(super) async fn file(Path(name): Path<String>, uri: Uri) -> Response {
    match FILES.iter().find(|file| file.name == name) {
        Some(file) => file_answer(file),
        None => not_found(uri, ALL).await,
    }
}

fn file_answer(file: &File) -> Response {
    let mut response = answer(StatusCode::OK, file.media_type, file.text);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY));
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    response
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
