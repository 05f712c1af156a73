//! The files of the page, built from `web/` and part of the binary.

use axum::body::Body;
use axum::http::{StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};

/// Name and content, as the build script lists them.
static FILES: &[(&str, &[u8])] = include!(concat!(env!("OUT_DIR"), "/page_files.rs"));

pub(crate) fn is_built() -> bool {
    FILES.iter().any(|it| it.0.starts_with("assets/"))
}

/// The only file of its kind that the page has as one script, for exported files.
pub(crate) fn exported(extension: &str) -> Option<&'static str> {
    let file = FILES.iter().find(|it| it.0.strip_prefix("export/page.") == Some(extension))?;
    std::str::from_utf8(file.1).ok()
}

/// Names below `assets/` carry a hash of the content: what was fetched once stays true.
pub(crate) async fn file(uri: Uri) -> Response {
    let path = uri.path().trim_start_matches('/');
    let path = if path.is_empty() { "index.html" } else { path };
    let notices = ("licences.txt", crate::PAGE_NOTICES.as_bytes());
    let Some((_, content)) = FILES.iter().chain([&notices]).find(|it| it.0 == path) else {
        return (StatusCode::NOT_FOUND, "there is no such page; the first one is /\n")
            .into_response();
    };
    let kind = match path.rsplit('.').next() {
        Some("html") => "text/html; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("txt") => "text/plain; charset=utf-8",
        Some("svg") => "image/svg+xml",
        _ => "application/octet-stream",
    };
    let keep = if path.starts_with("assets/") {
        "public, max-age=31536000, immutable"
    } else {
        "no-cache"
    };
    let headers = [(header::CONTENT_TYPE, kind), (header::CACHE_CONTROL, keep)];
    (headers, Body::from(*content)).into_response()
}
