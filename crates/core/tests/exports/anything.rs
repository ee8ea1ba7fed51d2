//! Whatever anybody may write: texts that mean no good, work made of them, and files of any bytes.

use bivouac_core::text::Note;
use bivouac_core::work::{
    Approval, Blocker, Check, Decision, Delegation, ForkOption, ForkPoint, Item, Outline, Output,
    Partition, Phase, Step, Task, TaskStatus, Verdict, Work,
};
use proptest::collection::vec;
use proptest::option::of;
use proptest::prelude::{Strategy, any, prop, prop_oneof};

use crate::story::at;

/// What means something to Markdown, to a terminal, or to the files themselves.
const NASTY: [&str; 59] = [
    "a",
    "b c",
    " ",
    "  ",
    "|",
    "\\",
    "\\|",
    "\n",
    "\r\n",
    "`",
    "```",
    "~~~",
    "<!-- x -->",
    "-->",
    "<!--",
    "<br>",
    "# ",
    "## Completed Work",
    "- ",
    "1. ",
    "> ",
    "[x] ",
    "**",
    "**bold**",
    ": ",
    ":",
    ", ",
    ";",
    "(rejected: x)",
    "(ref: y)",
    "(failed: z)",
    ")",
    "Reason: ",
    "Phase 2 of 3 — ",
    "—",
    "→",
    "✅",
    "🔄",
    "‚úÖ",
    "üîÑ",
    "\u{202e}",
    "\u{1b}[2J",
    "&lt;",
    "&#x41;",
    "&",
    "<b>",
    "![i](x)",
    "---",
    "===",
    "None",
    "Not recorded",
    "<!-- biv:end -->",
    "\t",
    "é",
    "=",
    "|---|",
    "Step 1: ",
    "- **Agent:** x",
    "…",
];

/// What somebody may write who means no good, or does not care.
pub(crate) fn nasty() -> impl Strategy<Value = String> {
    let pieces = prop::sample::select(&NASTY[..]);
    vec(pieces, 0..5).prop_map(|pieces| pieces.concat())
}

fn note() -> impl Strategy<Value = Option<Note>> {
    of(nasty().prop_map(|text| Note::cut(&text)))
}

fn word() -> impl Strategy<Value = Option<String>> {
    of(nasty())
}

fn words() -> impl Strategy<Value = Option<Vec<String>>> {
    of(vec(nasty(), 0..3))
}

fn status() -> impl Strategy<Value = Option<TaskStatus>> {
    of(prop::sample::select(TaskStatus::ALL.to_vec()))
}

fn verdict() -> impl Strategy<Value = Verdict> {
    prop::sample::select(vec![Verdict::Pass, Verdict::Fail])
}

/// Keys are never empty: the journal sees to that.
fn key() -> impl Strategy<Value = String> {
    prop_oneof!["[0-9]{1,3}", "[a-z]{1,8}", nasty().prop_map(|text| format!("{text}k"))]
}

fn task() -> impl Strategy<Value = Item> {
    let words = (words(), words(), note(), note());
    (key(), note(), status(), word(), word(), words).prop_map(
        |(task, subject, status, issue, agent, (files, depends_on, note, failure))| {
            let task = Task {
                task,
                subject,
                status,
                issue,
                agent,
                files,
                depends_on,
                note,
                failure,
                by: None,
                listed: None,
            };
            Item::Task(Box::new(task))
        },
    )
}

fn talk() -> impl Strategy<Value = Item> {
    let notes = of(vec(nasty().prop_map(|text| Note::cut(&text)), 0..3));
    let decision = (key(), note(), note(), notes).prop_map(|(decision, title, why, rejected)| {
        Item::Decision(Box::new(Decision { decision, title, why, rejected, by: None }))
    });
    let blocker = (key(), note(), note(), word(), note()).prop_map(
        |(blocker, what, needs, reference, resolution)| {
            Item::Blocker(Box::new(Blocker {
                blocker,
                what,
                needs,
                reference,
                resolution,
                by: None,
            }))
        },
    );
    let approval = (key(), note(), word(), word(), of(0_u32..9_000)).prop_map(
        |(approval, question, provider, channel, minute)| {
            let posted_at = minute.map(at);
            let thread = channel.clone();
            Item::Approval(Box::new(Approval {
                approval,
                question,
                provider,
                channel,
                thread,
                posted_at,
                answer: None,
                by: None,
            }))
        },
    );
    let notes = of(vec(nasty().prop_map(|text| Note::cut(&text)), 0..3));
    let outline = (note(), words(), note(), note(), notes).prop_map(
        |(feature, issues, approach, next, instructions)| {
            Item::Outline(Box::new(Outline {
                feature,
                issues,
                approach,
                next,
                instructions,
                ..Outline::default()
            }))
        },
    );
    let phase =
        (word(), of(0_u32..9), of(0_u32..9), note()).prop_map(|(name, number, total, about)| {
            Item::Phase(Box::new(Phase { name, number, total, about, ..Phase::default() }))
        });
    prop_oneof![decision, blocker, approval, outline, phase]
}

fn step() -> impl Strategy<Value = Item> {
    let output =
        (word(), nasty(), note()).prop_map(|(what, path, about)| Output { what, path, about });
    let check = (nasty(), verdict()).prop_map(|(name, verdict)| Check { name, verdict });
    let told = (of(vec(output, 0..3)), of(vec(check, 0..3)), note(), note(), of(0_u32..4));
    (key(), note(), status(), word(), of(any::<u64>()), told).prop_map(
        |(step, title, status, agent, seconds, (outputs, checks, cached, error, attempt))| {
            let issue = agent.clone();
            Item::Step(Box::new(Step {
                step,
                title,
                status,
                agent,
                issue,
                attempt,
                seconds,
                outputs,
                checks,
                cached,
                error,
                ..Step::default()
            }))
        },
    )
}

fn work_of_others() -> impl Strategy<Value = Item> {
    let cost = (of(0_u64..9_999_999), of(0_u64..99_999), of(any::<bool>()), note());
    let delegation = (key(), word(), word(), word(), status(), cost).prop_map(
        |(delegation, agent, issue, tier, status, (tokens, seconds, is_review, note))| {
            Item::Delegation(Box::new(Delegation {
                delegation,
                agent,
                issue,
                tier,
                tokens,
                seconds,
                status,
                is_review,
                note,
                by: None,
            }))
        },
    );
    let list = || vec(nasty(), 0..3);
    let option = (nasty(), nasty(), list(), list(), list()).prop_map(
        |(letter, title, pros, cons, files)| ForkOption { letter, title, pros, cons, files },
    );
    let fork = (key(), note(), of(vec(option, 0..3)), word(), word(), note()).prop_map(
        |(fork_point, title, options, needed_from, chosen, why)| {
            Item::ForkPoint(Box::new(ForkPoint {
                fork_point,
                title,
                options,
                needed_from,
                chosen,
                why,
                by: None,
            }))
        },
    );
    let partition = (key(), words())
        .prop_map(|(agent, paths)| Item::Partition(Box::new(Partition { agent, paths, by: None })));
    prop_oneof![delegation, fork, partition]
}

pub(crate) fn any_work() -> impl Strategy<Value = Work> {
    let item = prop_oneof![3 => task(), 3 => talk(), 2 => step(), 3 => work_of_others()];
    vec(item, 0..14).prop_map(|items| folded(&items))
}

pub(crate) fn folded(items: &[Item]) -> Work {
    let mut work = Work::default();
    for (minute, item) in items.iter().enumerate() {
        work.apply(&item.clone().into_event(), at(minute as u32));
    }
    work
}

/// Lines of any bytes, some of which look like ours.
pub(crate) fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let line = prop_oneof![
        vec(any::<u8>(), 0..12),
        prop::sample::select(vec![
            &b"```"[..],
            b"~~~",
            b"# A",
            b"## Working State",
            b"- **Key**: v",
            b"<!-- biv:begin -->",
            b"<!-- biv:end -->",
            b"---",
            b"",
            b"\r",
            b"\xef\xbb\xbf",
            b"## Task",
        ])
        .prop_map(<[u8]>::to_vec),
    ];
    vec(line, 0..8).prop_map(|lines| lines.join(&b'\n'))
}
