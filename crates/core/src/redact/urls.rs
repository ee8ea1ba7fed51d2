//! Passwords in URLs: `postgres://app:secret@db/app`.

use std::ops::Range;

use super::shapes::is_dotted;
use super::{LONG, Spot, assigned};

/// Passwords in URLs. The user and the host stay.
pub(super) fn spots(text: &str) -> Vec<Spot<'_>> {
    let mut spots = Vec::new();
    // Some encoders of JSON escape the slash.
    for mark in ["://", ":\\/\\/"] {
        for (at, _) in text.match_indices(mark) {
            spots.extend(password_at(text, at + mark.len()).map(Spot::at));
        }
    }
    spots.sort_by_key(|spot| spot.range.start);
    spots
}

/// The password in a value that is a URL.
pub(super) fn password_in_url(value: &str) -> Option<&str> {
    let host = value.find("://")? + 3;
    password_at(value, host).map(|range| &value[range])
}

fn password_at(text: &str, start: usize) -> Option<Range<usize>> {
    let rest = &text[start..];
    let is_end = |letter: char| letter.is_whitespace() || "/?#\"'`\\<>,|".contains(letter);
    let place = &rest[..rest.find(is_end).unwrap_or(rest.len())];
    let (user, password) = match place.rsplit_once('@') {
        Some((login, _)) => login.split_once(':')?,
        None => login_with_slash(rest, place)?,
    };
    let is_hidden = password.is_empty() || assigned::is_placeholder(password);
    let at = start + user.len() + 1;
    (!is_hidden).then(|| at..at + password.len())
}

/// The user and the password of a URL whose password has a `/`, `?` or `#` in it that should have been
/// escaped. `host:8080/path@2x` has none: what stands there is a port.
fn login_with_slash<'t>(rest: &'t str, place: &'t str) -> Option<(&'t str, &'t str)> {
    let (user, start) = place.split_once(':')?;
    let is_port = start.bytes().all(|byte| byte.is_ascii_digit());
    let is_name = user.bytes().all(|byte| is_dotted(byte) || byte == b'%');
    let sign = rest[place.len()..].chars().next()?;
    if is_port || !is_name || !"/?#".contains(sign) {
        return None;
    }
    let is_end = |letter: char| letter.is_whitespace() || "\"'`\\<>,|".contains(letter);
    let rest = &rest[..rest.floor_char_boundary(LONG)];
    let whole = &rest[..rest.find(is_end).unwrap_or(rest.len())];
    let (login, host) = whole.rsplit_once('@')?;
    let host = &host[..host.find(['/', '?', ':', '#']).unwrap_or(host.len())];
    let is_host = !host.is_empty() && host.bytes().all(is_dotted);
    is_host.then(|| (user, &login[user.len() + 1..]))
}
