//! A page in a browser context of its own, as a test sees it.

use std::path::{Path, PathBuf};

use base64::Engine;
use bellwether_tests::until_blocking;
use serde_json::{Value, json};

use crate::browser::{Browser, Told};

/// The size of a window, and how the system is set.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Window {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) scheme: &'static str,
}

pub(crate) const DESKTOP: Window = Window { width: 1280, height: 900, scheme: "light" };
pub(crate) const PHONE: Window = Window { width: 360, height: 740, scheme: "light" };

impl Window {
    pub(crate) fn dark(self) -> Window {
        Window { scheme: "dark", ..self }
    }
}

pub(crate) struct Page {
    browser: &'static Browser,
    session: String,
    context: String,
    told: Told,
    url: String,
}

impl Page {
    /// Opens this address.
    pub(crate) fn open(url: &str, window: Window) -> Page {
        let browser = Browser::shared();
        let text = |value: &Value| value.as_str().expect("a string").to_owned();
        let context = text(&browser.ask(None, "Target.createBrowserContext", json!({}))["browserContextId"]);
        let wanted = json!({ "url": "about:blank", "browserContextId": context });
        let target = text(&browser.ask(None, "Target.createTarget", wanted)["targetId"]);
        let attach = json!({ "targetId": target, "flatten": true });
        let session = text(&browser.ask(None, "Target.attachToTarget", attach)["sessionId"]);
        let told = browser.listen(&session);
        let page = Page { browser, session, context, told, url: url.to_owned() };
        for domain in ["Runtime", "Log", "Network", "Page"] {
            page.ask(&format!("{domain}.enable"), json!({}));
        }
        // As if each page were the one that is looked at.
        page.ask("Emulation.setFocusEmulationEnabled", json!({ "enabled": true }));
        page.resize(window);
        page.ask("Page.navigate", json!({ "url": url }));
        page.until("document.readyState === 'complete'");
        page
    }

    pub(crate) fn resize(&self, window: Window) {
        let size = json!({ "width": window.width, "height": window.height, "deviceScaleFactor": 1, "mobile": false });
        self.ask("Emulation.setDeviceMetricsOverride", size);
        let scheme = json!({ "features": [{ "name": "prefers-color-scheme", "value": window.scheme }] });
        self.ask("Emulation.setEmulatedMedia", scheme);
    }

    #[track_caller]
    pub(crate) fn ask(&self, method: &str, parameters: Value) -> Value {
        self.browser.ask(Some(&self.session), method, parameters)
    }

    /// What an expression is in the page.
    #[track_caller]
    pub(crate) fn value(&self, expression: &str) -> Value {
        let asked = json!({ "expression": expression, "returnByValue": true, "awaitPromise": true });
        let answer = self.ask("Runtime.evaluate", asked);
        assert!(answer["exceptionDetails"].is_null(), "{expression}: {answer}");
        answer["result"]["value"].clone()
    }

    #[track_caller]
    pub(crate) fn text(&self, id: &str) -> String {
        let text = self.value(&format!("document.getElementById({id:?}).innerText"));
        text.as_str().expect("an element of the page").to_owned()
    }

    /// Waits until an expression holds.
    #[track_caller]
    pub(crate) fn until(&self, expression: &str) {
        until_blocking(|| match self.value(expression) == Value::Bool(true) {
            true => Ok(()),
            false => Err(format!("not yet: {expression}, but {}", self.value("document.body.innerText"))),
        });
    }

    /// Waits until the first card says so.
    #[track_caller]
    pub(crate) fn until_standing(&self, standing: &str) {
        self.until(&format!("document.getElementById('standing')?.dataset.standing === {standing:?}"));
    }

    #[track_caller]
    pub(crate) fn until_link(&self, state: &str) {
        self.until(&format!("document.body.dataset.link === {state:?}"));
    }

    /// Presses and releases a key.
    pub(crate) fn press(&self, key: &str, code: u32) {
        for kind in ["keyDown", "keyUp"] {
            let text = if key == "Enter" && kind == "keyDown" { "\r" } else { "" };
            let pressed = json!({
                "type": kind, "key": key, "code": key, "windowsVirtualKeyCode": code, "text": text,
            });
            self.ask("Input.dispatchKeyEvent", pressed);
        }
    }

    /// Keeps a picture of the whole page where people find it: in `target/dashboard`.
    pub(crate) fn picture(&self, name: &str) {
        let taken =
            self.ask("Page.captureScreenshot", json!({ "format": "png", "captureBeyondViewport": true }));
        let bytes =
            base64::engine::general_purpose::STANDARD.decode(taken["data"].as_str().expect("a picture"));
        let place = pictures();
        std::fs::create_dir_all(&place).expect("our own directory");
        std::fs::write(place.join(format!("{name}.png")), bytes.expect("base64")).expect("our own directory");
    }

    /// Everything that is wrong in the eyes of the browser.
    pub(crate) fn complaints(&self) -> Vec<String> {
        let told = self.told.lock().expect("nobody panics with it");
        let is_complaint = |message: &&Value| match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => true,
            Some("Runtime.consoleAPICalled") => message["params"]["type"] != "log",
            Some("Log.entryAdded") => message["params"]["entry"]["level"] != "info",
            _ => false,
        };
        told.iter().filter(is_complaint).map(ToString::to_string).collect()
    }

    /// Those of them that are not about a server that does not answer.
    pub(crate) fn complaints_beside_the_connection(&self) -> Vec<String> {
        self.complaints().into_iter().filter(|one| !one.contains("net::ERR_")).collect()
    }

    /// What it has asked of others than its own server.
    pub(crate) fn foreign_requests(&self) -> Vec<String> {
        let told = self.told.lock().expect("nobody panics with it");
        let asked = told.iter().filter(|message| message["method"] == "Network.requestWillBeSent");
        let urls = asked.filter_map(|message| message["params"]["request"]["url"].as_str());
        let foreign: Vec<_> =
            urls.clone().filter(|url| !url.starts_with(&self.url)).map(str::to_owned).collect();
        assert!(urls.count() > 10, "the page asks for its files at least");
        foreign
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            let context = json!({ "browserContextId": self.context });
            self.browser.ask(None, "Target.disposeBrowserContext", context);
        }
    }
}

fn pictures() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("the target directory").join("dashboard")
}
