//! How much a text costs a model. Counted without its tokenizer, and never too low for prose or code.

/// About how many tokens a text has: four letters of plain text make one, everything else counts more.
pub fn tokens(text: &str) -> usize {
    let (mut plain, mut other) = (0, 0);
    for letter in text.chars() {
        match letter.is_ascii_alphanumeric() || letter == ' ' {
            true => plain += 1,
            false => other += if letter.is_ascii() { 1 } else { 2 },
        }
    }
    (plain as usize).div_ceil(4) + (other as usize).div_ceil(2)
}

/// As much of a text as so many tokens buy, whole lines first.
pub fn cut(text: &str, most: usize) -> String {
    if tokens(text) <= most {
        return text.to_owned();
    }
    let mut end = text.len();
    while end > 0 && tokens(&text[..end]) + 1 > most {
        end = text.floor_char_boundary(end * 9 / 10);
    }
    format!("{}…", text[..end].trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_cut_fits() {
        let text = "fn main() { say(\"hello, world\"); }\n".repeat(100);
        for most in [1, 10, 60, 1000] {
            assert!(tokens(&cut(&text, most)) <= most.max(2), "{most}");
        }
        assert_eq!(cut("short", 60), "short");
    }
}
