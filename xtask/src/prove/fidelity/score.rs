//! What of a conversation came back: the messages that are there again, in order, of all that the model's own log
//! knows to have been said.

use bivouac_testkit::agents::Request;
use serde_json::Value;

/// The conversation as the model knew it.
pub(super) struct Known {
    /// When the agent was killed.
    at_kill: Vec<String>,
    /// At the end of the last turn that was saved.
    at_checkpoint: Vec<String>,
}

/// How one resume went.
#[derive(Default)]
pub(super) struct Score {
    /// Of the messages known at the kill.
    pub(super) conversation: f64,
    /// Messages of the last checkpoint that did not come back.
    pub(super) lost: Vec<String>,
    /// `None` where nothing had been saved that could be compared with.
    pub(super) has_files: Option<bool>,
    pub(super) facts: f64,
    /// Tokens of the first request, and seconds until it came. `None` if none came.
    pub(super) cost: Option<(usize, f64)>,
    pub(super) why_not: String,
}

impl Known {
    pub(super) fn new(log: &[Value], saved_at: Option<i64>) -> Self {
        let at_checkpoint = saved_at.map(|at| conversation(log, at)).unwrap_or_default();
        Self { at_kill: conversation(log, i64::MAX), at_checkpoint }
    }

    pub(super) fn score(&self, resumed: &[String]) -> Score {
        let n_back = in_order(&self.at_kill, resumed).len();
        let back = in_order(&self.at_checkpoint, resumed);
        let lost = self.at_checkpoint.iter().enumerate().filter(|(at, _)| !back.contains(at));
        Score {
            conversation: n_back as f64 / self.at_kill.len().max(1) as f64,
            lost: lost.map(|(_, it)| it.clone()).collect(),
            ..Score::default()
        }
    }
}

/// All that was said up to a moment: what the last request held, and its answer if that was sent to its end.
fn conversation(log: &[Value], until: i64) -> Vec<String> {
    let is_in_time =
        |it: &&Value| it["time"].as_f64().is_some_and(|at| at * 1000.0 <= until as f64);
    let is_job = |it: &&Value| {
        let script = it["reply"]["script"].as_str();
        it["kind"] == "main" && script.is_some_and(|it| it.starts_with("job-"))
    };
    let Some(last) = log.iter().filter(is_in_time).rfind(is_job) else {
        return Vec::new();
    };
    let request = Request(last.clone());
    let mut lines = request.whole_conversation();
    let is_answer = |it: &Value| it["kind"] == "answered" && it["of"] == last["seq"];
    if log.iter().filter(is_in_time).any(is_answer) {
        lines.push(request.answer());
    }
    lines
}

/// Which of the messages are in another conversation, in the same order: as many as can be.
fn in_order(messages: &[String], others: &[String]) -> Vec<usize> {
    let (rows, columns) = (messages.len(), others.len());
    // `best[i][j]`: how many of the messages from `i` on are among the others from `j` on.
    let mut best = vec![vec![0_usize; columns + 1]; rows + 1];
    for i in (0..rows).rev() {
        for j in (0..columns).rev() {
            best[i][j] = match messages[i] == others[j] {
                true => best[i + 1][j + 1] + 1,
                false => best[i + 1][j].max(best[i][j + 1]),
            };
        }
    }
    let (mut i, mut j, mut found) = (0, 0, Vec::new());
    while i < rows && j < columns {
        if messages[i] == others[j] {
            found.push(i);
            (i, j) = (i + 1, j + 1);
        } else if best[i + 1][j] >= best[i][j + 1] {
            i += 1;
        } else {
            j += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_back_is_counted_in_order() {
        let check = |messages: &str, others: &str, expected: &[usize]| {
            let words = |it: &str| it.chars().map(String::from).collect::<Vec<_>>();
            assert_eq!(in_order(&words(messages), &words(others)), expected, "{messages} {others}");
        };
        check("abc", "abc", &[0, 1, 2]);
        check("abc", "xaybzc", &[0, 1, 2]);
        check("abc", "cab", &[0, 1]);
        check("abc", "", &[]);
    }
}
