//! `docs/performance.svg`: how cost grows with followers and with elections. One panel for each thing measured on each store, both axes
//! logarithmic, a line for each make.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::row::Unit;
use super::run::Run;

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 270.0;
const COLUMNS: usize = 2;
/// Around the lines of a panel.
const LEFT: f64 = 62.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 30.0;
/// For the numbers of the axis, and one line for each make.
const BOTTOM: f64 = 92.0;
/// Told apart by people who see no red and green, too; ours is the first.
const COLOURS: [&str; 5] = ["#0b5394", "#e07b00", "#5b8c2a", "#9c2b8a", "#666666"];
const OURS: &str = "Bellwether";
/// On a logarithmic axis, nothing is nowhere; it is drawn at a tenth of the least that there is.
const OF_THE_LEAST: f64 = 0.1;

struct Panel {
    /// With the unit of the figures.
    title: String,
    axis: String,
    /// By make, ours first, in the order of their first row; each point is a count and its figure.
    lines: Vec<(String, Vec<(f64, f64)>)>,
}

pub(crate) fn has_points(run: &Run) -> bool {
    run.compared().any(|(_, figures)| figures.at.is_some())
}

pub(crate) fn plot(run: &Run) -> String {
    let panels = panels(run);
    let rows = panels.len().div_ceil(COLUMNS).max(1);
    let (width, height) = (WIDTH * COLUMNS as f64, HEIGHT * rows as f64);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         font-family=\"sans-serif\" font-size=\"11\">\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
    );
    for (number, panel) in panels.iter().enumerate() {
        let (x, y) = ((number % COLUMNS) as f64 * WIDTH, (number / COLUMNS) as f64 * HEIGHT);
        let _ = write!(svg, "<g transform=\"translate({x} {y})\">\n{}</g>\n", draw(panel));
    }
    svg + "</svg>\n"
}

fn panels(run: &Run) -> Vec<Panel> {
    let mut panels: Vec<Panel> = Vec::new();
    for (row, figures) in run.compared() {
        let Some(at) = &figures.at else { continue };
        let (one, unit) = in_words(figures.unit);
        let title = format!("{}: {}{unit}", figures.store, row.what);
        let place = panels.iter().position(|panel| panel.title == title && panel.axis == at.axis);
        let place = place.unwrap_or_else(|| {
            let lines = vec![(OURS.to_owned(), Vec::new())];
            panels.push(Panel { title, axis: at.axis.clone(), lines });
            panels.len() - 1
        });
        let panel = &mut panels[place];
        panel.add(OURS, at.count as f64, figures.ours / one);
        if let Some(peer) = &figures.peer {
            // How it was set is in the tables.
            let make = peer.name.split(',').next().unwrap_or_default();
            panel.add(make, at.count as f64, peer.theirs / one);
        }
    }
    panels
}

/// What one is on a plot, and how a title calls it.
fn in_words(unit: Unit) -> (f64, &'static str) {
    match unit {
        Unit::Seconds => (1.0, ", seconds"),
        Unit::PerSecond => (1.0, ", a second"),
        Unit::Bytes => (1_048_576.0, ", MiB"),
        Unit::Cores => (0.01, ", % of a core"),
        Unit::Count => (1.0, ""),
    }
}

impl Panel {
    /// Ours is in the row of every other make: the first that is told counts.
    fn add(&mut self, make: &str, count: f64, figure: f64) {
        let known = self.lines.iter().position(|(name, _)| name == make);
        let line = known.unwrap_or_else(|| {
            self.lines.push((make.to_owned(), Vec::new()));
            self.lines.len() - 1
        });
        let points = &mut self.lines[line].1;
        if !points.iter().any(|(other, _)| *other == count) {
            points.push((count, figure));
            points.sort_by(|a, b| a.0.total_cmp(&b.0));
        }
    }

    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        self.lines.iter().flat_map(|(_, points)| points.iter().copied())
    }
}

/// From a figure to its place on an axis, whole decades from end to end.
struct Scale {
    from: f64,
    decades: f64,
    start: f64,
    length: f64,
}

impl Scale {
    fn over(all: impl Iterator<Item = f64>, start: f64, length: f64) -> Scale {
        let (mut least, mut most) = (f64::INFINITY, 0.0_f64);
        for figure in all.filter(|figure| *figure > 0.0) {
            (least, most) = (least.min(figure), most.max(figure));
        }
        let from = if least.is_finite() { least.log10().floor() } else { 0.0 };
        let to = if most > 0.0 { most.log10().ceil() } else { 1.0 };
        Scale { from, decades: (to - from).max(1.0), start, length }
    }

    fn place(&self, figure: f64) -> f64 {
        let least = 10_f64.powf(self.from) * OF_THE_LEAST;
        let along = (figure.max(least).log10() - self.from) / self.decades;
        self.start + along.clamp(0.0, 1.0) * self.length
    }

    /// Each decade, and how it is written.
    fn ticks(&self) -> impl Iterator<Item = (f64, String)> {
        (0..=self.decades as i32).map(|step| {
            let power = self.from as i32 + step;
            let (tick, digits) = (10_f64.powi(power), usize::try_from(-power).unwrap_or(0));
            (tick, format!("{tick:.digits$}"))
        })
    }
}

fn draw(panel: &Panel) -> String {
    let (floor, right) = (HEIGHT - BOTTOM, WIDTH - RIGHT);
    let across = Scale::over(panel.points().map(|(count, _)| count), LEFT, right - LEFT);
    let up = Scale::over(panel.points().map(|(_, figure)| figure), floor, TOP - floor);
    let mut svg = format!("<text x=\"{LEFT}\" y=\"18\" font-size=\"13\">{}</text>\n", escaped(&panel.title));
    for (tick, text) in up.ticks() {
        let y = up.place(tick);
        let _ = writeln!(svg, "<path d=\"M{LEFT} {y:.1}H{right}\" stroke=\"#dddddd\"/>");
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\" font-size=\"9\">{text}</text>",
            LEFT - 5.0,
            y + 3.0
        );
    }
    for (tick, text) in across.ticks() {
        let x = across.place(tick);
        let _ = writeln!(svg, "<path d=\"M{x:.1} {TOP}V{floor}\" stroke=\"#eeeeee\"/>");
        let _ =
            writeln!(svg, "<text x=\"{x:.1}\" y=\"{}\" text-anchor=\"middle\">{text}</text>", floor + 14.0);
    }
    let _ =
        writeln!(svg, "<text x=\"{right}\" y=\"{}\" text-anchor=\"end\">{}</text>", floor + 28.0, panel.axis);
    for (number, (make, points)) in panel.lines.iter().enumerate() {
        let colour = COLOURS[number.min(COLOURS.len() - 1)];
        let places: Vec<String> =
            points.iter().map(|(x, y)| format!("{:.1},{:.1}", across.place(*x), up.place(*y))).collect();
        let width = if number == 0 { 2.5 } else { 1.5 };
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"/>",
            places.join(" ")
        );
        for place in &places {
            let (x, y) = place.split_once(',').unwrap_or_default();
            let _ = writeln!(svg, "<circle cx=\"{x}\" cy=\"{y}\" r=\"3\" fill=\"{colour}\"/>");
        }
        let y = floor + 28.0 + 14.0 * number as f64;
        let _ = writeln!(svg, "<text x=\"{LEFT}\" y=\"{y}\" fill=\"{colour}\">{}</text>", escaped(make));
    }
    svg
}

fn escaped(text: &str) -> String {
    let escapes = BTreeMap::from([('&', "&amp;"), ('<', "&lt;"), ('>', "&gt;"), ('"', "&quot;")]);
    text.chars()
        .map(|c| escapes.get(&c).map_or_else(|| c.to_string(), |escape| (*escape).to_owned()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::run::tests::example;
    use super::*;

    #[test]
    fn each_make_has_one_line_through_its_points_in_order() {
        let panels = panels(&example());
        assert_eq!(panels.len(), 1);
        assert_eq!(
            (panels[0].title.as_str(), panels[0].axis.as_str()),
            ("postgres: requests, a second", "followers")
        );
        let lines = &panels[0].lines;
        assert_eq!(lines[0], ("Bellwether".to_owned(), vec![(1.0, 4.0), (10.0, 4.0)]));
        assert_eq!(lines[1], ("another v1".to_owned(), vec![(1.0, 1.0), (10.0, 8.0)]));
        let svg = plot(&example());
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert_eq!(svg.matches("<circle").count(), 4);
    }

    #[test]
    fn ours_has_one_point_however_many_makes_it_is_compared_with() {
        let mut panel = panels(&example()).remove(0);
        panel.add(OURS, 10.0, 99.0);
        assert_eq!(panel.lines[0].1, [(1.0, 4.0), (10.0, 4.0)]);
    }

    #[test]
    fn a_scale_spans_whole_decades_and_keeps_nothing_on_the_paper() {
        let scale = Scale::over([3.0, 40.0, 0.0].into_iter(), 100.0, 200.0);
        assert_eq!(scale.ticks().map(|(_, text)| text).collect::<Vec<_>>(), ["1", "10", "100"]);
        let small = Scale::over([0.03, 0.2].into_iter(), 0.0, 1.0);
        assert_eq!(small.ticks().map(|(_, text)| text).collect::<Vec<_>>(), ["0.01", "0.1", "1"]);
        assert_eq!(scale.place(10.0), 200.0);
        assert_eq!(scale.place(0.0), 100.0);
        let nothing = Scale::over(std::iter::empty(), 0.0, 1.0);
        assert_eq!(nothing.place(0.0), 0.0);
    }

    #[test]
    fn a_run_without_points_has_no_plot() {
        let mut run = example();
        assert!(has_points(&run));
        run.benchmarks.clear();
        assert!(!has_points(&run));
        assert!(plot(&run).ends_with("</svg>\n"));
    }

    #[test]
    fn names_cannot_break_the_drawing() {
        assert_eq!(escaped("a<b & \"c\">"), "a&lt;b &amp; &quot;c&quot;&gt;");
    }
}
