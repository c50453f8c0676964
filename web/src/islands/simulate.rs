//! The simulated timeline of the plan a job ran.

use ringlab_engine::cost::SimModel;
use ringlab_engine::plan::text::parse;
use ringlab_engine::sim::simulate;
use ringlab_engine::trace::Trace;
use ringlab_labs::api::JobView;
use ringlab_labs::catalogue::LabView;
use ringlab_labs::job::Task;
use ringlab_labs::text::Lang;

/// Simulates the traced task of a job, with the block, type and slots it was run with; the reason in words where that cannot be.
pub fn of_job(lang: Lang, lab: &LabView, job: &JobView) -> Result<Trace, String> {
    let refused = |message: &str| format!("{}{message}", crate::strings::sim_failed(lang));
    let compiled = ringlab_labs::compile(lab, &job.submission, job.seed)
        .map_err(|errors| refused(errors.first().map(|e| e.message.get(lang)).unwrap_or_default()))?;
    let traced = compiled.tasks.into_iter().find_map(|task| match task {
        Task::Collective(task) if task.trace => Some(task),
        Task::Collective(_) => None,
    });
    let task = traced.ok_or_else(|| crate::strings::no_trace(lang).to_owned())?;
    let plan = parse(&task.plan).map_err(|e| refused(e.message.get(lang)))?.plan;
    simulate(&plan, &SimModel::default(), task.block, task.dtype, ringlab_labs::job::slot_bytes(task.backend))
        .map_err(|e| refused(e.text().get(lang)))
}
