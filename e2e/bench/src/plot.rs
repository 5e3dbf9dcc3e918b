//! A plot as SVG text: how time and memory grow with the number of objects.

use std::fmt::Write as _;

use super::report::{Report, count, mib};

const WIDTH: f64 = 420.0;
const HEIGHT: f64 = 260.0;
/// Room around each panel for its words: left, right, top, bottom.
const MARGIN: [f64; 4] = [64.0, 20.0, 40.0, 44.0];
/// Colours that most people can tell apart.
const COLOURS: [&str; 4] = ["#0072b2", "#d55e00", "#009e73", "#cc79a7"];

/// One curve.
struct Curve {
    name: String,
    points: Vec<(f64, f64)>,
}

/// The growth of all agents: time, restart and memory beside each other.
pub fn growth(reports: &[Report]) -> String {
    let panels = [
        ("catch-up, seconds", curves(reports, |r| Some(r.catch_up.seconds))),
        ("restart until the last request, seconds", curves(reports, |r| Some(r.restart.as_ref()?.seconds))),
        ("memory of the agent after catch-up, MiB", curves(reports, |r| r.catch_up.memory.map(mib))),
    ];
    let width = WIDTH * count(panels.len());
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{width}\" height=\"{HEIGHT}\" fill=\"white\"/>\n"
    );
    for (number, (title, curves)) in panels.iter().enumerate() {
        let _ = writeln!(svg, "<g transform=\"translate({} 0)\">", WIDTH * count(number));
        panel(&mut svg, title, curves);
        svg.push_str("</g>\n");
    }
    svg + "</svg>\n"
}

fn curves(reports: &[Report], find: fn(&Report) -> Option<f64>) -> Vec<Curve> {
    let mut curves: Vec<Curve> = Vec::new();
    for report in reports {
        let Some(value) = find(report) else { continue };
        let point = (count(report.catch_up.objects), value);
        match curves.iter_mut().find(|curve| curve.name == report.name) {
            Some(curve) => curve.points.push(point),
            None => curves.push(Curve { name: report.name.clone(), points: vec![point] }),
        }
    }
    curves
}

fn panel(svg: &mut String, title: &str, curves: &[Curve]) {
    let [left, right, top, bottom] = MARGIN;
    let (width, height) = (WIDTH - left - right, HEIGHT - top - bottom);
    let points = || curves.iter().flat_map(|curve| &curve.points);
    let (step_x, end_x) = scale(points().map(|point| point.0).fold(0.0, f64::max));
    let (step_y, end_y) = scale(points().map(|point| point.1).fold(0.0, f64::max));
    let x = |value: f64| left + value / end_x * width;
    let y = |value: f64| top + height - value / end_y * height;
    let _ = writeln!(svg, "<text x=\"{left}\" y=\"20\" font-weight=\"bold\">{title}</text>");
    for value in ticks(step_y, end_y) {
        let at = y(value);
        let _ = writeln!(svg, "<path d=\"M{left} {at:.1}h{width}\" stroke=\"#ddd\"/>");
        let _ = writeln!(svg, "<text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{value}</text>", left - 6.0, at + 4.0);
    }
    for value in ticks(step_x, end_x) {
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\" text-anchor=\"middle\">{value}</text>",
            x(value),
            top + height + 16.0
        );
    }
    let _ = writeln!(svg, "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">objects</text>", left + width, HEIGHT - 8.0);
    for ((number, curve), colour) in curves.iter().enumerate().zip(COLOURS.iter().cycle()) {
        let line: Vec<String> = curve.points.iter().map(|(a, b)| format!("{:.1},{:.1}", x(*a), y(*b))).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            line.join(" ")
        );
        for (a, b) in &curve.points {
            let _ = writeln!(svg, "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>", x(*a), y(*b));
        }
        let _ = writeln!(
            svg,
            "<text x=\"{}\" y=\"{}\" fill=\"{colour}\">{}</text>",
            left + 8.0,
            top + 12.0 + 16.0 * count(number),
            curve.name
        );
    }
}

/// A round step between ticks, and the first tick that is not below the largest value.
fn scale(largest: f64) -> (f64, f64) {
    let largest = if largest > 0.0 { largest } else { 1.0 };
    let power = 10_f64.powf((largest / 4.0).log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0].map(|factor| factor * power);
    let step = step.into_iter().find(|step| largest / step <= 5.0).unwrap_or(10.0 * power);
    (step, (largest / step).ceil() * step)
}

fn ticks(step: f64, end: f64) -> impl Iterator<Item = f64> {
    // Rounded to what a person would write.
    (0..=8).map(move |n| (step * f64::from(n) * 1e6).round() / 1e6).take_while(move |value| *value <= end * 1.000_001)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_round_and_few() {
        for (largest, wanted) in
            [(10.0, (2.0, 10.0)), (0.7, (0.2, 0.8)), (10_000.0, (2000.0, 10_000.0)), (0.0, (0.2, 1.0))]
        {
            let (step, end) = scale(largest);
            assert!((step - wanted.0).abs() < 1e-9 && (end - wanted.1).abs() < 1e-9, "{largest}: {step} {end}");
        }
    }
}
