//! Who led when, as a picture: an SVG file that stands alone.

use std::fmt::Write;

use crate::timeline::{Stretch, stretches};
use crate::{Leadership, Verdict, Violation};

const WIDTH: f64 = 960.0;
const LEFT: f64 = 180.0;
const ROW: f64 = 26.0;
const HEAD: f64 = 34.0;
/// Candidates of one election that are drawn; the others are counted.
const ROWS_MAX: usize = 40;
/// Leaderships of one candidate that are drawn: nobody sees more on one line.
const BARS_MAX: usize = 2_000;

/// It follows the colours of whoever looks at it.
const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#1f2430}\
.head{font-weight:600}.dim{fill:#5b6270}.led{fill:#2457c5}.may{fill:#9db7ec}.bad{fill:#c62828}.line{stroke:#d5d9e2}\
@media(prefers-color-scheme:dark){svg{background:#14171d}text{fill:#e8ebf2}.dim{fill:#a3abba}.led{fill:#7fa5ff}.may{fill:#3c538a}\
.bad{fill:#ff6b6b}.line{stroke:#363c48}}";

/// The picture of a verdict. Overlaps are drawn in the colour of errors.
pub fn svg(verdict: &Verdict) -> String {
    let stretches = stretches(verdict);
    let rows = |stretch: &Stretch<'_>| stretch.rows.len().min(ROWS_MAX) as f64;
    let height: f64 = stretches.iter().map(|stretch| HEAD + ROW * rows(stretch)).sum::<f64>() + 20.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n",
        escaped(&format!("{} leaderships, {}", verdict.leaderships.len(), verdict.judgement().as_str()))
    );
    let mut y = 10.0;
    for stretch in &stretches {
        let span = stretch.to.since(stretch.from).as_secs_f64();
        text(&mut svg, "head", 12.0, y + 20.0, stretch.election);
        text(&mut svg, "dim", LEFT, y + 20.0, &format!("{span:.3} s"));
        y += HEAD;
        for (id, row) in stretch.rows.iter().take(ROWS_MAX) {
            let middle = y + ROW / 2.0;
            text(&mut svg, "dim", 12.0, middle + 4.0, &id.chars().take(22).collect::<String>());
            let _ = writeln!(
                svg,
                "<line class=\"line\" x1=\"{LEFT}\" x2=\"{}\" y1=\"{middle}\" y2=\"{middle}\"/>",
                WIDTH - 12.0
            );
            for led in row.iter().take(BARS_MAX) {
                bars(&mut svg, stretch, led, y, overlaps(verdict, led));
            }
            y += ROW;
        }
    }
    svg.push_str("</svg>\n");
    svg
}

/// The bar of a leadership: the part that is certain, and the rest.
fn bars(svg: &mut String, stretch: &Stretch<'_>, led: &Leadership, y: f64, is_bad: bool) {
    let x = |at| LEFT + stretch.place(at) * (WIDTH - 12.0 - LEFT);
    let (from, certain, most) = (x(led.from), x(led.until.at_least), x(led.until.at_most.min(stretch.to)));
    let title = match led.epoch {
        Some(epoch) => format!("{}, epoch {epoch}", led.owner.id),
        None => led.owner.id.clone(),
    };
    let title = escaped(&title);
    let mut bar = |class: &str, to: f64| {
        let (top, wide) = (y + 5.0, (to - from).max(1.0));
        let _ = writeln!(
            svg,
            "<rect class=\"{class}\" x=\"{from:.2}\" y=\"{top}\" width=\"{wide:.2}\" height=\"{}\"><title>{title}</title></rect>",
            ROW - 10.0
        );
    };
    if most > certain {
        bar("may", most);
    }
    bar(if is_bad { "bad" } else { "led" }, certain);
}

fn overlaps(verdict: &Verdict, led: &Leadership) -> bool {
    let is_it = |one: &Leadership| one.owner == led.owner && one.epoch == led.epoch && one.from == led.from;
    verdict.violations.iter().any(|violation| match violation {
        Violation::Overlap { first, second, .. } => is_it(first) || is_it(second),
        _ => false,
    })
}

fn text(svg: &mut String, class: &str, x: f64, y: f64, what: &str) {
    let _ = writeln!(svg, "<text class=\"{class}\" x=\"{x}\" y=\"{y}\">{}</text>", escaped(what));
}

/// A name is anybody's to choose, and must not become part of the picture.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            c => escaped.push(c),
        }
    }
    escaped
}
