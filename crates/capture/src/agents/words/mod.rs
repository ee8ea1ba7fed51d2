//! What models and people are told about us, once for all agents. Each agent's folder puts it in its own form.

use bivouac_core::agent::AgentKind;

use super::install::Folders;

/// Something a person can ask us from within an agent.
pub(super) struct Command {
    pub(super) name: &'static str,
    pub(super) description: &'static str,
    /// What may follow its name.
    pub(super) hint: Option<&'static str>,
    /// What the model is told, around our answer.
    pub(super) words: &'static str,
    /// The same where the model has to ask us itself.
    by_tool: &'static str,
}

pub(super) const COMMANDS: [Command; 2] = [
    Command {
        name: "checkpoint",
        description: "Save this session with Bivouac, go on with it, or list its checkpoints",
        hint: Some("[save [label] | resume | list]"),
        words: include_str!("checkpoint.md"),
        by_tool: include_str!("checkpoint_by_tool.md"),
    },
    Command {
        name: "rehydrate",
        description: "Tell the model what Bivouac knows about this session",
        hint: None,
        words: include_str!("rehydrate.md"),
        by_tool: include_str!("rehydrate_by_tool.md"),
    },
];

/// A line that nobody types by chance.
const END: &str = "BIV-END-8d1f";

impl Command {
    /// Its words with our answer, or what becomes our answer.
    pub(super) fn around(&self, answer: &str) -> String {
        self.words.replace("{{answer}}", answer)
    }

    /// How a shell asks us. It hands the words over as they are: no quote, dollar or backtick in them means
    /// anything to it.
    pub(super) fn shell(&self, agent: AgentKind, folders: &Folders, words: &str) -> String {
        format!("{} <<'{END}'\n{words}\n{END}", self.program(agent, folders))
    }

    pub(super) fn program(&self, agent: AgentKind, folders: &Folders) -> String {
        format!("{} slash {agent} {}", folders.binary(), self.name)
    }

    /// A skill by which the model asks us. `typed` is what the agent replaces by what the person typed.
    pub(super) fn as_skill(
        &self,
        agent: AgentKind,
        folders: &Folders,
        typed: Option<&str>,
        more: &str,
    ) -> String {
        let words = if self.hint.is_some() { "WORDS" } else { "" };
        let command = format!("```sh\n{}\n```", self.shell(agent, folders, words));
        let typed = typed.map(|it| format!(", in these words: {it}")).unwrap_or_default();
        let body = self.by_tool.replace("{{command}}", &command).replace("{{arguments}}", &typed);
        let description = format!("{}. Only when the person asks for it.", self.description);
        front_matter(self.name, &description, more) + &body
    }
}

/// What teaches a model to work with us.
pub(super) fn skill() -> String {
    let description = "Record decisions, blockers and steps so that this work survives a crash, a compaction or a \
                       new session; use when a choice is made, when something blocks, and after context was lost.";
    front_matter("bivouac", description, "") + include_str!("skill.md")
}

fn front_matter(name: &str, description: &str, more: &str) -> String {
    format!("---\nname: {name}\ndescription: {description}\n{more}---\n\n")
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_skill_is_short() {
        assert!(include_str!("skill.md").split_whitespace().count() <= 250);
    }
}
