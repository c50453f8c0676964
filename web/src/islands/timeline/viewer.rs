//! The interactive timeline: zoom, pan, choose a step, lay the simulation beside the measurement, or read the tables.

use std::sync::Arc;

use leptos::html::{Canvas, Div};
use leptos::prelude::*;
use leptos::task::spawn_local;
use ringlab_engine::trace::{Crossing, Span, Trace};
use ringlab_labs::api::JobView;
use ringlab_labs::catalogue::LabView;
use ringlab_labs::text::Lang;
use wasm_bindgen::JsCast;
use web_sys::CanvasRenderingContext2d;

use super::draw::{self, AXIS, GUTTER, Palette, Scene};
use super::layout::{Lanes, Pick, Window, hit};
use super::summary::{LaneSummary, origin_text, summarise};
use super::table::{lane_rows, peers, step_rows};
use crate::format;
use crate::islands::{client, simulate};
use crate::strings as t;

/// A trace made ready to be drawn.
#[derive(Debug, Clone)]
struct Loaded {
    lanes: Arc<Lanes>,
    spans: Arc<Vec<Span>>,
    summary: Vec<LaneSummary>,
    origin: String,
    dropped: u64,
}

impl Loaded {
    fn of(lang: Lang, trace: Trace) -> Loaded {
        Loaded {
            summary: summarise(&trace),
            origin: origin_text(lang, &trace),
            dropped: trace.dropped,
            spans: Arc::new(trace.spans.clone()),
            lanes: Arc::new(Lanes::of(trace)),
        }
    }
}

#[component]
pub fn TimelineViewer(lang: Lang, job: JobView, lab: LabView, artifact: String) -> impl IntoView {
    let loaded = RwSignal::new(None::<Result<Loaded, String>>);
    let path = format!("/api/v1/jobs/{}/artifacts/{artifact}", job.id);
    Effect::new(move |started: Option<()>| {
        if started.is_none() {
            let path = path.clone();
            spawn_local(async move {
                loaded.set(Some(fetch(&path).await.map(|trace| Loaded::of(lang, trace)).map_err(|why| {
                    format!("{}{}", t::trace_failed(lang), why.unwrap_or(t::network_failed(lang).into()))
                })));
            });
        }
    });
    let source = StoredValue::new((job, lab));
    view! {
        <section class="timeline" aria-label=t::timeline(lang)>
            <h2>{t::timeline(lang)}</h2>
            {move || match loaded.get() {
                None => view! { <p class="muted">{t::trace_loading(lang)}</p> }.into_any(),
                Some(Err(why)) => view! { <p class="failure">{why}</p> }.into_any(),
                Some(Ok(trace)) => {
                    let simulated = source
                        .with_value(|(job, lab)| simulate::of_job(lang, lab, job))
                        .map(|trace| Loaded::of(lang, trace));
                    view! { <Chart lang=lang trace=trace simulated=simulated /> }.into_any()
                }
            }}
        </section>
    }
    .into_any()
}

/// The reason is `None` when no answer came.
async fn fetch(path: &str) -> Result<Trace, Option<String>> {
    let reply = client::get(path).await.map_err(|client::NoAnswer| None)?;
    if reply.status != 200 {
        return Err(Some(format!("HTTP {}", reply.status)));
    }
    serde_json::from_str(&reply.body).map_err(|e| Some(e.to_string()))
}

#[component]
fn Chart(lang: Lang, trace: Loaded, simulated: Result<Loaded, String>) -> impl IntoView {
    let total = trace.lanes.total_ns;
    let window = RwSignal::new(Window::all(total));
    let picked = RwSignal::new(None::<Pick>);
    let compare = RwSignal::new(false);
    let same_scale = RwSignal::new(true);
    let as_table = RwSignal::new(false);
    let canvas = NodeRef::<Canvas>::new();
    let legend = NodeRef::<Div>::new();
    // Counts what changes the picture without being a signal: the window's size, the theme.
    let outside = RwSignal::new(0u32);
    let lanes = trace.lanes.clone();
    let sim_lanes = simulated.as_ref().ok().map(|s| s.lanes.clone());

    Effect::new(move |listening: Option<()>| {
        if listening.is_none() {
            for name in ["resize", "ringlab-theme"] {
                let handle = window_event_listener_untyped(name, move |_| outside.update(|n| *n += 1));
                on_cleanup(move || handle.remove());
            }
        }
    });
    Effect::new({
        let (lanes, sim_lanes) = (lanes.clone(), sim_lanes.clone());
        move |_| {
            outside.track();
            if as_table.get() {
                return;
            }
            let (Some(canvas), Some(legend)) = (canvas.get(), legend.get()) else { return };
            let beside = if compare.get() { sim_lanes.as_deref() } else { None };
            let stretch = |other: &Lanes| {
                if same_scale.get() { 1.0 } else { lanes.total_ns as f64 / other.total_ns as f64 }
            };
            let scene = Scene {
                lanes: &lanes,
                beside: beside.map(|other| (other, stretch(other))),
                window: window.get(),
                picked: picked.get(),
                width: f64::from(canvas.client_width()),
                lane_height: draw::lane_height(lanes.lanes.len(), beside.is_some()),
            };
            paint(&canvas, &legend, &scene);
        }
    });

    let handlers = super::input::Handlers::new(lanes.clone(), window, picked, compare, canvas);
    let fit = move |_| window.set(Window::all(total));
    let zoom = move |factor: f64| {
        window.update(|w| *w = w.zoom((w.start + w.end) / 2.0, factor, total));
    };
    let details = {
        let lanes = lanes.clone();
        move || {
            picked
                .get()
                .and_then(|p| lanes.span(p).map(|span| details(lang, span)))
                .unwrap_or_else(|| view! { <p class="muted">{t::timeline_help(lang)}</p> }.into_any())
        }
    };
    let sim_note = match &simulated {
        Ok(sim) => {
            view! { <p class="origin" hidden=move || !compare.get()>{sim.origin.clone()}</p> }.into_any()
        }
        Err(why) => view! { <p class="muted">{why.clone()}</p> }.into_any(),
    };
    let has_sim = simulated.is_ok();
    let dropped = (trace.dropped > 0).then(|| {
        view! { <p class="notice">{format!("{}{}", t::dropped(lang), trace.dropped)}</p> }
    });
    let (summary, spans) = (trace.summary.clone(), trace.spans.clone());
    let tables = move || {
        as_table.get().then(|| {
            view! {
                <h3>{t::by_rank(lang)}</h3>
                <div class="scroll" role="region" tabindex="0" aria-label=t::by_rank(lang)>
                    {lane_rows(lang, &summary)}
                </div>
                <h3>{t::all_steps(lang)}</h3>
                <div class="scroll" role="region" tabindex="0" aria-label=t::all_steps(lang)>
                    {step_rows(lang, &spans)}
                </div>
            }
        })
    };
    let swatch = |class: &'static str, word: &'static str| {
        view! {
            <span class="key">
                <i class=class></i>
                {word}
            </span>
        }
    };
    view! {
        <p class="origin">{trace.origin.clone()}</p>
        {dropped}
        {sim_note}
        <div class="timeline-tools" role="group" aria-label=t::timeline(lang)>
            <button type="button" class="button quiet" on:click=move |_| zoom(0.6) prop:disabled=move || as_table.get()>
                {t::zoom_in(lang)}
            </button>
            <button type="button" class="button quiet" on:click=move |_| zoom(1.0 / 0.6) prop:disabled=move || as_table.get()>
                {t::zoom_out(lang)}
            </button>
            <button type="button" class="button quiet" on:click=fit prop:disabled=move || as_table.get()>
                {t::zoom_all(lang)}
            </button>
            <label class="switch" hidden=!has_sim>
                <input type="checkbox" prop:checked=compare on:change=move |e| compare.set(event_target_checked(&e)) />
                {t::compare_sim(lang)}
            </label>
            <label class="switch" hidden=move || !compare.get()>
                <input type="checkbox" prop:checked=same_scale on:change=move |e| same_scale.set(event_target_checked(&e)) />
                {t::same_scale(lang)}
            </label>
            <button type="button" class="button quiet" on:click=move |_| as_table.update(|v| *v = !*v)>
                {move || if as_table.get() { t::as_chart(lang) } else { t::as_table(lang) }}
            </button>
        </div>
        <div hidden=move || as_table.get()>
            <div class="legend" node_ref=legend>
                {swatch("wait", t::waiting(lang))}
                {swatch("send", t::kind_move(lang))}
                {swatch("reduce", t::kind_reduce(lang))}
                {swatch("sync", t::kind_sync(lang))}
            </div>
            <div class="timeline-plot">
                <canvas
                    node_ref=canvas
                    tabindex="0"
                    role="img"
                    aria-label=format!("{} · {}", t::timeline(lang), trace.origin)
                    aria-describedby="timeline-details"
                    on:keydown={
                        let h = handlers.clone();
                        move |e| h.key(&e)
                    }
                    on:wheel={
                        let h = handlers.clone();
                        move |e| h.wheel(&e)
                    }
                    on:pointerdown={
                        let h = handlers.clone();
                        move |e| h.down(&e)
                    }
                    on:pointermove={
                        let h = handlers.clone();
                        move |e| h.moved(&e)
                    }
                    on:pointerup={
                        let h = handlers.clone();
                        move |e| h.up(&e)
                    }
                    on:pointercancel=move |e| handlers.up(&e)
                ></canvas>
            </div>
            <div class="timeline-details" id="timeline-details" aria-live="polite">
                {details}
            </div>
        </div>
        {tables}
    }
    .into_any()
}

/// The span under a point of the canvas.
pub(super) fn pick_at(
    lanes: &Lanes,
    window: Window,
    width: f64,
    compared: bool,
    x: f64,
    y: f64,
) -> Option<Pick> {
    let height = draw::lane_height(lanes.lanes.len(), compared);
    if x < GUTTER || y < AXIS {
        return None;
    }
    let lane = ((y - AXIS) / height) as usize;
    let plot = width - GUTTER;
    let ns = window.ns(x - GUTTER, plot);
    let span = hit(lanes.lanes.get(lane)?, ns, window.len() / plot * 4.0)?;
    Some(Pick { lane, span })
}

fn paint(canvas: &web_sys::HtmlCanvasElement, legend: &web_sys::HtmlElement, scene: &Scene<'_>) {
    let Some(browser) = web_sys::window() else { return };
    let scale = browser.device_pixel_ratio().max(1.0);
    let (width, height) = ((scene.width * scale) as u32, (scene.height() * scale) as u32);
    if canvas.width() != width || canvas.height() != height {
        canvas.set_width(width);
        canvas.set_height(height);
        let style = format!("{}px", scene.height());
        if web_sys::HtmlElement::style(canvas).set_property("height", &style).is_err() {
            return;
        }
    }
    let resolved = |element: &web_sys::Element, property: &str| {
        let style = browser.get_computed_style(element).ok().flatten();
        style.and_then(|s| s.get_property_value(property).ok()).unwrap_or_default()
    };
    // The legend's swatches carry the theme's colours already resolved.
    let swatch = |class: &str| {
        let found = legend.query_selector(class).ok().flatten();
        found.map(|e| resolved(&e, "background-color")).unwrap_or_default()
    };
    let palette = Palette {
        ink: resolved(canvas, "color"),
        muted: resolved(legend, "color"),
        rule: resolved(canvas, "outline-color"),
        wait: swatch(".wait"),
        send: swatch(".send"),
        reduce: swatch(".reduce"),
        sync: swatch(".sync"),
    };
    let context = canvas.get_context("2d").ok().flatten();
    if let Some(context) = context.and_then(|c| c.dyn_into::<CanvasRenderingContext2d>().ok()) {
        draw::paint(&context, scene, &palette, scale);
    }
}

fn details(lang: Lang, span: &Span) -> AnyView {
    let moving = span.end_ns.saturating_sub(span.ready_ns);
    let mut facts = vec![
        (t::rank(lang), span.rank.to_string()),
        (t::channel(lang), span.channel.to_string()),
        (t::tile(lang), span.tile.to_string()),
        (t::step(lang), span.step.to_string()),
        (t::operation(lang), span.op.clone()),
    ];
    if span.from.is_some() || span.to.is_some() {
        facts.push((t::peer(lang), peers(span.from, span.to)));
    }
    facts.extend([
        (t::start_time(lang), format::nanos(span.start_ns as f64)),
        (t::waiting(lang), format::nanos(span.ready_ns.saturating_sub(span.start_ns) as f64)),
        (t::moving(lang), format::nanos(moving as f64)),
    ]);
    let Crossing { received, sent, wire_bytes, credit_ns } = &span.crossing;
    for (name, steps) in [(t::steps_received(lang), received), (t::steps_sent(lang), sent)] {
        facts.extend(steps.as_ref().map(|steps| match steps.end - steps.start {
            1 => (name, steps.start.to_string()),
            _ => (name, format!("{}–{}", steps.start, steps.end - 1)),
        }));
    }
    facts.extend(wire_bytes.map(|bytes| (t::wire_bytes(lang), format::bytes(bytes))));
    facts.extend(credit_ns.map(|ns| (t::credit_wait(lang), format::nanos(ns as f64))));
    if span.bytes > 0 {
        facts.push((t::span_bytes(lang), format::bytes(span.bytes)));
        if moving > 0 {
            // Bytes per nanosecond are gigabytes per second.
            let rate = format::significant(span.bytes as f64 / moving as f64);
            facts.push((t::rate(lang), format!("{rate} GB/s")));
        }
    }
    let facts: Vec<_> = facts
        .into_iter()
        .map(|(name, value)| {
            view! {
                <div>
                    <dt>{name}</dt>
                    <dd>{value}</dd>
                </div>
            }
        })
        .collect();
    view! { <dl class="facts">{facts}</dl> }.into_any()
}
