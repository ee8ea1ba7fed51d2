//! The variables a process sees. Values are kept by a list of names; of all others only the names are.

use std::collections::BTreeMap;

use bivouac_core::redact;

/// What says how a project is built and run, and where its tools are.
const ALLOWED: &str = " ANDROID_HOME APP_ENV ASPNETCORE_ENVIRONMENT AWS_DEFAULT_REGION AWS_PROFILE AWS_REGION BUN_INSTALL \
    BUNDLE_PATH CARGO_BUILD_TARGET CARGO_HOME CARGO_TARGET_DIR CC CFLAGS CGO_ENABLED CI CLASSPATH CMAKE_PREFIX_PATH \
    CONDA_DEFAULT_ENV CONDA_PREFIX CUDA_VISIBLE_DEVICES CXX CXXFLAGS DEBUG DENO_DIR DJANGO_SETTINGS_MODULE \
    DOCKER_CONTEXT DOCKER_HOST DOTNET_ROOT DYLD_LIBRARY_PATH EDITOR FLASK_APP FLASK_ENV GEM_HOME GEM_PATH GOARCH GOBIN \
    GOFLAGS GOOS GOPATH GOROOT GOTOOLCHAIN GRADLE_USER_HOME JAVA_HOME JDK_HOME KUBECONFIG LANG LANGUAGE LDFLAGS \
    LD_LIBRARY_PATH LIBRARY_PATH MAKEFLAGS MIX_ENV NODE_ENV NODE_OPTIONS NODE_PATH NVM_BIN NVM_DIR PAGER PATH \
    PKG_CONFIG_PATH PNPM_HOME POETRY_ACTIVE PYENV_VERSION PYTHONHOME PYTHONPATH RACK_ENV RAILS_ENV RBENV_VERSION \
    RUSTFLAGS RUSTUP_HOME RUSTUP_TOOLCHAIN RUST_BACKTRACE RUST_LOG SDKROOT SHELL TERM TMPDIR TZ VIRTUAL_ENV VISUAL \
    VOLTA_HOME ";
/// Names that begin like this as well.
const ALLOWED_STARTS: [&str; 1] = ["LC_"];

/// What shells, terminals, logins and agents set for themselves says nothing about the work.
const NOISE: &str = " _ COLORTERM COLUMNS DISPLAY HISTCONTROL HISTFILE HISTSIZE HOME HOSTNAME LESSCLOSE LESSOPEN LINES LOGNAME \
    LS_COLORS MAIL MOTD_SHOWN OLDPWD PS1 PS2 PWD SHLVL STY TERM_PROGRAM TERM_PROGRAM_VERSION TMUX TMUX_PANE \
    TMUX_TMPDIR USER USERNAME WAYLAND_DISPLAY WINDOWID XAUTHORITY ";
const NOISE_STARTS: [&str; 15] = [
    "BASH_",
    "BIV_",
    "CLAUDE",
    "CODEX_",
    "COPILOT_",
    "DBUS_",
    "GEMINI_",
    "GPG_",
    "INVOCATION_",
    "ITERM_",
    "OPENCODE",
    "SSH_",
    "SUDO_",
    "VSCODE_",
    "XDG_",
];
/// A longer value is no setting.
const LONGEST: usize = 32 << 10;

/// What is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Variables {
    pub values: BTreeMap<String, String>,
    pub other_names: Vec<String>,
}

/// The variables we see ourselves. Names in `also` may end in `*`.
pub fn variables(also: &[String]) -> Variables {
    let own = std::env::vars_os();
    select(
        own.filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.to_string_lossy().into_owned()))
        }),
        also,
    )
}

fn select(all: impl Iterator<Item = (String, String)>, also: &[String]) -> Variables {
    let mut found = Variables::default();
    for (name, value) in all {
        let starts = |list: &[&str]| list.iter().any(|start| name.starts_with(start));
        let is_listed = has(ALLOWED, &name) || starts(&ALLOWED_STARTS);
        let is_wanted = also.iter().any(|wanted| match wanted.strip_suffix('*') {
            Some(start) => name.starts_with(start),
            None => *wanted == name,
        });
        // Whoever allows a whole family does not mean its passwords.
        let may_keep = !redact::is_telling(&name) && value.len() <= LONGEST;
        if (is_listed || is_wanted) && may_keep {
            found.values.insert(name, value);
        } else if !has(NOISE, &name) && !starts(&NOISE_STARTS) {
            found.other_names.push(name);
        }
    }
    found.other_names.sort_unstable();
    found
}

fn has(list: &str, name: &str) -> bool {
    list.split_ascii_whitespace().any(|it| it == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_kept_by_name_and_never_of_secrets() {
        let all = "PATH=/bin LC_ALL=C HOME=/root _=x BIV_CLOCK=now DATABASE_URL=postgres://x MY_MODE=fast \
            MY_API_KEY=hunter22 GITHUB_TOKEN=abc CLAUDECODE=1";
        let all = all.split_whitespace().filter_map(|it| it.split_once('='));
        let also = ["MY_*".to_owned(), "GITHUB_TOKEN".to_owned()];
        let own = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        let found = select(all.map(own), &also);
        let kept: Vec<&str> = found.values.keys().map(String::as_str).collect();
        assert_eq!(kept, ["LC_ALL", "MY_MODE", "PATH"]);
        assert_eq!(found.other_names, ["DATABASE_URL", "GITHUB_TOKEN", "MY_API_KEY"]);
    }
}
