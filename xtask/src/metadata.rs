//! The workspace as cargo sees it: its packages, what they depend on, what they build.

use crate::{Problem, process};
use serde_json::Value;
use std::path::{Path, PathBuf};

#[derive(Debug)]
pub(crate) struct Workspace {
    pub(crate) root: PathBuf,
    pub(crate) packages: Vec<Package>,
}

#[derive(Debug)]
pub(crate) struct Package {
    pub(crate) name: String,
    pub(crate) version: String,
    /// Where its manifest is, from the root: `crates/core`.
    pub(crate) dir: String,
    /// Whether it goes to a registry.
    pub(crate) published: bool,
    pub(crate) features: Vec<String>,
    pub(crate) dependencies: Vec<Dependency>,
    pub(crate) targets: Vec<Target>,
}

#[derive(Clone, Debug)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    pub(crate) kind: DependencyKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DependencyKind {
    Normal,
    Build,
    Dev,
}

#[derive(Debug)]
pub(crate) struct Target {
    pub(crate) name: String,
    /// `lib`, `bin`, `test`, `bench`, `example` and the like.
    pub(crate) kind: String,
    /// Whether `cargo test` builds a test program for it.
    pub(crate) tested: bool,
}

impl Workspace {
    /// Asks cargo about the workspace around the working directory.
    pub(crate) fn load() -> Result<Workspace, Problem> {
        let args = ["metadata", "--format-version", "1", "--no-deps"];
        Workspace::parse(&process::read(process::cargo(Path::new(".")).args(args))?)
    }

    /// Reads what `cargo metadata` prints.
    pub(crate) fn parse(json: &str) -> Result<Workspace, Problem> {
        let json: Value = serde_json::from_str(json)
            .map_err(|error| format!("cargo metadata printed what is not JSON: {error}"))?;
        let root = PathBuf::from(text(&json, "workspace_root")?);
        let packages = list(&json, "packages")?.iter().map(|value| package(value, &root));
        Ok(Workspace { packages: packages.collect::<Result<_, _>>()?, root })
    }

    /// The package of that name, or a sentence that says that it is missing.
    pub(crate) fn package(&self, name: &str) -> Result<&Package, Problem> {
        let found = self.packages.iter().find(|package| package.name == name);
        found.ok_or_else(|| format!("the workspace has no package `{name}`"))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.packages.iter().any(|package| package.name == name)
    }
}

#[cfg(test)]
impl Package {
    /// A published package without features, dependencies or targets.
    pub(crate) fn empty(dir: &str, name: &str) -> Package {
        Package {
            name: name.to_owned(),
            version: "0.0.0".to_owned(),
            dir: dir.to_owned(),
            published: true,
            features: Vec::new(),
            dependencies: Vec::new(),
            targets: Vec::new(),
        }
    }
}

fn package(json: &Value, root: &Path) -> Result<Package, Problem> {
    let manifest = PathBuf::from(text(json, "manifest_path")?);
    let dir = manifest.parent().and_then(|dir| dir.strip_prefix(root).ok());
    let dir = dir.ok_or_else(|| format!("{} is outside the workspace", manifest.display()))?;
    Ok(Package {
        name: text(json, "name")?,
        version: text(json, "version")?,
        dir: dir.to_string_lossy().replace('\\', "/"),
        // The registries that it may go to: absent for any, empty for none.
        published: json["publish"].as_array().is_none_or(|registries| !registries.is_empty()),
        features: json["features"].as_object().map_or_else(Vec::new, |all| all.keys().cloned().collect()),
        dependencies: list(json, "dependencies")?.iter().map(dependency).collect::<Result<_, _>>()?,
        targets: list(json, "targets")?.iter().map(target).collect::<Result<_, _>>()?,
    })
}

fn dependency(json: &Value) -> Result<Dependency, Problem> {
    let kind = match json["kind"].as_str() {
        None => DependencyKind::Normal,
        Some("build") => DependencyKind::Build,
        Some("dev") => DependencyKind::Dev,
        Some(other) => return Err(format!("cargo metadata has a new kind of dependency, `{other}`")),
    };
    Ok(Dependency { name: text(json, "name")?, kind })
}

fn target(json: &Value) -> Result<Target, Problem> {
    let kind = list(json, "kind")?.first().and_then(Value::as_str).unwrap_or_default().to_owned();
    Ok(Target { name: text(json, "name")?, kind, tested: json["test"].as_bool().unwrap_or(false) })
}

fn text(json: &Value, field: &str) -> Result<String, Problem> {
    let value = json[field].as_str().map(str::to_owned);
    value.ok_or_else(|| format!("cargo metadata has no text `{field}`"))
}

fn list<'a>(json: &'a Value, field: &str) -> Result<&'a Vec<Value>, Problem> {
    json[field].as_array().ok_or_else(|| format!("cargo metadata has no list `{field}`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const JSON: &str = r#"{"workspace_root":"/w","packages":[{
        "name":"bellwether-core","version":"1.2.3","manifest_path":"/w/crates/core/Cargo.toml",
        "dependencies":[{"name":"serde","kind":null},{"name":"tokio","kind":"dev"}],
        "features":{"plant":[]},"publish":null,
        "targets":[{"name":"bellwether_core","kind":["lib"],"test":true}]}]}"#;

    #[test]
    fn packages_are_read_with_their_places_and_dependencies() {
        let workspace = Workspace::parse(JSON).unwrap();
        let core = workspace.package("bellwether-core").unwrap();
        assert_eq!((core.dir.as_str(), core.version.as_str()), ("crates/core", "1.2.3"));
        let kinds: Vec<_> = core.dependencies.iter().map(|dependency| dependency.kind).collect();
        assert_eq!(kinds, [DependencyKind::Normal, DependencyKind::Dev]);
        assert!(core.targets[0].tested && core.published);
        assert_eq!(core.features, ["plant"]);
        let internal = Workspace::parse(&JSON.replace("\"publish\":null", "\"publish\":[]")).unwrap();
        assert!(!internal.packages[0].published);
    }

    #[test]
    fn a_missing_package_is_named() {
        let problem = Workspace::parse(JSON).unwrap().package("bellwether-cor").unwrap_err();
        assert_eq!(problem, "the workspace has no package `bellwether-cor`");
    }
}
