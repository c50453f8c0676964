//! Frames of the pages of accounts and interview sessions: heading, what the page is for, and the island that does it.

use leptos::prelude::*;
use ringlab_labs::text::Lang;

use crate::document::{Rendered, address};
use crate::islands::account::AccountPanel;
use crate::islands::assessments::AssessmentsPanel;
use crate::islands::invitation::InvitationPanel;
use crate::islands::practice::{PracticePanel, PracticeQuestion};
use crate::islands::report::ReportPanel;
use crate::islands::review::{ReviewPanel, ReviewQueue};
use crate::islands::sitting::SittingPanel;
use crate::page::InterviewPage;
use crate::strings as t;
use crate::strings_interview as ti;
use crate::strings_report as tr;

pub(super) fn render(lang: Lang, page: InterviewPage) -> Rendered {
    match page {
        InterviewPage::Front => front(lang),
        InterviewPage::Account => Rendered {
            section: None,
            ..framed(
                lang,
                ti::sign_in_title(lang),
                Some(ti::sign_in_lead(lang)),
                view! { <AccountPanel lang=lang /> }.into_any(),
            )
        },
        InterviewPage::Invitation { code } => framed(
            lang,
            ti::invitation_title(lang),
            None,
            view! { <InvitationPanel lang=lang code=code /> }.into_any(),
        ),
        InterviewPage::Sitting { id } => {
            framed(lang, ti::sitting_title(lang), None, view! { <SittingPanel lang=lang id=id /> }.into_any())
        }
        InterviewPage::Report { id } => {
            framed(lang, tr::report_title(lang), None, view! { <ReportPanel lang=lang id=id /> }.into_any())
        }
        InterviewPage::Practice => framed(
            lang,
            tr::practice_title(lang),
            Some(tr::practice_lead(lang)),
            view! { <PracticePanel lang=lang /> }.into_any(),
        ),
        InterviewPage::PracticeQuestion { question, prompt } => {
            let title = format!("{} · {}", ti::question(lang, question.number), question.title.get(lang));
            let island = view! { <PracticeQuestion lang=lang question=question prompt=prompt /> }.into_any();
            Rendered { title, ..framed(lang, tr::practice_title(lang), None, island) }
        }
        InterviewPage::Assessments => framed(
            lang,
            tr::assessments_title(lang),
            None,
            view! { <AssessmentsPanel lang=lang /> }.into_any(),
        ),
        InterviewPage::Review => framed(
            lang,
            tr::review_title(lang),
            Some(tr::review_lead(lang)),
            view! { <ReviewQueue lang=lang /> }.into_any(),
        ),
        InterviewPage::ReviewSitting { id } => {
            framed(lang, tr::review_title(lang), None, view! { <ReviewPanel lang=lang id=id /> }.into_any())
        }
    }
}

fn framed(lang: Lang, title: &'static str, lead: Option<&'static str>, island: AnyView) -> Rendered {
    let body = view! {
        <div class="page interview-page">
            <header class="page-head">
                <p class="eyebrow">
                    <a href=address(lang, "/interview")>{t::interview(lang)}</a>
                </p>
                <h1>{title}</h1>
                {lead.map(|text| view! { <p class="lead">{text}</p> })}
            </header>
            <p class="notice no-wasm">{ti::needs_js(lang)}</p>
            <div class="needs-wasm">{island}</div>
        </div>
    };
    Rendered {
        title: title.into(),
        description: lead.map(Into::into),
        section: Some("interview"),
        body: body.into_any(),
        islands: true,
    }
}

fn front(lang: Lang) -> Rendered {
    let ways = [
        (ti::front_practice(lang), ti::front_practice_text(lang)),
        (ti::front_invited(lang), ti::front_invited_text(lang)),
        (ti::front_make(lang), ti::front_make_text(lang)),
    ]
    .map(|(name, text)| {
        view! {
            <li>
                <h3>{name}</h3>
                <p>{text}</p>
            </li>
        }
    });
    let body = view! {
        <div class="page">
            <header class="page-head">
                <h1>{ti::front_title(lang)}</h1>
                <p class="lead">{ti::front_lead(lang)}</p>
                <p class="actions">
                    <a class="button primary" href=address(lang, "/practice")>
                        {ti::front_practice(lang)}
                    </a>
                    <a class="button" href=address(lang, "/assessments")>
                        {ti::assessments(lang)}
                    </a>
                    <a class="button" href=address(lang, "/review")>
                        {ti::review(lang)}
                    </a>
                </p>
            </header>
            <ol class="ways">{ways.collect_view()}</ol>
        </div>
    };
    Rendered {
        title: t::interview(lang).into(),
        description: Some(ti::front_lead(lang).into()),
        section: Some("interview"),
        body: body.into_any(),
        islands: false,
    }
}
