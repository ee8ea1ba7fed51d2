//! A person's word for what a model asks for. A model that wants to roll back gets a plan, and nothing happens;
//! the person sees the same plan on a terminal and gets a code for it. The code is good for that plan, once.

use std::io;
use std::time::Duration;

use bivouac_core::id::{CheckpointId, ObjectId};
use bivouac_core::time::Timestamp;
use bivouac_snapshot::private;
use serde::{Deserialize, Serialize};

use crate::lock::{Hold, Lock};
use crate::save::to_json;
use crate::{Engine, Error, Result, papers};

/// What a model asked leave for. In a workspace, the last question stands.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Asked {
    pub checkpoint: CheckpointId,
    /// What [`crate::rollback::RestorePlan::id`] says.
    pub plan: String,
    pub asked_at: Timestamp,
    given: Option<Given>,
    n_wrong: u32,
}

/// A person said yes. The code itself is nowhere but on the person's screen.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Given {
    code: ObjectId,
    at: Timestamp,
}

/// How long a question stands, and an answer.
const STANDS: Duration = Duration::from_secs(3_600);
const HOLDS: Duration = Duration::from_secs(600);
/// Guessing ends here: one in 2⁴⁰ is right.
const MOST_WRONG: u32 = 3;
/// No letter that looks like another.
const LETTERS: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

impl Engine {
    /// Puts a question where the person finds it.
    pub fn ask_consent(&self, checkpoint: CheckpointId, plan: &str) -> Result<()> {
        let _alone = self.hold_consent()?;
        // The same question again does not take the answer away.
        if self.asked().is_some_and(|it| it.plan == plan && it.given.is_some()) {
            return Ok(());
        }
        let asked_at = self.clock.now();
        self.put(&Asked { checkpoint, plan: plan.to_owned(), asked_at, given: None, n_wrong: 0 })
    }

    /// The question that stands.
    pub fn asked(&self) -> Option<Asked> {
        let asked: Asked =
            serde_json::from_slice(&private::read(&self.home.consent()).ok()?).ok()?;
        self.is_within(asked.asked_at, STANDS).then_some(asked)
    }

    /// The person said yes: the code that says so.
    pub fn give_consent(&self, asked: Asked) -> Result<String> {
        let _alone = self.hold_consent()?;
        let code = code(&self.clock.new_id().to_string());
        let given = Given { code: seal(&asked.plan, &code), at: self.clock.now() };
        self.put(&Asked { given: Some(given), n_wrong: 0, ..asked })?;
        Ok(code)
    }

    /// The person said no: an earlier yes is good for nothing any more.
    pub fn refuse_consent(&self) -> Result<()> {
        let _alone = self.hold_consent()?;
        self.forget()
    }

    /// Takes a code for a plan. The right one is good for nothing from here on.
    pub fn take_consent(&self, plan: &str, code: &str) -> Result<()> {
        let _alone = self.hold_consent()?;
        let asked = self.asked().filter(|it| it.plan == plan).ok_or(Error::NotAsked)?;
        let Some(given) = asked.given.as_ref().filter(|it| self.is_within(it.at, HOLDS)) else {
            return Err(Error::NotConfirmed);
        };
        if given.code == seal(plan, &plain(code)) {
            return self.forget();
        }
        match asked.n_wrong + 1 {
            MOST_WRONG.. => self.forget()?,
            n_wrong => self.put(&Asked { n_wrong, ..asked })?,
        }
        Err(Error::WrongCode)
    }

    /// A moment that is still to come says that somebody turned the clock back.
    fn is_within(&self, moment: Timestamp, time: Duration) -> bool {
        let now = self.clock.now();
        moment <= now && now.since(moment) <= time
    }

    /// One at a time: a code that is judged twice at once would be good twice.
    fn hold_consent(&self) -> Result<Lock> {
        let path = self.home.consent();
        if let Some(folder) = path.parent() {
            self.home.make_folder(folder)?;
        }
        Lock::wait(&path.with_extension("lock"), Hold::Alone, "looking at what a model asks for")
    }

    fn put(&self, asked: &Asked) -> Result<()> {
        papers::write_private(&self.home.consent(), &to_json(asked))
    }

    fn forget(&self) -> Result<()> {
        let path = self.home.consent();
        match private::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(Error::io(path)(error)),
            _ => Ok(()),
        }
    }
}

/// Eight letters, in two groups.
fn code(id: &str) -> String {
    let hash = blake3::hash(id.as_bytes());
    let letters = hash.as_bytes().iter().take(8);
    let mut code: String =
        letters.map(|byte| char::from(LETTERS[usize::from(*byte) % LETTERS.len()])).collect();
    code.insert(4, '-');
    code
}

/// As it was shown, however it is typed.
fn plain(typed: &str) -> String {
    let mut code: String =
        typed.to_ascii_lowercase().chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    if code.len() > 4 {
        code.insert(4, '-');
    }
    code
}

fn seal(plan: &str, code: &str) -> ObjectId {
    ObjectId::of(format!("{plan} {code}").as_bytes())
}
