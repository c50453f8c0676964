//! The report of a sitting.

use leptos::prelude::*;
use ringlab_interview::api::Report;
use ringlab_labs::text::Lang;

use super::remote::Remote;
use crate::report_html;
use crate::strings_report as tr;

#[island]
pub fn ReportPanel(lang: Lang, id: String) -> impl IntoView {
    let path = format!("/api/v1/sittings/{id}/report");
    let remote = Remote::<Report>::load(path.clone());
    remote.view(lang, tr::no_report(lang), move |report| {
        let questions: Vec<_> = report
            .questions
            .iter()
            .map(|q| {
                let html = report_html::question(lang, q);
                view! { <article class="report-question" id=format!("q{}", q.question.number) inner_html=html></article> }
            })
            .collect();
        view! {
            <div class="report">
                <p class="actions">
                    <button type="button" class="button" on:click=move |_| print()>
                        {tr::print(lang)}
                    </button>
                    <a class="button" href=path.clone() download="ringlab-report.json">
                        {tr::export_json(lang)}
                    </a>
                </p>
                <div inner_html=report_html::summary(lang, &report)></div>
                {questions}
                <div inner_html=report_html::after(lang, &report)></div>
            </div>
        }
        .into_any()
    })
}

fn print() {
    if let Some(window) = web_sys::window() {
        // Where printing is turned off nothing happens.
        let _ = window.print();
    }
}
