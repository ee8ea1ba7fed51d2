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

use super::answer::{Told, quoted};
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

/// The same rollback, as it was confirmed and not otherwise.
pub(super) fn carry_out(checkpoint: &str, plan: &str) -> Typed {
    let command = Typed::new("checkpoint rollback").flag("yes");
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
    let requested_schema: ElicitationSchema =
        serde_json::from_value(schema).expect("it is written above");
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

/// The plan, as a person reads it: how much it is, then what is lost sight of, then the rest. Names are those of
/// files that a model may have made, so they have a line each and no more.
fn in_words(document: &Value) -> String {
    let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
    let steps = document["steps"].as_array().map(Vec::as_slice).unwrap_or_default();
    let of = |action: &'static str| steps.iter().filter(move |it| it["action"] == action);
    let counts = ["remove", "replace", "create"].map(|action| of(action).count());
    let [removed, replaced, created] = counts;
    let mut lines = vec![
        format!("An agent wants to roll back to {}.", text(&document["target"], "handle")),
        format!("It would remove {removed}, replace {replaced} and bring back {created}:"),
    ];
    let sorted = of("remove").chain(of("replace")).chain(of("create"));
    let line = |step: &Value| format!("  {} {}", text(step, "action"), quoted(&text(step, "path")));
    lines.extend(sorted.take(MOST_LINES).map(line));
    if steps.len() > MOST_LINES {
        let hidden = steps.len() - MOST_LINES;
        lines.push(format!("  … and {hidden} more; `biv checkpoint rollback --dry-run` shows all"));
    }
    lines.join("\n")
}

/// Puts the question where `biv confirm` finds it, and tells the model what to do meanwhile.
pub(super) fn leave_question(document: Value, plan: &str, place: &Wishes) -> Told {
    let asked = Engine::open(place, Need::Write, Box::new(Silent)).and_then(|engine| {
        let target = document["target"]["id"].as_str().unwrap_or_default();
        let kept = engine.checkpoint(target, None)?;
        engine.ask_consent(kept.taken.checkpoint.id, plan)
    });
    if let Err(error) = asked {
        return Told::failed(error);
    }
    let how = "nothing was changed. Show the person this plan, and ask them to run `biv confirm` in a \
               terminal of their own; call again with the `code` it shows";
    Told::document(document, vec![how.to_owned()])
}

/// Takes the person's code. `None` when it is the right one.
pub(super) fn take_code(code: &str, plan: &str, place: &Wishes) -> Option<Told> {
    let taken = Engine::open(place, Need::Write, Box::new(Silent))
        .and_then(|engine| engine.take_consent(plan, code));
    taken.err().map(Told::failed)
}
