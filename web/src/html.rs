//! Long documents of plain data, such as reports, as HTML text: they have no view types of their own, which keeps the browser's module
//! small, and are the same on the server and in the browser. Everything that is not ours goes through [`esc`].

use std::fmt::Write as _;

use ringlab_content::report::{Grade, Label, PointGrade, RemarkKind, Verdict};
use ringlab_interview::api::{ModelAnswer, Overridden};
use ringlab_labs::text::Lang;

use crate::strings_interview as ti;
use crate::strings_report as tr;

/// Text as it stands in HTML, attributes included.
pub fn esc(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

pub fn label(lang: Lang, label: &Label) -> &str {
    match lang {
        Lang::Zh => &label.zh,
        Lang::En => &label.en,
    }
}

/// Points of one rubric point as they stand after what instructors changed.
pub fn awarded(at: usize, point: &PointGrade, overrides: &[Overridden]) -> u32 {
    overrides.iter().rev().find(|o| o.point as usize == at).map_or(point.awarded, |o| o.to)
}

/// The table of a grade: every point, its marks, and the quote or what is missing.
pub fn points(lang: Lang, grade: &Grade, overrides: &[Overridden]) -> String {
    let mut out = String::from("<table class=\"points\"><thead><tr>");
    for head in [tr::point(lang), tr::points_word(lang), tr::why(lang)] {
        let _ = write!(out, "<th scope=\"col\">{head}</th>");
    }
    out.push_str("</tr></thead><tbody>");
    for (at, point) in grade.points.iter().enumerate() {
        let now = awarded(at, point, overrides);
        let _ = write!(
            out,
            "<tr><th scope=\"row\">{}</th><td class=\"number\"><strong>{now}</strong> / {}</td><td>",
            esc(label(lang, &point.label)),
            point.max
        );
        reasons(&mut out, lang, point);
        for change in overrides.iter().filter(|o| o.point as usize == at) {
            let _ = write!(
                out,
                "<p class=\"override\"><strong>{}</strong> {} → {} · {} <span class=\"muted\">{} · {}</span></p>",
                tr::changed_by(lang),
                change.from,
                change.to,
                esc(&change.why),
                esc(&change.by),
                crate::format::when_ms(change.at_ms)
            );
        }
        out.push_str("</td></tr>");
    }
    out.push_str("</tbody></table>");
    remarks(&mut out, lang, grade);
    out
}

fn reasons(out: &mut String, lang: Lang, point: &PointGrade) {
    if point.reasons.is_empty() {
        let _ = write!(out, "<p class=\"muted\">{}</p>", tr::no_credit(lang));
        return;
    }
    out.push_str("<ul class=\"reasons\">");
    for reason in &point.reasons {
        let (class, word) = verdict(lang, reason.verdict);
        let _ = write!(
            out,
            "<li class=\"{class}\"><span class=\"verdict-word\">{word}</span> {}",
            esc(label(lang, &reason.label))
        );
        for quote in &reason.quotes {
            let _ = write!(out, " <q>{}</q>", esc(&quote.text));
        }
        out.push_str("</li>");
    }
    out.push_str("</ul>");
}

fn verdict(lang: Lang, verdict: Verdict) -> (&'static str, &'static str) {
    match verdict {
        Verdict::Full => ("full", tr::full(lang)),
        Verdict::Partial => ("partial", tr::partial(lang)),
        Verdict::Missing => ("missing", tr::missing(lang)),
        Verdict::Cancelled => ("cancelled", tr::cancelled(lang)),
    }
}

fn remarks(out: &mut String, lang: Lang, grade: &Grade) {
    for remark in grade.fatal.iter().chain(&grade.remarks) {
        let (class, word) = match remark.kind {
            RemarkKind::Fatal => ("remark fatal", tr::fatal(lang)),
            RemarkKind::Keywords => ("remark", tr::remark_keywords(lang)),
            RemarkKind::Echo => ("remark", tr::remark_echo(lang)),
            RemarkKind::Instruction => ("remark", tr::remark_instruction(lang)),
            RemarkKind::OtherQuestion => ("remark", tr::remark_other_question(lang)),
            RemarkKind::OffTopic => ("remark", tr::remark_off_topic(lang)),
            RemarkKind::Contradiction => ("remark", tr::remark_contradiction(lang)),
        };
        let _ =
            write!(out, "<p class=\"{class}\"><strong>{word}</strong> {}", esc(label(lang, &remark.label)));
        if let Some(quote) = &remark.quote {
            let _ = write!(out, " <q>{}</q>", esc(&quote.text));
        }
        out.push_str("</p>");
    }
    if grade.person {
        let _ = write!(
            out,
            "<p class=\"remark\">{} {}: {} %</p>",
            tr::asks_person(lang),
            tr::confidence(lang),
            percent(f64::from(grade.confidence))
        );
    }
}

pub fn percent(share: f64) -> String {
    crate::format::decimal(share * 100.0, 0)
}

/// The answer as it was written, with what earned or lost marks highlighted.
pub fn answer(lang: Lang, text: &str, grade: &Grade) -> String {
    if text.trim().is_empty() {
        return format!("<p class=\"muted\">{}</p>", ti::nothing_written(lang));
    }
    let mut marks: Vec<(usize, usize, &str, &str)> = vec![];
    for point in &grade.points {
        for reason in &point.reasons {
            let (class, word) = verdict(lang, reason.verdict);
            marks.extend(reason.quotes.iter().map(|q| (q.start, q.end, class, word)));
        }
    }
    for remark in &grade.fatal {
        marks.extend(remark.quote.iter().map(|q| (q.start, q.end, "fatal", tr::fatal(lang))));
    }
    marks.sort_unstable();
    let mut out = String::from("<div class=\"answer-text\">");
    let mut done = 0;
    for (start, end, class, word) in marks {
        // A quote of an older text, or one inside another, is left unmarked.
        let whole = text.get(done..start).zip(text.get(start..end));
        if let Some((before, quoted)) = whole.filter(|(_, quoted)| !quoted.is_empty()) {
            let _ =
                write!(out, "{}<mark class=\"{class}\" title=\"{word}\">{}</mark>", esc(before), esc(quoted));
            done = end;
        }
    }
    out.push_str(&esc(&text[done..]));
    out.push_str("</div>");
    out
}

/// The model answer; its HTML is the course's own.
pub fn model(lang: Lang, model: &ModelAnswer) -> String {
    let mut out = format!("<div class=\"prose\">{}</div>", model.core.get(lang));
    if !model.deep.get(lang).is_empty() {
        let _ = write!(
            out,
            "<details><summary>{}</summary><div class=\"prose\">{}</div></details>",
            tr::deep_dive(lang),
            model.deep.get(lang)
        );
    }
    if !model.follow_ups.is_empty() {
        let _ = write!(out, "<details><summary>{}</summary>", tr::follow_ups(lang));
        for follow in &model.follow_ups {
            let _ = write!(
                out,
                "<div class=\"prose follow-up\">{}<div class=\"follow-answer\">{}</div></div>",
                follow.prompt.get(lang),
                follow.answer.get(lang)
            );
        }
        out.push_str("</details>");
    }
    if !model.chapters.is_empty() {
        let links: Vec<String> = model.chapters.iter().map(|c| chapter(lang, c)).collect();
        let _ = write!(out, "<p class=\"meta\">{}: {}</p>", tr::chapters(lang), links.join(" · "));
    }
    out
}

pub fn chapter(lang: Lang, link: &ringlab_interview::api::ChapterLink) -> String {
    let title =
        format!("{} · {}", crate::strings::chapter_number(lang, link.number), esc(link.title.get(lang)));
    match &link.path {
        Some(path) => format!("<a href=\"/{}{}\">{title}</a>", lang.code(), esc(path)),
        None => format!("{title} <span class=\"muted\">({})</span>", tr::not_written(lang)),
    }
}

#[cfg(test)]
mod tests {
    use ringlab_content::report::{Quote, Reason};

    use super::*;

    fn grade(quotes: &[(usize, usize)]) -> Grade {
        let quote = |&(start, end): &(usize, usize)| Quote { start, end, text: "<q>".into() };
        let name = Label { zh: "要点<b>".into(), en: "point<b>".into() };
        let reason = Reason {
            claim: "c".into(),
            label: name.clone(),
            verdict: Verdict::Full,
            marks: 2.0,
            quotes: quotes.iter().map(quote).collect(),
        };
        let point = PointGrade { label: name, max: 2, awarded: 2, reasons: vec![reason] };
        Grade {
            version: "v".into(),
            total: 2,
            max: 2,
            points: vec![point],
            fatal: vec![],
            remarks: vec![],
            confidence: 0.4,
            person: true,
            other_question: None,
        }
    }

    #[test]
    fn quotes_are_marked_where_they_stand() {
        let html = answer(Lang::En, "环 <is> so", &grade(&[(4, 8)]));
        assert!(html.contains("环 <mark class=\"full\" title=\"said\">&lt;is&gt;</mark> so"), "{html}");
    }

    #[test]
    fn quotes_that_do_not_fit_the_text_are_left_out() {
        for quotes in [[(1, 2), (4, 6)], [(4, 90), (4, 4)], [(2, 4), (9, 3)]] {
            let html = answer(Lang::En, "环 <is> so", &grade(&quotes));
            assert!(html.contains("so</div>"), "{html}");
        }
        let html = answer(Lang::En, "abcdef", &grade(&[(0, 4), (2, 6)]));
        assert!(html.contains(">abcd</mark>ef"), "{html}");
    }

    #[test]
    fn a_point_says_who_changed_it_and_why() {
        let change = Overridden {
            point: 0,
            from: 2,
            to: 1,
            why: "<i>half</i>".into(),
            by: "Ada <x>".into(),
            at_ms: 0,
        };
        let html = points(Lang::En, &grade(&[]), &[change]);
        assert!(html.contains("<strong>1</strong> / 2"), "{html}");
        assert!(html.contains("2 → 1 · &lt;i&gt;half&lt;/i&gt;"), "{html}");
        assert!(!html.contains("<b>") && !html.contains("<x>") && !html.contains("<i>"), "{html}");
    }
}
