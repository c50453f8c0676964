//! A report as HTML: total and band, gates, levels and topics, then each question with its argument, and what to study.

use std::fmt::Write as _;

use ringlab_interview::api::{JudgeView, QuestionReport, Report, Share, SittingState};
use ringlab_labs::text::Lang;

use crate::format::{decimal, when_ms};
use crate::html::{self, esc, percent};
use crate::strings_interview as ti;
use crate::strings_report as tr;

/// Everything before the questions.
pub fn summary(lang: Lang, report: &Report) -> String {
    let mut out = String::new();
    let name = report.name.as_deref().unwrap_or(tr::nameless(lang));
    let ended = match report.state {
        SittingState::TimeOver => tr::ended_at(lang),
        SittingState::Submitted | SittingState::Running => tr::submitted_at(lang),
    };
    let standing = if report.is_final { tr::is_final(lang) } else { tr::is_draft(lang) };
    let _ = write!(
        out,
        "<h2 class=\"report-name\">{} · {}</h2><p class=\"meta\">{ended} {} · {standing}</p>",
        esc(name),
        esc(&report.title),
        when_ms(report.ended_ms)
    );
    let _ = write!(
        out,
        "<dl class=\"figures\"><div><dt>{}</dt><dd class=\"report-total\">{} / {}</dd></div>\
         <div><dt>{}</dt><dd>{} / 540</dd></div><div><dt>{}</dt><dd>{}</dd></div></dl>",
        tr::total(lang),
        report.total,
        report.max,
        tr::scaled(lang),
        report.scaled,
        tr::band(lang),
        tr::band_title(lang, report.band)
    );
    gates(&mut out, lang, report);
    out.push_str("<div class=\"charts\">");
    chart(&mut out, lang, tr::by_level(lang), &report.levels);
    chart(&mut out, lang, tr::by_topic(lang), &report.topics);
    out.push_str("</div>");
    out
}

fn gates(out: &mut String, lang: Lang, report: &Report) {
    let _ = write!(out, "<section class=\"gates\"><h3>{}</h3>", tr::gates(lang));
    if report.gates.is_empty() {
        let _ = write!(out, "<p class=\"muted\">{}</p></section>", tr::gates_none(lang));
        return;
    }
    let _ = write!(out, "<p class=\"help\">{}</p><ul>", tr::gates_hint(lang));
    for gate in &report.gates {
        let (class, word) =
            if gate.passed { ("done", tr::passed(lang)) } else { ("failed", tr::not_passed(lang)) };
        let _ = write!(
            out,
            "<li><a href=\"#q{}\">{}</a> {} / 10 <span class=\"badge {class}\">{word}</span></li>",
            gate.question,
            ti::question(lang, gate.question),
            gate.total
        );
    }
    out.push_str("</ul></section>");
}

/// Bars, and the same figures in a table.
fn chart(out: &mut String, lang: Lang, title: &str, shares: &[Share]) {
    if shares.is_empty() {
        return;
    }
    let of = |s: &Share| if s.max == 0 { 0.0 } else { f64::from(s.total) / f64::from(s.max) };
    let _ = write!(
        out,
        "<section class=\"chart\"><h3>{title}</h3><div class=\"chart-beside\"><svg viewBox=\"0 0 200 {}\" preserveAspectRatio=\"none\" style=\"height:{}rem\" role=\"img\" aria-label=\"{title}\">",
        shares.len() * 24,
        decimal(shares.len() as f64 * 2.2, 1)
    );
    for (i, share) in shares.iter().enumerate() {
        let y = i * 24 + 5;
        let _ = write!(
            out,
            "<g><title>{}: {} %</title><rect class=\"bar-all\" x=\"0\" y=\"{y}\" width=\"200\" height=\"14\" rx=\"3\"/>\
             <rect class=\"bar\" x=\"0\" y=\"{y}\" width=\"{}\" height=\"14\" rx=\"3\"/></g>",
            esc(share.title.get(lang)),
            percent(of(share)),
            decimal(of(share) * 200.0, 1)
        );
    }
    let _ = write!(
        out,
        "</svg><table><thead><tr><th scope=\"col\">{title}</th><th scope=\"col\" class=\"number\">{}</th><th scope=\"col\" class=\"number\">{}</th></tr></thead><tbody>",
        tr::points_word(lang),
        tr::share(lang)
    );
    for share in shares {
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{}</th><td class=\"number\">{} / {}</td><td class=\"number\">{} %</td></tr>",
            esc(share.title.get(lang)),
            share.total,
            share.max,
            percent(of(share))
        );
    }
    out.push_str("</tbody></table></div></section>");
}

/// One question, with the answer and the model answer side by side.
pub fn question(lang: Lang, q: &QuestionReport) -> String {
    let card = &q.question;
    format!(
        "<header><p class=\"eyebrow\">{} · {} · {}</p><h3>{} · {} <span class=\"question-total\">{} / {}</span></h3></header>\
         <div class=\"prose prompt\">{}</div><div class=\"table-wrap\">{}</div><div class=\"side-by-side\"><section><h4>{}</h4>{}</section>\
         <section><h4>{}</h4>{}</section></div>",
        ti::level(lang, card.level),
        esc(card.topic.title().get(lang)),
        format_args!("{} {}", tr::spent(lang), ti::duration(lang, q.seconds)),
        ti::question(lang, card.number),
        esc(card.title.get(lang)),
        q.total,
        q.grade.max,
        q.prompt.get(lang),
        html::points(lang, &q.grade, &q.overrides),
        tr::the_answer(lang),
        html::answer(lang, &q.answer, &q.grade),
        tr::the_model(lang),
        html::model(lang, &q.model),
    )
}

/// What the optional judge thinks of a question's answer, beside the grader's marks.
pub fn opinion(lang: Lang, q: &QuestionReport, opinion: &JudgeView) -> String {
    let sum: u32 = opinion.points.iter().sum();
    let points: Vec<String> = opinion
        .points
        .iter()
        .zip(&q.grade.points)
        .map(|(given, point)| format!("{given} / {}", point.max))
        .collect();
    let fatal = if opinion.fatal { format!(" · {}", tr::judge_fatal(lang)) } else { String::new() };
    format!(
        "<p class=\"notice judge-opinion\">{} · {}: {sum} / {} ({}){fatal}</p>",
        tr::judge_says(lang),
        esc(&opinion.model),
        q.grade.max,
        points.join(", "),
    )
}

/// Everything after the questions.
pub fn after(lang: Lang, report: &Report) -> String {
    let mut out = format!("<section class=\"study\"><h2>{}</h2>", tr::study(lang));
    if report.study.is_empty() {
        let _ = write!(out, "<p class=\"muted\">{}</p>", tr::study_none(lang));
    } else {
        let _ = write!(
            out,
            "<div class=\"table-wrap\"><table><thead><tr><th scope=\"col\">{}</th><th scope=\"col\" class=\"number\">{}</th><th scope=\"col\">{}</th></tr></thead><tbody>",
            tr::chapter(lang),
            tr::lost(lang),
            tr::from_questions(lang)
        );
        for study in &report.study {
            let numbers: Vec<String> =
                study.questions.iter().map(|n| format!("<a href=\"#q{n}\">{n}</a>")).collect();
            let _ = write!(
                out,
                "<tr><td>{}</td><td class=\"number\">{}</td><td>{}</td></tr>",
                html::chapter(lang, &study.chapter),
                study.lost,
                numbers.join(", ")
            );
        }
        out.push_str("</tbody></table></div>");
    }
    let _ = write!(out, "</section><section class=\"events\"><h2>{}</h2>", tr::events(lang));
    if report.events.is_empty() {
        let _ = write!(out, "<p class=\"muted\">{}</p>", tr::events_none(lang));
    } else {
        let _ = write!(out, "<p class=\"help\">{}</p><ol class=\"event-list\">", tr::events_hint(lang));
        for stamped in &report.events {
            let text = tr::event(lang, &stamped.event);
            if text.is_empty() {
                continue;
            }
            let minute = (stamped.at_ms - report.started_ms).max(0) / 1000;
            let _ = write!(
                out,
                "<li><span class=\"at\">{}:{:02}</span> {}</li>",
                minute / 60,
                minute % 60,
                esc(&text)
            );
        }
        out.push_str("</ol>");
    }
    out.push_str("</section>");
    out
}
