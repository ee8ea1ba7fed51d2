//! Which bytes of a database hold something: SQLite reads no others.

/// A mark for every byte: does it hold something that the log has no newer copy of?
pub(super) fn used(database: &[u8], log: &[u8]) -> Vec<bool> {
    let mut used = filled(database);
    let page_size = 4096;
    for frame in log.get(32..).unwrap_or_default().chunks_exact(24 + page_size) {
        let number = u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize;
        let start = number.saturating_sub(1) * page_size;
        used.iter_mut().skip(start).take(page_size).for_each(|it| *it = false);
    }
    used
}

fn filled(database: &[u8]) -> Vec<bool> {
    let page_size = match database.get(16..18) {
        Some(&[0, 1]) => 65_536,
        Some(&[high, low]) => usize::from(high) << 8 | usize::from(low),
        _ => return vec![true; database.len()],
    };
    let mut used = Vec::with_capacity(database.len());
    for (number, page) in database.chunks(page_size).enumerate() {
        let start = if number == 0 { 100 } else { 0 };
        used.extend(used_of(page, start));
    }
    used
}

/// A page of a tree has a gap between what points to cells and the cells. Of any other page, what follows the last
/// byte that is not 0 is empty.
fn used_of(page: &[u8], start: usize) -> Vec<bool> {
    let number = |at: usize| usize::from(page[start + at]) << 8 | usize::from(page[start + at + 1]);
    let header = match page.get(start) {
        Some(2 | 5) => 12,
        Some(10 | 13) => 8,
        _ => {
            let end = page.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
            return (0..page.len()).map(|at| at < end).collect();
        }
    };
    let pointers_end = start + header + 2 * number(3);
    let cells = match number(5) {
        0 => 65_536,
        cells => cells,
    };
    (0..page.len()).map(|at| at < pointers_end || at >= cells).collect()
}
