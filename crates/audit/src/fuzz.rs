//! What fuzzing asks of the reading of event lines, and of the verdict on them. The function takes any bytes, and panics where a promise is
//! broken; `fuzz` has the list.

use bellwether_core::Boot;

use crate::{Audit, Judgement, Line, overlap, svg, timeline};

/// A file of event lines, and the verdict on it, in words and as a picture.
pub fn event_lines(bytes: &[u8]) {
    let mut audit = Audit::new();
    audit.read(bytes).expect("bytes in memory can be read");
    let verdict = audit.verdict();
    let lines = bytes.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()).count();
    assert_eq!(verdict.figures.lines + verdict.figures.skipped, lines as u64, "every line is counted once");
    assert!(verdict.leaderships.len() as u64 <= verdict.figures.lines);
    let is_clean = verdict.judgement() == Judgement::Clean;
    for led in &verdict.leaderships {
        assert!(led.from <= led.until.at_least && led.until.at_least <= led.until.at_most, "{led:?}");
        assert!(led.until.at_most <= Boot::FOREVER && !led.owner.incarnation.contains('\n'));
    }
    // By the shortest of definitions: of those of one election and clock, in the order of their begins.
    for pair in verdict.leaderships.windows(2) {
        let (first, second) = (&pair[0], &pair[1]);
        let is_one_clock = first.election == second.election && first.owner.boot_id == second.owner.boot_id;
        if is_clean && is_one_clock && first.from <= second.from {
            assert_eq!(
                overlap(first, second).0,
                0,
                "two at once, and the verdict is clean: {first:?} {second:?}"
            );
        }
    }
    let printed: usize = timeline(&verdict).iter().map(String::len).sum();
    let picture = svg(&verdict);
    // A row for each leadership, some hundred bytes wide, and the names of elections and candidates.
    let most = 2_048 * (verdict.leaderships.len() + 1) + 16 * bytes.len();
    assert!(printed <= most && picture.len() <= most, "{} and {} of {most}", printed, picture.len());
    assert!(!picture.contains("<script"));
    if let Some(line) = std::str::from_utf8(bytes).ok().and_then(Line::parse) {
        assert!(line.election.len() + line.id.len() + line.incarnation.len() <= bytes.len());
    }
}
