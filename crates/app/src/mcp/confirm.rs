//! A rollback that a model asks for. First the plan; then the person's word, asked for by the client, or given as
//! a code that `biv confirm` shows on the person's terminal; then exactly that plan. No argument a model can
//! write is enough.

use bivouac_core::progress::Silent;
use bivouac_engine::Engine;
use bivouac_engine::home::Wishes;
use bivouac_engine::open::Need;
use rmcp::model::{
    ClientResult, ElicitRequest, ElicitRequestParams, ElicitationAction, ElicitationSchema,
    ServerRequest,
};
use rmcp::{Peer, RoleServer};
use serde_json::{Value, json};

use super::answer::Told;
use super::tools::Typed;

/// What a person is shown of a long plan.
const MOST_LINES: usize = 24;

/// What the person said.
pub(super) enum Word {
    Yes,
    No,
    /// The client cannot ask, or nobody answered.
    Nobody,
}

/// The same rollback, only looked at.
pub(super) fn look(checkpoint: &str) -> Typed {
    Typed::new("checkpoint rollback").flag("dry-run", true).with(checkpoint.to_owned())
}

/// The same rollback, as it was confirmed and not otherwise.
pub(super) fn carry_out(checkpoint: &str, plan: &str) -> Typed {
    let command = Typed::new("checkpoint rollback").flag("yes", true);
    command.set("plan", Some(plan.to_owned())).with(checkpoint.to_owned())
}

/// The id of a plan that would change something.
pub(super) fn plan_in(document: &Value) -> Option<String> {
    let steps = document.get("steps").and_then(Value::as_array)?;
    let plan = document.get("plan").and_then(Value::as_str)?;
    (!steps.is_empty()).then(|| plan.to_owned())
}

/// Asks the person through the client.
pub(super) async fn ask(peer: &Peer<RoleServer>, document: &Value) -> Word {
    let can_ask = peer.peer_info().is_some_and(|it| it.capabilities.elicitation.is_some());
    if !can_ask {
        return Word::Nobody;
    }
    let schema = json!({
        "type": "object",
        "properties": { "confirm": { "type": "boolean", "title": "Roll back", "description": "Everything is saved first; `biv undo` takes it back" } },
        "required": ["confirm"],
    });
    let Ok(requested_schema) = serde_json::from_value::<ElicitationSchema>(schema) else {
        return Word::Nobody;
    };
    let params = ElicitRequestParams::FormElicitationParams {
        meta: None,
        message: in_words(document),
        requested_schema,
    };
    let request = ServerRequest::ElicitRequest(ElicitRequest::new(params));
    match peer.send_request(request).await {
        Ok(ClientResult::ElicitResult(answer)) => match answer.action {
            ElicitationAction::Accept => {
                let said = answer.content.and_then(|it| it.get("confirm").and_then(Value::as_bool));
                if said == Some(true) { Word::Yes } else { Word::No }
            }
            ElicitationAction::Decline => Word::No,
            _ => Word::Nobody,
        },
        Ok(_) | Err(_) => Word::Nobody,
    }
}

/// The plan, as a person reads it.
fn in_words(document: &Value) -> String {
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let steps = document["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut lines = vec![format!(
        "An agent wants to roll back to {}. Files that would change:",
        text(&document["target"], "handle")
    )];
    let line = |step: &Value| format!("  {} {}", text(step, "action"), text(step, "path"));
    lines.extend(steps.iter().take(MOST_LINES).map(line));
    if steps.len() > MOST_LINES {
        lines.push(format!("  … and {} more", steps.len() - MOST_LINES));
    }
    lines.join("\n")
}

/// Puts the question where `biv confirm` finds it, and tells the model what to do meanwhile.
pub(super) fn leave_question(document: Value, plan: &str, place: &Wishes) -> Told {
    let asked = Engine::open(place, Need::Write, Box::new(Silent)).and_then(|engine| {
        let target = document["target"]["handle"].as_str().unwrap_or_default();
        let kept = engine.checkpoint(target, None)?;
        engine.ask_consent(kept.taken.checkpoint.id, plan)
    });
    if let Err(error) = asked {
        return Told::error(&error.to_string(), &error.hint().unwrap_or_default());
    }
    let how = "nothing was changed. Show the person this plan, and ask them to run `biv confirm` in a \
               terminal of their own; call again with the `code` it shows";
    Told::document(document, vec![how.to_owned()])
}

/// Takes the person's code. `None` when it is the right one.
pub(super) fn take_code(code: &str, plan: &str, place: &Wishes) -> Option<Told> {
    let taken = Engine::open(place, Need::Write, Box::new(Silent))
        .and_then(|engine| engine.take_consent(plan, code));
    let error = taken.err()?;
    Some(Told::error(&error.to_string(), &error.hint().unwrap_or_default()))
}
