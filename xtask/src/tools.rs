//! Running programs, and finding our way in the project.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::Result;

/// The top of the project.
pub(crate) fn root() -> PathBuf {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    own.parent().unwrap_or(own).to_owned()
}

pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    #[expect(clippy::disallowed_methods, reason = "this tool starts other tools")]
    Command::new(program)
}

/// The cargo that runs us.
pub(crate) fn cargo(args: &[&str]) -> Command {
    let mut cargo = command(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(args).current_dir(root());
    cargo
}

/// Runs it, with its output shown.
pub(crate) fn show(command: &mut Command) -> Result<()> {
    let status = command.status().map_err(|error| format!("{}: {error}", name(command)))?;
    match status.success() {
        true => Ok(()),
        false => Err(format!("{} failed ({status})", name(command)).into()),
    }
}

/// Is there such a program on this machine?
pub(crate) fn is_installed(program: &str) -> bool {
    command(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Is there such a program, or can it be installed? Where it cannot be had, what needs it is left out.
pub(crate) fn package(name: &str) -> bool {
    package_with(name, name)
}

/// The same for a program whose package has another name.
pub(crate) fn package_with(program: &str, name: &str) -> bool {
    if is_installed(program) {
        return true;
    }
    if !is_installed("apt-get") {
        return false;
    }
    println!("installing {name}");
    let own = command("id").arg("-u").output().map(|output| output.stdout).unwrap_or_default();
    let is_root = String::from_utf8_lossy(&own).trim() == "0";
    let start: &[&str] = if is_root { &["apt-get"] } else { &["sudo", "-n", "apt-get"] };
    let apt = |words: &[&str]| show(command(start[0]).args(&start[1..]).args(words));
    let install = || apt(&["install", "-y", "-q", name]);
    // A fresh machine may not know yet what there is.
    match install().or_else(|_| apt(&["update", "-q"]).and_then(|()| install())) {
        Ok(()) => true,
        Err(error) => {
            println!("{name} cannot be had ({error})");
            false
        }
    }
}

/// A tool from the registry, built once into `target/tools`; built soon rather than fast, as it has little to do.
pub(crate) fn tool(name: &str, version: &str) -> Result<PathBuf> {
    let folder = root().join("target/tools");
    let binary = folder.join("bin").join(name);
    if !binary.exists() {
        println!("installing {name} {version} into target/tools");
        let version = format!("{name}@{version}");
        let mut install = cargo(&["install", "--locked", "--quiet", "--debug", &version, "--root"]);
        show(install.arg(&folder).env("CARGO_TARGET_DIR", folder.join("build")))?;
        std::fs::remove_dir_all(folder.join("build"))?;
    }
    Ok(binary)
}

fn name(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}
