//! What went wrong and where to go.

use leptos::prelude::*;
use ringlab_labs::text::Lang;

use crate::document::{Rendered, address};
use crate::strings as t;

pub(super) fn render(lang: Lang, status: u16, title: String, detail: String) -> Rendered {
    let heading = title.clone();
    let body = view! {
        <div class="page error-page">
            <p class="status" aria-hidden="true">
                {status}
            </p>
            <h1>{heading}</h1>
            <p class="lead">{detail}</p>
            <p class="actions">
                <a class="button primary" href=address(lang, "/")>
                    {t::error_home(lang)}
                </a>
                <a class="button" href=address(lang, "/course")>
                    {t::error_course(lang)}
                </a>
            </p>
        </div>
    };
    Rendered { title, description: None, section: None, body: body.into_any(), islands: false }
}
