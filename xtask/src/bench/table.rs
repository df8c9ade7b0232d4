//! The comparisons of a run as a table on the terminal, ratios first.

use super::page::{ours, place};
use super::run::Run;

pub(super) fn table(run: &Run) -> String {
    let mut text = String::new();
    for store in run.stores() {
        text += &format!("\n{store}\n");
        for (row, figures) in run.compared().filter(|(_, figures)| figures.store == store) {
            let unit = figures.unit;
            let (ratio, peer) = match &figures.peer {
                Some(peer) => (
                    format!("{:>10.2}{}", peer.ratio, if peer.ratio < 1.0 { " BEHIND" } else { "" }),
                    format!("  {} {}", peer.name, unit.text(peer.theirs)),
                ),
                None => (format!("{:>10}", ""), String::new()),
            };
            let raw = figures.raw.map_or_else(String::new, |raw| {
                format!("  raw {} (ours to raw {:.2})", unit.text(raw), figures.ours / raw)
            });
            let what = place(row, figures);
            let bound = match figures.is_kept() {
                Some(false) => "  MISSED ITS BOUND",
                _ => "",
            };
            text += &format!("  {ratio:<17}  {what:<44}  ours {}{peer}{raw}{bound}\n", ours(figures));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::run::tests::example;
    use super::*;

    #[test]
    fn ratios_come_first_and_what_is_behind_stands_out() {
        let table = table(&example());
        let lines: Vec<&str> = table.lines().skip(2).map(str::trim).collect();
        assert!(lines[0].starts_with("5000.00 "), "{table}");
        assert!(lines[1].starts_with("0.25 BEHIND "), "{table}");
        let makes =
            "ours 2.00 ms (ttl 15 s)  another v1, its defaults 10.0 s  raw 1.50 ms (ours to raw 1.33)";
        assert!(lines[0].contains(makes), "{table}");
    }
}
