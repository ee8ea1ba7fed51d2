//! Where an agent worked: its folder, the variables it saw, the tools its project needs.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Environment {
    pub cwd: String,
    /// Those on the list of names whose values may be kept.
    #[serde(default)]
    pub variables: BTreeMap<String, String>,
    /// What else was set, without what it was set to.
    #[serde(default)]
    pub other_names: Vec<String>,
    /// Programs and their versions; `None` for one that is not there. A program nobody could ask is left out.
    #[serde(default)]
    pub tools: BTreeMap<String, Option<String>>,
}

impl Environment {
    /// Nothing is known but where it was.
    pub fn is_empty(&self) -> bool {
        self.variables.is_empty() && self.other_names.is_empty() && self.tools.is_empty()
    }

    /// What is there, with its version: `cargo 1.91.0`.
    pub fn tools_there(&self) -> Vec<String> {
        let there =
            self.tools.iter().filter_map(|(program, version)| Some((program, version.as_ref()?)));
        there.map(|(program, version)| format!("{program} {version}")).collect()
    }
}

/// Something that is not as it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Difference {
    pub kind: Kind,
    pub name: String,
    pub from: Option<String>,
    pub to: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    Cwd,
    Tool,
    Variable,
    /// A variable whose value nobody kept.
    Name,
}

/// Kept for whoever looks. They are the terminal's or the person's, and agents set them for themselves.
const NOT_COMPARED: [&str; 5] = ["EDITOR", "PAGER", "SHELL", "TERM", "VISUAL"];

/// What is different now, as far as both sides know it: the folder, then tools, then variables.
pub fn differences(then: &Environment, now: &Environment) -> Vec<Difference> {
    let mut found = Vec::new();
    let mut tell = |kind, name: &str, from: Option<&String>, to: Option<&String>| {
        if from != to {
            let name = name.to_owned();
            found.push(Difference { kind, name, from: from.cloned(), to: to.cloned() });
        }
    };
    tell(Kind::Cwd, "cwd", Some(&then.cwd), Some(&now.cwd));
    for (program, version) in &then.tools {
        if let Some(version_now) = now.tools.get(program) {
            tell(Kind::Tool, program, version.as_ref(), version_now.as_ref());
        }
    }
    let names: std::collections::BTreeSet<&String> =
        then.variables.keys().chain(now.variables.keys()).collect();
    for name in names {
        // One side may have kept the value, and the other only the name.
        let is_hidden = [then, now].iter().any(|it| it.other_names.contains(name));
        if !is_hidden && !NOT_COMPARED.contains(&name.as_str()) {
            tell(Kind::Variable, name, then.variables.get(name), now.variables.get(name));
        }
    }
    let is_set = |name: &String| now.other_names.contains(name) || now.variables.contains_key(name);
    for name in then.other_names.iter().filter(|name| !is_set(name)) {
        found.push(Difference { kind: Kind::Name, name: name.clone(), from: None, to: None });
    }
    found
}

/// A list of folders with `:` between them is told by what came and went.
fn folders(from: &str, to: &str) -> String {
    let split = |text: &str| text.split(':').map(str::to_owned).collect::<Vec<_>>();
    let (from, to) = (split(from), split(to));
    let without = |one: &[String], other: &[String]| {
        let left: Vec<&str> =
            one.iter().filter(|it| !other.contains(it)).map(String::as_str).collect();
        left.join(", ")
    };
    match (without(&from, &to), without(&to, &from)) {
        (gone, come) if gone.is_empty() && come.is_empty() => "is in another order".to_owned(),
        (gone, come) if gone.is_empty() => format!("has {come} as well"),
        (gone, come) if come.is_empty() => format!("lacks {gone}"),
        (gone, come) => format!("lacks {gone} and has {come}"),
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, from, to } = self;
        match (kind, from, to) {
            (Kind::Name, ..) => write!(f, "{name} is not set"),
            (Kind::Variable, Some(from), Some(to)) if from.contains(':') && to.contains(':') => {
                write!(f, "{name} {}", folders(from, to))
            }
            (_, Some(from), Some(to)) => write!(f, "{name} {from} → {to}"),
            (Kind::Tool, Some(from), None) => write!(f, "{name} {from} is missing"),
            (Kind::Tool, None, Some(to)) => write!(f, "{name} {to} was missing"),
            (_, Some(from), None) => write!(f, "{name} {from} is not set"),
            (_, None, Some(to)) => write!(f, "{name} {to} was not set"),
            (_, None, None) => write!(f, "{name} is not known"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(tools: &[(&str, &str)], variables: &[(&str, &str)]) -> Environment {
        let tool = |(name, version): &(&str, &str)| {
            let version = (!version.is_empty()).then(|| (*version).to_owned());
            ((*name).to_owned(), version)
        };
        let variable = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
        Environment {
            cwd: "/project".to_owned(),
            variables: variables.iter().map(variable).collect(),
            other_names: Vec::new(),
            tools: tools.iter().map(tool).collect(),
        }
    }

    fn told(then: &Environment, now: &Environment) -> Vec<String> {
        differences(then, now).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_differs_is_told_in_words() {
        let then = environment(
            &[("node", "18.19.0"), ("uv", "0.4.1"), ("go", ""), ("make", "4.3")],
            &[("RUSTUP_TOOLCHAIN", "stable"), ("PATH", "/a:/b"), ("TZ", "UTC"), ("LANG", "C")],
        );
        let mut now = environment(
            &[("node", "20.20.2"), ("uv", ""), ("go", "1.22.1"), ("make", "4.3")],
            &[("RUSTUP_TOOLCHAIN", "nightly"), ("PATH", "/b:/c"), ("LANG", "C"), ("CI", "1")],
        );
        now.cwd = "/project/web".to_owned();
        let expected = [
            "cwd /project → /project/web",
            "go 1.22.1 was missing",
            "node 18.19.0 → 20.20.2",
            "uv 0.4.1 is missing",
            "CI 1 was not set",
            "PATH lacks /a and has /c",
            "RUSTUP_TOOLCHAIN stable → nightly",
            "TZ UTC is not set",
        ];
        assert_eq!(told(&then, &now), expected);
    }

    #[test]
    fn only_what_both_sides_know_is_compared() {
        let mut then = environment(&[("rustc", "1.91.0")], &[("DEBUG", "1"), ("TERM", "dumb")]);
        let mut now = environment(&[], &[]);
        now.other_names.push("DEBUG".to_owned());
        assert_eq!(told(&then, &now), Vec::<String>::new());
        then.other_names.push("DATABASE_URL".to_owned());
        assert_eq!(told(&then, &now), ["DATABASE_URL is not set"]);
        now.variables.insert("DATABASE_URL".to_owned(), "x".to_owned());
        assert_eq!(told(&then, &now), Vec::<String>::new());
    }

    #[test]
    fn folders_are_told_by_what_came_and_went() {
        let check = |from: &str, to: &str, words: &str| assert_eq!(folders(from, to), words);
        check("/a:/b", "/b:/a", "is in another order");
        check("/a:/b", "/a:/b:/c", "has /c as well");
        check("/a:/b", "/a", "lacks /b");
    }

    #[test]
    fn an_older_one_is_read() {
        let read: Environment = serde_json::from_str(r#"{"cwd": "/p", "variables": {}}"#).unwrap();
        assert!(read.is_empty());
        assert_eq!(
            environment(&[("go", ""), ("node", "20.1.0")], &[]).tools_there(),
            ["node 20.1.0"]
        );
    }
}
