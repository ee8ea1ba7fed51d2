//! Many processes at once on one store: saving, listing, going back in workspaces of their own and in one they share,
//! hooks, sweeps and checks. Nothing is lost, nothing is torn, nobody is stuck.

mod crew;
mod scene;

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use bivouac_testkit::TestEnv;

use super::table::Row;
use super::{Proof, crew::tried};
use crate::Result;
use crew::{Kept, Role};
use scene::Scene;

pub(super) fn run(proof: &Proof) -> Result<Vec<Row>> {
    if !proof.wants("crowd") {
        return Ok(Vec::new());
    }
    let env = TestEnv::new(&proof.binary.to_string_lossy());
    let lasting = proof.size(Duration::from_secs(20), Duration::from_secs(120));
    let scene = Scene::new(&env, proof, Instant::now() + lasting)?;
    let roles = Role::all(proof);
    let acked = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for (number, role) in roles.iter().enumerate() {
            let (scene, acked) = (&scene, &acked);
            scope.spawn(move || {
                let mut kept = Vec::new();
                let life = tried(|| crew::live(scene, (*role, number), &mut kept));
                life.map_err(|what| scene.tell(format!("{role:?} {number}: {what}"))).ok();
                acked.lock().expect("nobody panics with it").extend(kept);
            });
        }
    });
    let acked = acked.into_inner().expect("nobody panics with it");
    bivouac_testkit::until("the end of what runs on its own", || env.processes().is_empty());
    let n_acked = acked.len();
    let n_lost = scene.judge(&env, &acked).unwrap_or_else(|error| {
        scene.tell(error.to_string());
        // Nobody saw any of them again.
        n_acked
    });
    Ok(vec![row(proof, &scene, (n_acked, n_lost), roles.len())])
}

fn row(proof: &Proof, scene: &Scene, (n_acked, n_lost): (usize, usize), n_processes: usize) -> Row {
    let mut by_kind: BTreeMap<&str, Vec<Duration>> = BTreeMap::new();
    let times = scene.times.lock().expect("nobody panics with it");
    times.iter().for_each(|(kind, time)| by_kind.entry(kind).or_default().push(*time));
    let spread = by_kind.into_iter().map(|(kind, mut times)| {
        times.sort_unstable();
        let at =
            |share: f64| times[((times.len() - 1) as f64 * share).round() as usize].as_millis();
        format!("{kind} {}: p50 {} ms, p99 {} ms", times.len(), at(0.5), at(0.99))
    });
    let spread: Vec<String> = spread.collect();
    let found = scene.found.lock().expect("nobody panics with it");
    Row {
        what: format!("Commands of {n_processes} processes at once on one store"),
        n_tried: times.len() as u64,
        broken: found.iter().map(|what| proof.finding("crowd", "crowd", what)).collect(),
        figures: format!("{n_acked} acknowledged, {n_lost} lost; {}", spread.join("; ")),
    }
}

/// What came of one command.
type Outcome<T> = std::result::Result<T, String>;

/// All that was acknowledged.
type Acked = [Kept];
