//! One of several, chosen by key: what each key does.

/// A key as far as it matters here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    Up,
    Down,
    Enter,
    /// Escape, Ctrl+C, or the end of the input.
    Away,
    Letter(char),
}

/// What a key leads to. Numbers count from nought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Press {
    Show(usize),
    Take(usize),
    Leave,
    Nothing,
}

/// What a key does while `shown` is offered. Each choice has its number and its letter.
pub fn press(key: Key, shown: usize, letters: &[char]) -> Press {
    let n_choices = letters.len();
    match key {
        Key::Up | Key::Letter('k') => Press::Show((shown + n_choices - 1) % n_choices),
        Key::Down | Key::Letter('j') => Press::Show((shown + 1) % n_choices),
        Key::Enter => Press::Take(shown),
        Key::Away | Key::Letter('q') => Press::Leave,
        Key::Letter(letter) => {
            let number = letter.to_digit(10).map(|it| it as usize).filter(|it| *it <= n_choices);
            let by_number = number.and_then(|number| number.checked_sub(1));
            let by_letter = letters.iter().position(|it| it.eq_ignore_ascii_case(&letter));
            by_number.or(by_letter).map_or(Press::Nothing, Press::Take)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_move_choose_and_leave() {
        let check = |key: Key, shown: usize, expected: Press| {
            assert_eq!(press(key, shown, &['r', 's', 'v', 'c']), expected, "{key:?}");
        };
        check(Key::Enter, 0, Press::Take(0));
        check(Key::Down, 0, Press::Show(1));
        check(Key::Letter('j'), 3, Press::Show(0));
        check(Key::Up, 0, Press::Show(3));
        check(Key::Letter('k'), 2, Press::Show(1));
        check(Key::Letter('3'), 0, Press::Take(2));
        check(Key::Letter('5'), 0, Press::Nothing);
        check(Key::Letter('0'), 0, Press::Nothing);
        check(Key::Letter('V'), 0, Press::Take(2));
        check(Key::Letter('q'), 0, Press::Leave);
        check(Key::Away, 2, Press::Leave);
        check(Key::Letter('x'), 2, Press::Nothing);
    }
}
