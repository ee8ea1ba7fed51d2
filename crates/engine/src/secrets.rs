//! The secrets we can know of: the values in the workspace's `.env` files, and in variables whose names give
//! them away. They are blotted out of whatever leaves, in every form they may take.

use std::fs;
use std::path::Path;

use bivouac_core::redact::Redactor;

use crate::Engine;

/// Files larger than this are no settings.
const MAX_BYTES: u64 = 1 << 20;

impl Engine {
    /// What takes the secrets out of a text.
    pub fn redactor(&self) -> &Redactor {
        self.redactor.get_or_init(|| self.redactor_knowing(&[]))
    }

    /// The same, which knows the values in these texts of `.env` files as well.
    pub(crate) fn redactor_knowing(&self, texts: &[String]) -> Redactor {
        let mut values = in_files(&self.home.workspace);
        values.extend(in_variables());
        values.extend(texts.iter().flat_map(|text| text.lines().filter_map(value_in)));
        Redactor::knowing(values)
    }
}

fn in_files(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let files = entries.filter(|entry| {
        let name = entry.file_name();
        let is_named = name.as_encoded_bytes().starts_with(b".env");
        is_named && entry.metadata().is_ok_and(|meta| meta.is_file() && meta.len() <= MAX_BYTES)
    });
    let texts = files.filter_map(|entry| fs::read_to_string(entry.path()).ok());
    texts.flat_map(|text| text.lines().filter_map(value_in).collect::<Vec<_>>()).collect()
}

/// The value in a line such as `export KEY="value"`.
fn value_in(line: &str) -> Option<String> {
    let line = line.trim();
    let (_, value) = line.split_once('=').filter(|_| !line.starts_with('#'))?;
    let value = value.trim();
    let quoted = ['"', '\''].into_iter().find_map(|mark| {
        let rest = value.strip_prefix(mark)?;
        Some(&rest[..rest.find(mark)?])
    });
    Some(
        quoted
            .unwrap_or_else(|| value.split(" #").next().unwrap_or_default().trim_end())
            .to_owned(),
    )
}

fn in_variables() -> Vec<String> {
    let texts = std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    texts
        .filter(|(name, _)| bivouac_core::redact::is_telling(name))
        .map(|(_, value)| value)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::value_in;

    #[test]
    fn values_are_read_as_shells_read_them() {
        let check = |line: &str, value: Option<&str>| assert_eq!(value_in(line).as_deref(), value);
        check("KEY=plain", Some("plain"));
        check("export KEY=\"with blanks\" # why", Some("with blanks"));
        check("KEY='single'", Some("single"));
        check("KEY=value # comment", Some("value"));
        check("# KEY=not me", None);
        check("no assignment", None);
    }
}
