//! Which files hold secrets: by their names (`id_rsa`, `.npmrc`, `prod.env`), and by what is in them.

use std::borrow::Cow;

use super::assigned::is_wordy;
use super::{FINDERS, Find, Redactor, Spot, keys, shapes};

/// What the name of a file says about its contents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Programs keep secrets in files of this name.
    Secret,
    /// A template of such a file: it may hold names and blanks, but no values.
    Example,
    Ordinary,
}

/// Whole names, in lower case.
#[rustfmt::skip]
const NAMES: [&str; 55] = [
    ".npmrc", ".pypirc", ".netrc", "_netrc", ".pgpass", "pgpass.conf", ".my.cnf", ".mylogin.cnf", ".git-credentials",
    ".htpasswd", ".htdigest", ".dockercfg", ".dockerconfigjson", ".s3cfg", ".boto", ".vault-token", ".vault_pass",
    "vault_pass.txt", "vault-password.txt", ".vault-password", ".terraformrc", "terraform.rc", "credentials.tfrc.json",
    "credentials.json", ".credentials.json", "credentials.toml", "credentials.yml", "credentials.yaml",
    "application_default_credentials.json", "client_secret.json", "client_secrets.json", "kubeconfig",
    "secrets.yml", "secrets.yaml", "secrets.json", "secrets.toml", "secrets.ini", "secret.yml", "secret.yaml",
    "secret.json", "secrets.env", ".secrets", ".secret", "master.key", "wallet.dat", "rclone.conf",
    ".databrickscfg", "accesstokens.json", "msal_token_cache.json", "gradle-secrets.properties", "auth.json",
    ".envrc", "id_rsa", "id_ed25519", "keystore.properties",
];

/// The last folder and the name, in lower case.
#[rustfmt::skip]
const PLACES: [&str; 14] = [
    ".aws/credentials", ".docker/config.json", ".kube/config", ".cargo/credentials", ".cargo/credentials.toml",
    ".gem/credentials", "gh/hosts.yml", "gcloud/credentials.db", "gcloud/access_tokens.db", ".snowsql/config",
    ".composer/auth.json", ".streamlit/secrets.toml", ".bundle/config", ".config/hub",
];

#[rustfmt::skip]
const ENDS: [&str; 26] = [
    ".p12", ".pfx", ".pkcs12", ".jks", ".jceks", ".keystore", ".bks", ".ppk", ".kdbx", ".kdb", ".key", ".pvk", ".snk",
    ".keychain", ".keychain-db", ".agekey", ".psafe3", ".kubeconfig", ".tfstate", ".tfstate.backup", ".tfvars",
    ".tfvars.json", ".env", "_rsa", "_ed25519", "_ecdsa",
];

#[rustfmt::skip]
const STARTS: [&str; 13] = [
    ".env", "id_rsa", "id_dsa", "id_ecdsa", "id_ed25519", "terraform.tfstate", "client_secret_", "service-account",
    "service_account", "serviceaccount", "gha-creds-", "secrets.prod", "secrets.local",
];

/// Pieces of a name that say that the file is there to be copied and filled in.
const EXAMPLES: [&str; 12] = [
    "example", "examples", "sample", "samples", "template", "tmpl", "tpl", "dist", "default",
    "defaults", "schema", "skeleton",
];

/// What a path says about the file. Paths are bytes, and names have any case.
pub fn kind_of(path: &[u8]) -> Kind {
    let path = String::from_utf8_lossy(path).to_lowercase();
    let name = path.rsplit('/').next().unwrap_or(&path);
    match is_secret(&path, name) {
        false => Kind::Ordinary,
        true if name.split(['.', '-', '_']).any(|piece| EXAMPLES.contains(&piece)) => Kind::Example,
        true => Kind::Secret,
    }
}

/// Whether the file has settings in the form of a `.env` file, so that its values are known to be secret.
pub fn is_settings(name: &[u8]) -> bool {
    let has_form = name.starts_with(b".env") || name.ends_with(b".env");
    has_form && kind_of(name) == Kind::Secret
}

fn is_secret(path: &str, name: &str) -> bool {
    // Without the word that makes it a template: `credentials.example.json`, `.npmrc.sample`.
    let is_example = |piece: &&str| EXAMPLES.contains(piece);
    let plain: Vec<&str> = name.split('.').filter(|piece| !is_example(piece)).collect();
    let plain = plain.join(".");
    let is_public =
        name.ends_with(".pub") || name.starts_with("public") || name.ends_with(".pub.key");
    // `service_account.rs` is code about one.
    let is_account = |name: &str| !name.starts_with("service") || name.ends_with(".json");
    let is_code = [
        ".rs", ".go", ".py", ".js", ".ts", ".tsx", ".java", ".rb", ".md", ".html", ".css", ".c",
        ".h",
    ]
    .iter()
    .any(|end| name.ends_with(end));
    let is_place = |place: &&str| *path == **place || path.ends_with(&format!("/{place}"));
    if is_public || is_code {
        return false;
    }
    [name, &plain].into_iter().any(|name| {
        NAMES.contains(&name)
            || ENDS.iter().any(|end| name.ends_with(end))
            || STARTS.iter().any(|start| name.starts_with(start)) && is_account(name)
    }) || PLACES.iter().any(is_place)
}

impl Redactor {
    /// Whether there are secrets in these bytes of a file. In what is not text, only values that are known,
    /// keys and tokens are looked for: names and signs of assignment stand there by chance.
    pub fn finds_in(&self, bytes: &[u8], kind: Kind) -> bool {
        let (text, is_text) = decoded(bytes);
        if self.known.as_ref().is_some_and(|known| !known.spots(&text).is_empty()) {
            return true;
        }
        let sure: [Find; 2] = [keys::spots, shapes::tokens];
        if sure.iter().any(|find| !find(&text).is_empty()) {
            return true;
        }
        // A template is full of words that stand for passwords.
        let counts =
            |spot: &Spot<'_>| kind != Kind::Example || !is_wordy(&text[spot.range.clone()]);
        is_text && FINDERS[sure.len()..].iter().any(|find| find(&text).iter().any(counts))
    }
}

/// The text in these bytes, and whether they are text at all.
fn decoded(bytes: &[u8]) -> (Cow<'_, str>, bool) {
    let wide = match bytes {
        [0xff, 0xfe, rest @ ..] => Some((rest, u16::from_le_bytes as fn([u8; 2]) -> u16)),
        [0xfe, 0xff, rest @ ..] => Some((rest, u16::from_be_bytes as fn([u8; 2]) -> u16)),
        _ => None,
    };
    if let Some((rest, unit)) = wide {
        let units = rest.chunks_exact(2).map(|pair| unit([pair[0], pair[1]]));
        let text = char::decode_utf16(units).map(|it| it.unwrap_or(char::REPLACEMENT_CHARACTER));
        return (Cow::Owned(text.collect()), true);
    }
    (String::from_utf8_lossy(bytes), !bytes.contains(&0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_secret_files_from_templates_and_others() {
        let check = |names: &str, expected| {
            let wrong =
                names.split_whitespace().filter(|name| kind_of(name.as_bytes()) != expected);
            assert_eq!(wrong.collect::<Vec<_>>(), Vec::<&str>::new());
        };
        check(
            "id_rsa .ssh/id_ed25519 keys/id_rsa_work deploy_rsa .npmrc app/.npmrc .pypirc .netrc .pgpass .git-credentials \
             .aws/credentials home/.aws/credentials .docker/config.json .kube/config a.tfstate terraform.tfstate.backup \
             terraform.tfstate.1700000000.backup prod.tfvars x.auto.tfvars prod.tfvars.json prod.env config/staging.env \
             .env .env.local .env.production .envrc a/b/c/d/.env cert.p12 cert.PFX store.jks debug.keystore putty.ppk \
             credentials.json service-account.json service_account_prod.json client_secret_1-x.json .htpasswd \
             secrets.yml config/secrets.yaml server.key Secrets.json config/master.key passwords.kdbx",
            Kind::Secret,
        );
        check(
            ".env.example .env.sample .env.template .env.dist example.env sample.env apps/web/.env.example \
             terraform.tfvars.example secrets.example.yml credentials.sample.json .npmrc.template .env-example",
            Kind::Example,
        );
        check(
            "main.rs src/service_account.rs id_rsa.pub cert.pem known_hosts config.json .kube/cache environment.ts \
             docker/config.json README.md package-lock.json public.key .environment.md service-account.md keyboard \
             monkey.txt secrets.rs secrets.py docs/secrets.md env.json credentials.go",
            Kind::Ordinary,
        );
        assert!(is_settings(b".env.local") && is_settings(b"prod.env"));
        assert!(!is_settings(b".env.example") && !is_settings(b".npmrc"));
    }

    #[test]
    fn contents_are_judged_by_what_the_file_is() {
        let redactor = Redactor::knowing(["K7nown9Secret".to_owned()]);
        let token = "ghp_".to_owned() + &"Fake0Secret1".repeat(3);
        let check = |bytes: &[u8], kind, expected| {
            let shown = bytes.escape_ascii();
            assert_eq!(redactor.finds_in(bytes, kind), expected, "{shown}");
        };
        check(b"password = \"hunter22\"\n", Kind::Ordinary, true);
        check(b"fn main() {}\n", Kind::Ordinary, false);
        check(b"DB_PASSWORD=postgres\nURL=postgres://app:postgres@db/app\n", Kind::Example, false);
        check(b"DB_PASSWORD=Tr0ub4dor-x9\n", Kind::Example, true);
        check(token.as_bytes(), Kind::Example, true);
        // Not text: only what cannot stand there by chance.
        check(b"\0password=hunter22\0", Kind::Ordinary, false);
        check(&[b"\0\x01".as_slice(), token.as_bytes(), b"\0"].concat(), Kind::Ordinary, true);
        check(b"\0\xffK7nown9Secret\0", Kind::Ordinary, true);
        check(b"caf\xe9 password=hunter22", Kind::Ordinary, true);
        let wide: Vec<u8> =
            "\u{feff}password=hunter22".encode_utf16().flat_map(u16::to_le_bytes).collect();
        check(&wide, Kind::Ordinary, true);
    }
}
