//! The dashboard's files, as they are in the directory of the same name: part of the program, so that nothing has to be installed beside
//! it, and nothing comes from another host.
//!
//! The page is the same for everybody and says nothing by itself: its scripts ask the other endpoints.

/// One file.
pub(crate) struct File {
    pub(crate) name: &'static str,
    pub(crate) media_type: &'static str,
    pub(crate) text: &'static str,
}

/// What a browser may do with the page: load these files and ask this server, and nothing else. No script can be written into the page,
/// and no text becomes markup.
pub(crate) const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

pub(crate) const PAGE: File = File {
    name: "page.html",
    media_type: "text/html; charset=utf-8",
    text: include_str!("dashboard/page.html"),
};

macro_rules! script {
    ($name:literal) => {
        File {
            name: $name,
            media_type: "text/javascript; charset=utf-8",
            text: include_str!(concat!("dashboard/", $name)),
        }
    };
}

/// What the page loads.
pub(crate) const FILES: &[File] = &[
    File {
        name: "style.css",
        media_type: "text/css; charset=utf-8",
        text: include_str!("dashboard/style.css"),
    },
    File { name: "icon.svg", media_type: "image/svg+xml", text: include_str!("dashboard/icon.svg") },
    script!("main.js"),
    script!("link.js"),
    script!("facts.js"),
    script!("clock.js"),
    script!("words.js"),
    script!("page.js"),
    script!("standing.js"),
    script!("renewals.js"),
    script!("timeline.js"),
    script!("elections.js"),
    script!("theme.js"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_are_those_of_the_directory_and_nothing_is_loaded_from_elsewhere() {
        let directory = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/dashboard");
        let mut there: Vec<String> = std::fs::read_dir(directory)
            .expect("our own directory")
            .map(|entry| entry.expect("a file").file_name().into_string().expect("a name"))
            .collect();
        let mut served: Vec<&str> = FILES.iter().map(|file| file.name).chain([PAGE.name]).collect();
        there.sort();
        served.sort_unstable();
        assert_eq!(there, served);
        for file in FILES.iter().chain([&PAGE]) {
            let addresses = file.text.replace("http://www.w3.org/2000/svg", "");
            assert!(!addresses.contains("http://") && !addresses.contains("https://"), "{}", file.name);
        }
    }

    #[test]
    fn the_page_has_no_script_and_no_style_of_its_own() {
        for forbidden in ["<script>", "<style", " style=", " onclick=", " onload=", " onerror="] {
            assert!(!PAGE.text.contains(forbidden), "{forbidden}");
        }
    }
}
