//! The memory over time, as an SVG.

use std::{error::Error, path::Path};

use plotters::prelude::*;

use crate::growth::{FUNCTIONS, NAMES, Resources};

/// Draws the resident and the anonymous memory of both functions.
#[expect(clippy::cast_precision_loss, reason = "a picture")]
pub(crate) fn write(file: &Path, seconds: &[[Resources; 2]]) -> Result<(), Box<dyn Error>> {
    let megabytes = |kilobytes: u64| kilobytes as f64 / 1024.0;
    let highest = seconds.iter().flatten().map(|it| megabytes(it[0]));
    let highest = highest.fold(1.0, f64::max) * 1.1;
    let root = SVGBackend::new(file, (900, 420)).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .margin(10)
        .x_label_area_size(40)
        .y_label_area_size(50)
        .build_cartesian_2d(0.0..seconds.len() as f64 / 60.0, 0.0..highest)?;
    let mut mesh = chart.configure_mesh();
    mesh.x_desc("minutes").y_desc("MiB").draw()?;
    for (line, (function, resource)) in [(0, 0), (0, 1), (1, 0), (1, 1)].into_iter().enumerate() {
        let style = Palette99::pick(line).stroke_width(1);
        let values = seconds.iter().map(|it| megabytes(it[function][resource]));
        let points = values
            .enumerate()
            .map(|(at, value)| (at as f64 / 60.0, value));
        chart
            .draw_series(LineSeries::new(points, style))?
            .label(format!("{}: {}", FUNCTIONS[function], NAMES[resource]))
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], style));
    }
    let mut labels = chart.configure_series_labels();
    labels.background_style(WHITE).border_style(BLACK).draw()?;
    root.present()?;
    Ok(())
}
