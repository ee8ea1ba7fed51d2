//! Which facts are told. What must be told is there at every budget; everything else has a rank, and what
//! ranks lowest goes first, until the rest fits. Nothing is dropped without being counted.

use serde::Serialize;

use super::rank::Writer;
use super::render::render;
use super::{Facts, Format};
use crate::budget::tokens;
use crate::work::TaskStatus;

/// The budget cannot hold what must not be dropped.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("{budget} tokens cannot hold what must be told; the least that is possible is {least}")]
pub struct TooSmall {
    pub budget: usize,
    pub least: usize,
}

/// What is told, part by part.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Brief {
    pub title: String,
    pub session: String,
    #[serde(rename = "type")]
    pub kind: Option<String>,
    pub task: Option<String>,
    pub phase: Option<String>,
    pub checkpoint: Option<String>,
    pub branch: Option<String>,
    pub artifacts: Part,
    pub tasks: Vec<TaskLine>,
    pub n_open_left_out: usize,
    pub n_done_left_out: usize,
    pub blockers: Part,
    pub approvals: Part,
    pub steps: Part,
    pub fork_points: Part,
    pub decisions: Part,
    pub gates: Part,
    pub delegations: Part,
    pub worktrees: Part,
    pub partitions: Part,
    pub commits: Part,
    pub drift: Part,
    pub recent: Part,
    pub records: Part,
    pub next: String,
    pub n_dropped: usize,
    pub tokens: usize,
}

/// Lines of one kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Part {
    pub lines: Vec<Line>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    pub text: String,
    pub(super) keep: Keep,
}

impl Serialize for Line {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.text)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TaskLine {
    pub key: String,
    pub title: String,
    pub status: TaskStatus,
    /// Why it failed, what it waits for, who has it.
    pub about: Option<String>,
    #[serde(skip)]
    pub(super) keep: Keep,
}

/// What must not be dropped, and in which order the rest is: the lowest rank first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Keep {
    May(u32),
    Must,
}

/// How much room the lines that must be told are given.
#[derive(Clone, Copy, Debug)]
pub(super) struct Room {
    pub(super) n_tasks: usize,
    pub(super) n_others: usize,
    pub(super) task_tokens: usize,
    pub(super) line_tokens: usize,
}

const ROOMS: [Room; 4] = [
    Room { n_tasks: 40, n_others: 10, task_tokens: 24, line_tokens: 60 },
    Room { n_tasks: 20, n_others: 6, task_tokens: 16, line_tokens: 30 },
    Room { n_tasks: 40, n_others: 10, task_tokens: 8, line_tokens: 20 },
    Room { n_tasks: 10, n_others: 4, task_tokens: 6, line_tokens: 12 },
];

pub(super) fn select(facts: &Facts, format: Format, budget: usize) -> Result<Brief, TooSmall> {
    let mut least = 0;
    for room in ROOMS {
        let mut brief = Writer { facts, room }.write();
        brief.drop_until(budget, format);
        if brief.tokens <= budget {
            return Ok(brief);
        }
        least = brief.tokens;
    }
    Err(TooSmall { budget, least })
}

impl Brief {
    fn parts(&mut self) -> [&mut Part; 14] {
        [
            &mut self.artifacts,
            &mut self.blockers,
            &mut self.approvals,
            &mut self.steps,
            &mut self.fork_points,
            &mut self.decisions,
            &mut self.gates,
            &mut self.delegations,
            &mut self.worktrees,
            &mut self.partitions,
            &mut self.commits,
            &mut self.drift,
            &mut self.recent,
            &mut self.records,
        ]
    }

    /// Drops what ranks lowest until it fits, or nothing is left that may be dropped.
    fn drop_until(&mut self, budget: usize, format: Format) {
        loop {
            // The closing line tells the cost, and is part of it.
            self.tokens = 0;
            self.tokens = tokens(&render(self, format)) + 8;
            let Some(excess) = self.tokens.checked_sub(budget).filter(|excess| *excess > 0) else {
                return;
            };
            let mut ranked: Vec<(u32, usize)> = Vec::new();
            let costs = |keep, text: &str| match keep {
                Keep::May(rank) => Some((rank, tokens(text) + 1)),
                Keep::Must => None,
            };
            // A task's line has its key, its status and more around the title.
            const AROUND: usize = 8;
            let tasks = self.tasks.iter().filter_map(|it| costs(it.keep, &it.title));
            ranked.extend(tasks.map(|(rank, cost)| (rank, cost + AROUND)));
            for part in self.parts() {
                ranked.extend(part.lines.iter().filter_map(|it| costs(it.keep, &it.text)));
            }
            ranked.sort_unstable();
            let mut saved = 0;
            let worth = ranked.iter().take_while(|(_, cost)| {
                let goes = saved < excess;
                saved += cost;
                goes
            });
            let Some((limit, _)) = worth.last().copied() else {
                return;
            };
            self.drop_up_to(limit);
        }
    }

    fn drop_up_to(&mut self, limit: u32) {
        let stays = |keep: Keep| keep > Keep::May(limit);
        let gone = self.tasks.iter().filter(|it| !stays(it.keep));
        let (done, open): (Vec<&TaskLine>, Vec<&TaskLine>) =
            gone.partition(|it| it.status.is_over());
        self.n_done_left_out += done.len();
        self.n_open_left_out += open.len();
        self.tasks.retain(|it| stays(it.keep));
        let mut n_dropped = 0;
        for part in self.parts() {
            n_dropped += part.lines.iter().filter(|it| !stays(it.keep)).count();
            part.lines.retain(|it| stays(it.keep));
        }
        self.n_dropped += n_dropped;
    }
}
