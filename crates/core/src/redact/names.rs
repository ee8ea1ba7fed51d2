//! Names that announce a secret: `DB_PASSWORD`, `apiKey`, `X-Auth-Token`. Names that only talk about
//! one do not: `token_count`, `password_file`, `secretary`.

/// No name is longer.
const MOST: usize = 128;

/// These are secrets whatever stands before them, also glued together as in `PGPASSWORD`.
const SECRETS: [&str; 15] = [
    "secret",
    "secrets",
    "password",
    "passwords",
    "passwd",
    "passphrase",
    "passcode",
    "token",
    "apikey",
    "secretkey",
    "privatekey",
    "accesskey",
    "authkey",
    "storepass",
    "keypass",
];

/// A name that ends like this is about a secret and is none.
const ABOUT: &str = " address age algorithm alias algo arn attempts at audience bucket budget buffer cache charset class \
    cost count created description dir directory domain enabled endpoint env error exists expiration expired \
    expires expiry field file filename filter folder form format found generator group header help hint host id in \
    index input invalid is iter iterator kind label len length lexer lifetime limit link list location manager map \
    max message method min missing mode name names namespace number owner page parser path paths pattern per \
    placeholder policy pos position prefix price prompt provider rate ref reference regex region required reset \
    resolver rotation rule rules scanner scanning schema scheme scope scopes screen service set size source span \
    state status store strategy stream strength suffix total tree ttl type types uri url usage used user username \
    validation validator var variable version visible window ";

/// A token of these is a word of a text or a place in a list.
const COUNTED: &str = " bos cached class cls completion continuation current each end eos first input last mask max min next num \
    output pad page per prev previous prompt sep skip special start stop total unexpected unk ";

/// Tokens of these are secrets, even many.
const KEPT: &str = " access api auth bearer refresh secret ";

/// A key of these is a secret.
const KEYS: &str = " access account adafruit admin algolia anthropic api app application auth aws azure cohere \
    consumer datadog deploy encryption encrypt gemini google groq ingest insert integration io license mailgun master \
    mistral openai private sdk secret service session shared signing storage stripe subscription webhook write ";

/// What a `pass` opens.
const PASSES: &str = " admin app auth basic database db email ftp git http imap ldap login mail mongo mysql pg postgres proxy \
    rabbitmq redis root smtp ssh sudo user ";

/// Whether a variable or key of this name holds a secret.
pub fn is_telling(name: &str) -> bool {
    if name.len() > MOST {
        return false;
    }
    let name = name.trim_end_matches(['.', '-', ' ']);
    let own = name.rsplit('.').next().unwrap_or(name);
    let words = words(own);
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["cookie"] | ["set", "cookie"] | ["secret", "id"] => return true,
        ["auth"] => return own.starts_with('_'),
        // The shell's own variable is a folder.
        ["pwd"] => return own != "PWD",
        [.., last] if has(ABOUT, last) => return false,
        _ => {}
    }
    let before = std::iter::once("").chain(words.iter().copied());
    before.zip(&words).any(|(before, word)| tells(before, word))
}

fn tells(before: &str, word: &str) -> bool {
    match word {
        "token" => !has(COUNTED, before),
        "tokens" => has(KEPT, before),
        "key" | "keys" => has(KEYS, before),
        "pass" => has(PASSES, before),
        "pwd" => !before.is_empty() && before != "old",
        "credential" | "credentials" | "authorization" => true,
        _ => SECRETS.iter().any(|secret| word.ends_with(secret)),
    }
}

fn has(list: &str, word: &str) -> bool {
    !word.is_empty()
        && list.match_indices(word).any(|(at, _)| {
            list.as_bytes()[at - 1] == b' ' && list.as_bytes()[at + word.len()] == b' '
        })
}

/// The words of a name in lower case: `GITHUB_TOKEN`, `githubToken` and `GitHub-token2` have a `token`.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    let mut letters = name.chars().peekable();
    while let Some(letter) = letters.next() {
        let ends_capitals = before.is_uppercase()
            && letter.is_uppercase()
            && letters.peek().is_some_and(|next| next.is_lowercase());
        let is_start = !before.is_uppercase() && letter.is_uppercase() || ends_capitals;
        if !letter.is_alphabetic() || is_start {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| letter.is_alphabetic()) {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_tells_only_if_its_value_is_the_secret() {
        let telling = "password PASSWORD db_password DB_PASS PGPASSWORD passphrase api_key apiKey APIKEY X-Api-Key \
            OPENAI_API_KEY OPENAI_KEY client_secret clientSecret AWS_SECRET_ACCESS_KEY secretAccessKey token \
            GITHUB_TOKEN githubToken accessToken access_tokens _authToken AWS_SESSION_TOKEN secret_key_base \
            private_key credentials password_hash spring.datasource.password Pwd DB_PWD secret_id Authorization \
            MYSQL_ROOT_PASSWORD password2 --token _auth Cookie";
        let harmless = "tokens max_tokens token_count tokenizer n_tokens secretary password_hash_algorithm maxTokens \
            CLAUDE_CODE_MAX_OUTPUT_TOKENS TOKENIZERS_PARALLELISM token.rs token_type tokenUsage next_token \
            eos_token password_file PASSWORD_STORE_DIR secretName secret-scanning access_key_id private_key_id \
            public_key primary_key key keyboard monkey compass pass bypass PWD OLDPWD SSH_AUTH_SOCK GIT_ASKPASS \
            author authority passed cached_input_tokens token_url auth token.workspace";
        let wrong = telling.split_whitespace().filter(|name| !is_telling(name));
        assert_eq!(wrong.collect::<Vec<_>>(), Vec::<&str>::new());
        let wrong = harmless.split_whitespace().filter(|name| is_telling(name));
        assert_eq!(wrong.collect::<Vec<_>>(), Vec::<&str>::new());
    }
}
