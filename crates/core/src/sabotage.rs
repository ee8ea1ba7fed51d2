//! Deliberate faults, so that the proof can be proven: with any of them, `cargo xtask prove` must find something.
//! They exist only in builds with debug assertions. A released binary knows none, and asks nobody.

use std::fmt;
use std::str::FromStr;

/// One line that is left out or turned around.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A pack is named before it is durable.
    PackNotSynced,
    /// The name of a pack is not made durable.
    PackNameNotSynced,
    /// A pack is called saved without having been read back.
    PackNotReadBack,
    /// The journal's commits are not made durable.
    JournalNotSynced,
    /// A restore's new contents are not made durable before they are swapped in.
    StagedNotSynced,
    /// What a restore swapped in is not made durable.
    SwapNotSynced,
    /// Blocks and objects are believed.
    HashesNotChecked,
    /// Events are believed.
    ChainNotChecked,
    /// Links are looked at through.
    LinksFollowed,
    /// A restore does not look again before it swaps.
    RecheckLost,
    /// Restored files keep the permissions they were made with.
    ModeLost,
    /// Interrupted restores are left as they are.
    HealSkipped,
    /// A restore that fails half-way ends there.
    HalfLeft,
    /// A sweep removes packs before the journal has let them go.
    PacksRemovedFirst,
    /// What a hook put aside is removed before it is recorded.
    SpoolRemovedFirst,
    /// What a hook put aside is recorded as often as it is seen.
    SpoolTakenTwice,
    /// A hook tells its agent that it failed.
    HookFails,
    /// Locks are given to whoever asks.
    LockIgnored,
    /// git may refresh its index.
    GitRefreshed,
}

impl Fault {
    pub const ALL: [Self; 19] = [
        Self::PackNotSynced,
        Self::PackNameNotSynced,
        Self::PackNotReadBack,
        Self::JournalNotSynced,
        Self::StagedNotSynced,
        Self::SwapNotSynced,
        Self::HashesNotChecked,
        Self::ChainNotChecked,
        Self::LinksFollowed,
        Self::RecheckLost,
        Self::ModeLost,
        Self::HealSkipped,
        Self::HalfLeft,
        Self::PacksRemovedFirst,
        Self::SpoolRemovedFirst,
        Self::SpoolTakenTwice,
        Self::HookFails,
        Self::LockIgnored,
        Self::GitRefreshed,
    ];
}

/// `pack-not-synced` and so on.
impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, letter) in format!("{self:?}").chars().enumerate() {
            let dash = if n > 0 && letter.is_uppercase() { "-" } else { "" };
            write!(f, "{dash}{}", letter.to_ascii_lowercase())?;
        }
        Ok(())
    }
}

impl FromStr for Fault {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Self::ALL.into_iter().find(|fault| fault.to_string() == text).ok_or(())
    }
}

#[cfg(debug_assertions)]
mod switch {
    use std::sync::atomic::{AtomicU8, Ordering};

    use super::Fault;

    static COMMITTED: AtomicU8 = AtomicU8::new(u8::MAX);

    /// From now on, this process makes this mistake.
    pub fn commit(fault: Fault) {
        COMMITTED.store(fault as u8, Ordering::Relaxed);
    }

    /// Is this mistake to be made?
    pub fn is(fault: Fault) -> bool {
        COMMITTED.load(Ordering::Relaxed) == fault as u8
    }
}

#[cfg(not(debug_assertions))]
mod switch {
    /// Never.
    pub const fn is(_fault: super::Fault) -> bool {
        false
    }
}

#[cfg(debug_assertions)]
pub use switch::commit;
pub use switch::is;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_known_by_their_names() {
        assert_eq!(Fault::PackNotSynced.to_string(), "pack-not-synced");
        for fault in Fault::ALL {
            assert_eq!(fault.to_string().parse(), Ok(fault));
        }
        assert_eq!("no-such-fault".parse::<Fault>(), Err(()));
    }
}
