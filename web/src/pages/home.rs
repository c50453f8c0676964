//! The front page: what this is, how a session goes, what is open now.

use leptos::prelude::*;
use ringlab_content::types::ChapterMeta;
use ringlab_labs::api::RunnerView;
use ringlab_labs::catalogue::LabView;
use ringlab_labs::text::Lang;

use super::{course, labs, scrolling};
use crate::document::{Rendered, address};
use crate::format;
use crate::strings as t;

const HOME_CHAPTERS: usize = 6;

pub(super) fn render(
    lang: Lang,
    chapters: Vec<ChapterMeta>,
    labs: Vec<LabView>,
    runners: Vec<RunnerView>,
) -> Rendered {
    let ways = [
        (t::home_read(lang), t::home_read_text(lang)),
        (t::home_predict(lang), t::home_predict_text(lang)),
        (t::home_run(lang), t::home_run_text(lang)),
        (t::home_judge(lang), t::home_judge_text(lang)),
    ]
    .map(|(name, text)| {
        view! {
            <li>
                <h3>{name}</h3>
                <p>{text}</p>
            </li>
        }
    });
    // Those with a lab show best what the course is; the index has the others.
    let shown = chapters.iter().filter(|meta| meta.lab.is_some()).take(HOME_CHAPTERS);
    let cards: Vec<_> = shown.map(|meta| course::card(lang, meta)).collect();
    let lab_cards: Vec<_> = labs.iter().map(|lab| labs::card(lang, lab)).collect();
    let body = view! {
        <div class="page home">
            <section class="hero">
                <div>
                    <p class="eyebrow">{t::home_eyebrow(lang)}</p>
                    <h1>{t::home_title(lang)}</h1>
                    <p class="lead">{t::home_lead(lang)}</p>
                    <p class="actions">
                        <a class="button primary" href=address(lang, "/course")>
                            {t::home_start(lang)}
                        </a>
                        <a class="button" href=address(lang, "/labs")>
                            {t::home_labs(lang)}
                        </a>
                    </p>
                    <div data-reader="overview" data-lang=lang.code()></div>
                </div>
                <div class="hero-ring" aria-hidden="true" inner_html=ring()></div>
            </section>
            <section>
                <h2>{t::home_how(lang)}</h2>
                <ol class="ways">{ways.collect_view()}</ol>
            </section>
            <section>
                <h2>{t::home_written(lang)}</h2>
                <ul class="cards">{cards}</ul>
                <p>
                    <a href=address(lang, "/course")>{t::home_all_chapters(lang)}</a>
                </p>
            </section>
            <section>
                <h2>{t::home_open_labs(lang)}</h2>
                <ul class="cards">{lab_cards}</ul>
            </section>
            <section>
                <h2>{t::home_runners(lang)}</h2>
                {runner_table(lang, &runners)}
            </section>
        </div>
    };
    Rendered {
        title: t::site(lang).into(),
        description: Some(t::home_lead(lang).into()),
        section: None,
        body: body.into_any(),
        islands: false,
    }
}

fn runner_table(lang: Lang, runners: &[RunnerView]) -> AnyView {
    if runners.is_empty() {
        return view! { <p class="muted">{t::home_no_runners(lang)}</p> }.into_any();
    }
    let rows: Vec<_> = runners
        .iter()
        .map(|runner| {
            let state = if runner.busy { t::runner_busy(lang) } else { t::runner_idle(lang) };
            view! {
                <tr>
                    <td>{runner.name.clone()}</td>
                    <td>{hardware(&runner.hardware)}</td>
                    <td>{state}</td>
                </tr>
            }
        })
        .collect();
    let table = view! {
        <table>
            <thead>
                <tr>
                    <th scope="col">{t::runner_name(lang)}</th>
                    <th scope="col">{t::runner_hardware(lang)}</th>
                    <th scope="col">{t::runner_state(lang)}</th>
                </tr>
            </thead>
            <tbody>{rows}</tbody>
        </table>
    };
    scrolling(t::home_runners(lang), table).into_any()
}

/// `AMD EPYC …, 8 × 2.1 GHz; NVIDIA H200`
pub(super) fn hardware(info: &ringlab_labs::job::HardwareInfo) -> String {
    let mut text = format!("{} ({} × CPU, {})", info.cpu, info.cores, format::bytes(info.memory_bytes));
    let mut counted: Vec<(&str, usize)> = Vec::new();
    for gpu in &info.gpus {
        match counted.iter_mut().find(|(name, _)| *name == gpu.name) {
            Some((_, n)) => *n += 1,
            None => counted.push((&gpu.name, 1)),
        }
    }
    for (name, n) in counted {
        text.push_str(&if n == 1 { format!("; {name}") } else { format!("; {n} × {name}") });
    }
    text
}

/// Eight ranks on a ring, one chunk on its way: the site's picture, drawn from its own geometry.
fn ring() -> String {
    let point = |angle: f64, r: f64| (160.0 + r * angle.cos(), 160.0 + r * angle.sin());
    let turn = |i: f64| std::f64::consts::TAU * (i / 8.0 - 0.25);
    let mut svg = String::from("<svg viewBox=\"0 0 320 320\">");
    for i in 0..8 {
        let (x1, y1) = point(turn(f64::from(i) + 0.21), 122.0);
        let (x2, y2) = point(turn(f64::from(i) + 0.79), 122.0);
        svg.push_str(&format!("<path class=\"edge\" d=\"M{x1:.1} {y1:.1}A122 122 0 0 1 {x2:.1} {y2:.1}\"/>"));
        let (x, y) = point(turn(f64::from(i)), 122.0);
        svg.push_str(&format!("<circle class=\"node\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"24\"/>"));
        // Chunk `j` of rank `i` after three steps of reduce-scatter: filled when it holds more than one contribution.
        for j in 0..8 {
            let steps = (i - j + 8) % 8;
            let (cx, cy) = point(turn(f64::from(j)), 15.0);
            let (cx, cy) = (x + cx - 160.0, y + cy - 160.0);
            let class = if (1..4).contains(&steps) { "sum" } else { "own" };
            svg.push_str(&format!("<circle class=\"{class}\" cx=\"{cx:.1}\" cy=\"{cy:.1}\" r=\"3.4\"/>"));
        }
    }
    svg.push_str("</svg>");
    svg
}
