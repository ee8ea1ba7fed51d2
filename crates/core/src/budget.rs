//! How much a text costs a model, counted without its tokenizer and meant never to be too low.
//!
//! The prices were fitted to two real tokenizers, and `tests/tokens.rs` holds them to it: in pieces of 2,000
//! and 20,000 bytes this repository is counted 25 and 22 % too high on average, at least 4 %; short pieces, other
//! scripts and drawn boxes up to three times what they cost.

/// Prices are in sixteenths of a token.
const TOKEN: usize = 16;
/// Longer runs of letters or signs are counted in parts.
const LONGEST: usize = 64;
/// What a sign costs less if it can merge with the word after it.
const MERGED: usize = 9;
/// Short texts stray further from the mean than long ones: this, times the root of their length.
const DOUBT: usize = 10;

/// About how many tokens a text has, and rather too many than too few.
pub fn tokens(text: &str) -> usize {
    let price = pieces(text).map(|piece| piece.price).sum();
    in_tokens(price, text.len())
}

/// As much of a text as so many tokens buy, up to the end of a word where there is one.
pub fn cut(text: &str, most: usize) -> String {
    const MARK: &str = "…";
    // At most so much more for the mark, and for a sign that has lost the word it merged with.
    const ENDING: usize = 2 * TOKEN + MERGED;
    let (mut price, mut end, mut end_of_word) = (0, 0, 0);
    let mut is_whole = true;
    for piece in pieces(text) {
        price += piece.price;
        let fits = in_tokens(price + ENDING, piece.end + MARK.len()) <= most;
        if fits {
            end = piece.end;
        }
        if fits && matches!(text.as_bytes().get(end), Some(b' ' | b'\n')) {
            end_of_word = end;
        }
        // A sign gives back at most what it merges.
        if in_tokens(price.saturating_sub(MERGED), piece.end) > most {
            is_whole = false;
            break;
        }
    }
    if is_whole && in_tokens(price, text.len()) <= most {
        return text.to_owned();
    }
    let end = if end_of_word * 2 > end { end_of_word } else { end };
    format!("{}{MARK}", text[..end].trim_end())
}

fn in_tokens(price: usize, length: usize) -> usize {
    (price + DOUBT * length.isqrt()).div_ceil(TOKEN)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Blank,
    Line,
    Letters,
    Digits,
    Signs,
    Other,
}

/// A run of one kind.
struct Piece {
    end: usize,
    price: usize,
}

fn pieces(text: &str) -> impl Iterator<Item = Piece> {
    let bytes = text.as_bytes();
    let (mut at, mut before) = (0, Kind::Line);
    std::iter::from_fn(move || {
        let kind = kind(*bytes.get(at)?);
        let rest = &bytes[at..bytes.len().min(at + LONGEST)];
        let run = match kind {
            Kind::Other => {
                text[at..].chars().next().map_or(&rest[..0], |it| &rest[..it.len_utf8()])
            }
            _ => &rest[..rest.iter().position(|it| self::kind(*it) != kind).unwrap_or(rest.len())],
        };
        let end = at + run.len();
        let price = match kind {
            Kind::Blank => blanks(run, before),
            Kind::Line if before == Kind::Signs => 1,
            Kind::Line => 17,
            Kind::Letters => letters(run, before),
            Kind::Digits => {
                // A blank does not merge with a number.
                (run.len().div_ceil(3) + usize::from(before == Kind::Blank)) * TOKEN
            }
            Kind::Signs => {
                // After a blank it has merged with that.
                let merges = run.len() == 1
                    && before != Kind::Blank
                    && bytes.get(end).is_some_and(u8::is_ascii_alphabetic);
                signs(run) - if merges { MERGED } else { 0 }
            }
            Kind::Other => {
                let is_twin = at >= run.len() && bytes[at - run.len()..at] == *run;
                text[at..].chars().next().map_or(0, |letter| foreign(letter, is_twin))
            }
        };
        (at, before) = (end, kind);
        Some(Piece { end, price })
    })
}

fn kind(byte: u8) -> Kind {
    match byte {
        b' ' | b'\t' => Kind::Blank,
        b'\n' | b'\r' => Kind::Line,
        b'a'..=b'z' | b'A'..=b'Z' => Kind::Letters,
        b'0'..=b'9' => Kind::Digits,
        0x80.. => Kind::Other,
        _ => Kind::Signs,
    }
}

/// One blank merges with what follows, and a line with the blanks it begins with.
fn blanks(run: &[u8], before: Kind) -> usize {
    match run {
        b" " => 0,
        _ if before == Kind::Line => 11 + run.len() / 16,
        _ => TOKEN + run.len() / 16,
    }
}

/// A word is a token if it is short or common. It gets dearer with its length, and much dearer the less
/// it looks like a word: consonants in a row, rare letters, changes of case.
fn letters(run: &[u8], before: Kind) -> usize {
    let is_vowel = |byte: u8| matches!(byte | 0x20, b'a' | b'e' | b'i' | b'o' | b'u' | b'y');
    let is_rare = |byte: u8| matches!(byte | 0x20, b'j' | b'k' | b'q' | b'v' | b'w' | b'x' | b'z');
    let (mut n_hard, mut n_rare, mut n_upper, mut n_turns) =
        (0, usize::from(is_rare(run[0])), 0, 0);
    for pair in run.windows(2) {
        let [left, right] = [pair[0], pair[1]];
        n_hard += usize::from(!is_vowel(left) && !is_vowel(right));
        n_rare += usize::from(is_rare(right));
        n_upper += usize::from(left.is_ascii_uppercase() && right.is_ascii_uppercase());
        n_turns += usize::from(left.is_ascii_uppercase() != right.is_ascii_uppercase());
    }
    let is_capital = run.len() > 1 && run[0].is_ascii_uppercase() && run[1].is_ascii_lowercase();
    let past = |length: usize| run.len().saturating_sub(length);
    let by_length = match before {
        // A noun in German, or a name.
        Kind::Blank if is_capital => past(4).min(8) * 3 + past(6),
        Kind::Blank => past(6) * 2,
        _ => past(4) * 3 + past(6),
    };
    let is_glued = matches!(before, Kind::Digits | Kind::Other);
    TOKEN
        + by_length
        + past(12) * 4
        + if is_glued { 5 } else { 0 }
        + n_hard.saturating_sub(run.len().div_ceil(3)) * 32
        + n_rare * 8
        + n_upper * 5
        + (n_turns - usize::from(is_capital)) * 3
}

/// Signs come in common pairs and in long lines of the same.
fn signs(run: &[u8]) -> usize {
    let n_same = run.windows(2).filter(|pair| pair[0] == pair[1]).count();
    let n_changes = run.len() - 1 - n_same;
    TOKEN + n_same + n_changes.saturating_sub(1) * 11
}

/// By alphabet. No letter costs more tokens than it has bytes.
fn foreign(letter: char, is_twin: bool) -> usize {
    match letter {
        _ if is_twin => 16,
        '\u{80}'..='\u{bf}' => 32,
        // Each stands for a text in another language, whose other words are dearer too.
        '\u{c0}'..='\u{24f}' => 48,
        '\u{400}'..='\u{52f}' => 9,
        '\u{2000}'..='\u{206f}' | '\u{250}'..='\u{7ff}' => 20,
        // Arrows, boxes and their like.
        '\u{2190}'..='\u{25ff}' => 32,
        '\u{3000}'..='\u{30ff}' | '\u{ff00}'..='\u{ffef}' => 20,
        '\u{3400}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' => 24,
        _ => letter.len_utf8() * TOKEN,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_fits() {
        let text = "fn main() { say(\"hello, world\"); }\n".repeat(100);
        for most in [2, 10, 60, 1000] {
            assert!(tokens(&cut(&text, most)) <= most, "{most}");
        }
        assert_eq!(cut("short", 60), "short");
        assert_eq!(cut("one two three four five six seven eight", 9), "one two three…");
    }
}
