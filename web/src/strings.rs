//! Every sentence of the interface, in both languages. One function per sentence: what the browser's module does not call is not in it.

use ringlab_labs::text::Lang;

macro_rules! strings {
    ($($name:ident = $zh:literal, $en:literal;)*) => {
        $(
            #[doc = $en]
            pub const fn $name(lang: Lang) -> &'static str {
                match lang {
                    Lang::Zh => $zh,
                    Lang::En => $en,
                }
            }
        )*

        #[cfg(test)]
        const ALL: &[(&str, &str, &str)] = &[$((stringify!($name), $zh, $en)),*];
    };
}
pub(crate) use strings;

strings! {
    // Around every page
    site = "Ringlab", "Ringlab";
    tagline = "GPU 集合通信：先推导，再预测，最后实测", "GPU collective communication: derive it, predict it, measure it";
    skip = "跳到正文", "Skip to the content";
    main_nav = "主导航", "Main";
    course = "课程", "Course";
    labs = "实验", "Labs";
    interview = "面试", "Interview";
    account = "账号", "Account";
    other_language = "English", "中文";
    dark = "深色", "Dark";
    no_wasm = "这一部分要在浏览器里运行 WebAssembly 才能操作；下面是同样内容的静态形式。", "This part needs WebAssembly to be interactive; below is the same content in a fixed form.";
    wasm_failed = "交互部分没能加载。刷新页面再试一次；如果一直不行，文字内容仍然完整可读。", "The interactive parts did not load. Reload the page to try again; the text is complete either way.";
    footer_truth = "页面上的每个数字都注明是算出来的、模拟出来的还是测出来的，以及在什么机器上。", "Every figure here says whether it was computed, simulated or measured, and on what machine.";
    licence = "代码以 MIT 或 Apache-2.0 许可", "Code under MIT or Apache-2.0";

    // Home
    home_eyebrow = "GPU 集合通信", "GPU collective communication";
    home_title = "先推导，再预测，最后实测", "Derive it, predict it, measure it";
    home_lead = "八块 GPU 要把各自的梯度加到一起。每一步谁发给谁、发多少、为什么不能更少？在这里，你先把答案推出来，写下预测，再让真实的机器来评判。", "Eight GPUs must add up their gradients. Who sends what to whom in each step, and why can it not be less? Here you derive the answer, commit to a prediction, and let a real machine judge it.";
    home_start = "从课程开始", "Start with the course";
    home_labs = "直接做实验", "Go to the labs";
    home_how = "一次学习的走法", "How one session goes";
    home_read = "读", "Read";
    home_read_text = "每章一条论证：从定义推到公式，中间的数都能复算。", "Each chapter is one argument, from definitions to a formula, and every number on the way can be recomputed.";
    home_predict = "预测", "Predict";
    home_predict_text = "动手之前写下你认为会看到什么。猜错不丢人，不猜才学不到。", "Before anything runs, write down what you expect to see. A wrong guess teaches; no guess does not.";
    home_run = "运行", "Run";
    home_run_text = "你的计划先过验证器，再交给真实的执行节点；日志实时可见。", "Your plan passes the verifier, then runs on a real node while you watch its log.";
    home_judge = "对照", "Compare";
    home_judge_text = "时间线、字节数、每个元素的对错，逐项与预测对照评分。", "Timeline, bytes, the correctness of every element: each is held against your prediction and marked.";
    home_written = "已写好的章节", "Chapters you can read now";
    home_open_labs = "开放的实验", "Open labs";
    home_runners = "在线的执行节点", "Runners online";
    home_no_runners = "现在没有执行节点在线。仍然可以提交实验，任务会排队等待。", "No runner is online at the moment. You can still submit a lab; the job waits in the queue.";
    runner_name = "节点", "Runner";
    runner_hardware = "硬件", "Hardware";
    runner_state = "状态", "State";
    runner_busy = "忙", "busy";
    runner_idle = "空闲", "idle";

    // Course
    course_lead = "三十六章，从一次发送讲到上万个 rank。已经写好的可以点开；其余的先列出题目。", "Thirty-six chapters, from one send to ten thousand ranks. The written ones are open; the others are announced by title.";
    in_chinese = "中文", "in Chinese";
    not_translated = "本章还没有这种语言的译文。", "This chapter is not translated yet; here is the Chinese text.";
    home_all_chapters = "全部三十六章", "All thirty-six chapters";
    announced = "待写", "announced";
    with_lab = "带实验", "with a lab";
    chapter_contents = "本章目录", "In this chapter";
    objectives = "读完以后，你能", "After this chapter you can";
    prerequisites = "先要知道", "Before you start";
    previous = "上一章", "Previous chapter";
    next = "下一章", "Next chapter";
    the_lab = "本章实验", "The lab of this chapter";
    open_lab = "打开实验", "Open the lab";
    widget = "互动图", "Interactive figure";

    // Labs
    labs_lead = "每个实验都在真实的节点上运行，结果由检查器逐项判定。每人一份不同的数据，可以随时复现。", "Every lab runs on a real node and a checker judges each result. Everyone gets an instance of their own that can be reproduced at any time.";
    start_lab = "开始", "Start";
    for_chapter = "所属章节", "Belongs to";
    runs_on = "运行于", "Runs on";
    marks_word = "分", "marks";
    your_runs = "你的运行记录", "Your runs";
    no_runs = "还没有运行过。", "None yet.";
    run_word = "运行", "Run";
    submitted = "提交时间", "Submitted";
    state_word = "状态", "State";
    score = "得分", "Marks";
    lab_needs_js = "填写、即时检查和提交需要 JavaScript 与 WebAssembly。实验说明和以往的结果不开脚本也能读。", "Filling in, live checking and submitting need JavaScript and WebAssembly. The instructions and earlier results can be read without.";
    instructions = "实验说明", "Instructions";

    // Lab panel
    parameters = "参数", "Parameters";
    prediction = "预测", "Prediction";
    prediction_hint = "先写预测，再运行。提交以后就不能改了。", "Predict before you run. It cannot be changed after submission.";
    plan_title = "通信计划", "The plan";
    plan_hint = "可以直接改。每次改动都会在浏览器里验证；被拒绝时会指出最短的反例在哪一行。", "Edit it as you like. Each change is verified in your browser; a refusal points to the line of the shortest counter-example.";
    plan_label = "计划文本", "Plan text";
    plan_default = "使用实验自带的计划", "The lab's own plan is used";
    plan_accepted = "验证通过", "Verified";
    plan_refused = "被拒绝", "Refused";
    plan_checking = "正在验证…", "Verifying…";
    undo = "撤销", "Undo";
    reset_plan = "恢复原计划", "Back to the lab's plan";
    reset_form = "恢复默认值", "Back to the defaults";
    hints = "提示", "Hints";
    judged_on = "会判定的项目", "What will be judged";
    submit = "提交运行", "Submit and run";
    submitting = "正在提交…", "Submitting…";
    draft_kept = "草稿已存在本机浏览器里。", "The draft is kept in this browser.";
    fix_fields = "有几项需要修改，已在对应的位置标出。", "Some fields need a change; each is marked at its place.";
    your_seed = "你的实例种子", "Seed of your instance";
    choose = "请选择", "choose one";
    network_failed = "连不上服务器。检查网络以后再试；你写的内容都还在。", "The server cannot be reached. Check the network and try again; nothing you wrote is lost.";
    no_such_runner = "此刻没有装着这种后端的节点在线，任务会一直排队到有节点上线为止。", "No runner with this backend is online now; the job will wait in the queue until one is.";

    // Run
    run_title = "一次运行", "A run";
    back_to_lab = "回到实验", "Back to the lab";
    run_again = "用同样的值再跑一次", "Run again with these values";
    queued = "排队中", "Queued";
    running = "运行中", "Running";
    done = "完成", "Done";
    failed = "失败", "Failed";
    cancelled = "已取消", "Cancelled";
    cancel = "取消运行", "Cancel the run";
    log = "日志", "Log";
    log_empty = "还没有日志。", "No log yet.";
    log_reconnecting = "连接断了，正在重连；断开期间的日志会补上。", "The connection was lost and is being restored; what you missed will follow.";
    log_truncated = "日志到了上限，后面的没有保存。上限：", "The log reached its limit and was cut. Limit: ";
    checks = "逐项判定", "Checks";
    check_word = "检查项", "Check";
    expected = "应为", "Expected";
    got = "实际", "Got";
    tolerance = "容差", "Tolerance";
    verdict = "判定", "Verdict";
    pass = "通过", "pass";
    fail = "不符", "fail";
    pending = "等你作答", "waits for your answers";
    why = "为什么", "Why";
    total_marks = "总分", "Total";
    answers = "作答", "Your answers";
    answers_hint = "根据下面这次运行的数据计算。", "Work these out from the figures of this run.";
    send_answers = "提交答案", "Submit the answers";
    tables = "数据", "Figures";
    artifacts = "产物", "Artifacts";
    file = "文件", "File";
    size = "大小", "Size";
    perfetto = "下载时间线（Perfetto 格式）", "Download the timeline for Perfetto";
    perfetto_hint = "在 ui.perfetto.dev 打开。", "Open it at ui.perfetto.dev.";
    your_submission = "提交的内容", "What was submitted";
    attempt = "第几次尝试", "Attempt";
    on_runner = "执行节点", "Runner";
    failure_job = "任务本身无法完成", "The job itself cannot succeed";
    failure_limit = "超出限制", "A limit was exceeded";
    failure_runner = "执行节点出了故障", "The runner broke down";
    hardware = "硬件", "Hardware";
    engine_version = "引擎版本", "Engine";
    started = "开始", "Started";
    finished = "结束", "Finished";
    phase_verify = "验证计划", "verifying the plan";
    phase_warmup = "预热", "warming up";
    phase_measure = "计时", "measuring";
    phase_check = "检查每个元素", "checking every element";
    phase_trace = "记录时间线", "recording the timeline";
    phase_upload = "上传产物", "uploading";

    // Timeline
    timeline = "时间线", "Timeline";
    measured = "实测", "Measured";
    simulated = "模拟", "Simulated";
    waiting = "等待", "waiting";
    moving = "搬运", "moving";
    rank = "rank", "rank";
    channel = "通道", "channel";
    tile = "tile", "tile";
    step = "步", "step";
    operation = "操作", "operation";
    start_time = "开始", "start";
    duration = "用时", "took";
    span_bytes = "字节", "bytes";
    wire_bytes = "线路上的字节", "bytes on the wire";
    steps_received = "收自 FIFO 步", "FIFO steps received";
    steps_sent = "发往 FIFO 步", "FIFO steps sent";
    credit_wait = "等 credit", "waiting for credits";
    peer = "对端", "peer";
    sent_bytes = "发出", "sent";
    rate = "速率", "rate";
    kind_move = "搬运", "moving";
    kind_reduce = "归约", "reducing";
    kind_sync = "同步", "synchronising";
    steps_word = "步数", "steps";
    dropped = "跟踪缓冲区装不下而丢掉的区间数：", "Spans that did not fit the trace buffer and were dropped: ";
    by_rank = "按 rank 汇总", "By rank and channel";
    all_steps = "逐步列表", "Every step";
    first_rows = "只列出前 200 行；完整数据在产物里。", "The first 200 rows; the whole is among the artifacts.";
    compare_sim = "对照模拟", "Compare with the simulation";
    same_scale = "同一时间刻度", "Same time scale";
    zoom_in = "放大", "Zoom in";
    zoom_out = "缩小", "Zoom out";
    zoom_all = "全貌", "Fit";
    as_table = "看表格", "As a table";
    as_chart = "看图", "As a chart";
    timeline_help = "滚轮或双指缩放，拖动平移。键盘：← → 平移，+ − 缩放，0 看全貌，↑ ↓ 换行，[ ] 换步。", "Wheel or pinch to zoom, drag to pan. Keyboard: ← → pan, + − zoom, 0 fits, ↑ ↓ change lane, [ ] change step.";
    trace_loading = "正在取时间线…", "Loading the timeline…";
    trace_failed = "时间线取不到：", "The timeline cannot be loaded: ";
    no_trace = "这次运行没有留下时间线。", "This run left no timeline.";
    sim_failed = "这个计划无法模拟：", "This plan cannot be simulated: ";

    // Widgets
    stepper_title = "环形 all-reduce，一步一步看", "Ring all-reduce, step by step";
    stepper_title_gather = "环形 all-gather，一步一步看", "Ring all-gather, step by step";
    stepper_title_scatter = "环形 reduce-scatter，一步一步看", "Ring reduce-scatter, step by step";
    stepper_phase_reduce = "归约散布：途中的块边走边累加", "reduce-scatter: chunks gather contributions as they travel";
    stepper_phase_gather = "全收集：算完的块转一圈", "all-gather: finished chunks go round";
    stepper_source = "由引擎在浏览器里生成的计划推演得出（计算，非测量）；圆点表示这一块里已有哪些 rank 的贡献，S 是缓冲区大小。", "Computed from the engine's own plan in your browser, not measured. Dots show whose contributions a chunk holds; S is the buffer's size.";
    stepper_ranks = "rank 数", "Ranks";
    stepper_prev = "上一步", "Back";
    stepper_next = "下一步", "Forward";
    stepper_first = "回到开头", "To the start";
    stepper_last = "到结尾", "To the end";
    stepper_start = "开始之前：每个 rank 只有自己的输入。", "Before the first step: every rank has its own input alone.";
    stepper_holds = "每个 rank 此刻持有的块", "What each rank holds now";
    stepper_chunk = "块", "chunk";
    stepper_sent = "已发送", "Sent so far";
    stepper_bound = "下界", "Lower bound";
    stepper_complete = "集齐", "complete";
    stepper_in_flight = "途中", "in flight";
    calc_title = "带宽换算", "Bandwidth calculator";
    calc_collective = "集合操作", "Collective";
    calc_ranks = "rank 数 n", "Ranks n";
    calc_bytes = "字节数 S", "Bytes S";
    calc_time = "时间 t（微秒）", "Time t (microseconds)";
    calc_factor = "系数", "factor";
    calc_rule = "nccl-tests 的约定：S 取输入、输出缓冲区中较大的一个。", "As nccl-tests has it: S is the larger of the input and the output buffer.";
    calc_bad = "填入正数才能计算。", "Fill in positive numbers to compute.";

    // Quiz
    quiz = "小测", "Quiz";
    quiz_check = "核对", "Check";
    quiz_again = "再答一次", "Answer again";
    quiz_right = "对了。", "Right.";
    quiz_wrong = "不对。", "Not yet.";
    quiz_answer = "答案与解释", "Answer and explanation";
    quiz_choose_all = "可多选", "choose all that apply";
    quiz_order_hint = "用箭头按钮排好次序", "put in order with the arrow buttons";
    quiz_match_hint = "给左边每一项选出对应的右边", "choose the match of each item";
    quiz_up = "上移", "Move up";
    quiz_down = "下移", "Move down";
    quiz_pick_first = "先作答，再核对。", "Answer first, then check.";
    quiz_not_a_number = "请填一个数，例如 1.75。", "Write a number, such as 1.75.";
    quiz_correct_option = "正确", "correct";

    // Errors
    error_home = "回到首页", "Back to the home page";
    error_course = "看课程目录", "See the course";
}

/// `第 12 章`, `Chapter 12`
pub fn chapter_number(lang: Lang, number: u32) -> String {
    match lang {
        Lang::Zh => format!("第 {number} 章"),
        Lang::En => format!("Chapter {number}"),
    }
}

/// Reading or working time.
pub fn minutes(lang: Lang, minutes: u32) -> String {
    match lang {
        Lang::Zh => format!("约 {minutes} 分钟"),
        Lang::En => format!("about {minutes} min"),
    }
}

/// Place in the queue; 1 is next.
pub fn queue_position(lang: Lang, position: u32) -> String {
    match (lang, position) {
        (Lang::Zh, 0 | 1) => "下一个就是你。".into(),
        (Lang::En, 0 | 1) => "You are next.".into(),
        (Lang::Zh, n) => format!("前面还有 {} 个任务。", n - 1),
        (Lang::En, 2) => "One job is ahead of you.".into(),
        (Lang::En, n) => format!("{} jobs are ahead of you.", n - 1),
    }
}

/// `第 2 次，共 3 次`
pub fn attempt_of(lang: Lang, attempt: u32, of: u32) -> String {
    match lang {
        Lang::Zh => format!("第 {attempt} 次，最多 {of} 次"),
        Lang::En => format!("{attempt} of at most {of}"),
    }
}

/// `第 3 步，共 14 步`
pub fn step_of(lang: Lang, step: usize, of: usize) -> String {
    match lang {
        Lang::Zh => format!("第 {step} 步，共 {of} 步"),
        Lang::En => format!("Step {step} of {of}"),
    }
}

/// Points with their word: `12 分`, `1 mark`.
pub fn marks(lang: Lang, n: f64) -> String {
    let figure = crate::format::decimal(n, 2);
    match lang {
        Lang::Zh => format!("{figure} 分"),
        Lang::En if figure == "1" => "1 mark".into(),
        Lang::En => format!("{figure} marks"),
    }
}

/// `打开提示 2（扣 0.5 分）`
pub fn open_hint(lang: Lang, number: usize, price: f64) -> String {
    let price = marks(lang, price);
    match lang {
        Lang::Zh => format!("打开提示 {number}（扣 {price}）"),
        Lang::En => format!("Open hint {number} (costs {price})"),
    }
}

/// `第 7 行`, `line 7`
pub fn line(lang: Lang, n: u32) -> String {
    match lang {
        Lang::Zh => format!("第 {n} 行"),
        Lang::En => format!("line {n}"),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn no_sentence_is_missing_or_left_untranslated() {
        // Field terms and the product's name stay as they are.
        both_languages(ALL, &["site", "rank", "tile"]);
    }

    pub(crate) fn both_languages(all: &[(&str, &str, &str)], same: &[&str]) {
        for (name, zh, en) in all {
            assert!(!zh.trim().is_empty() && !en.trim().is_empty(), "{name} is empty");
            if !same.contains(name) {
                assert_ne!(zh, en, "{name} is the same in both languages");
            }
            let chinese = |s: &str| s.chars().any(|c| ('\u{4e00}'..='\u{9fff}').contains(&c));
            if *name != "other_language" {
                assert!(!chinese(en), "{name}: Chinese in the English text");
            }
        }
    }

    #[test]
    fn queue_positions_read_well() {
        assert_eq!(queue_position(Lang::En, 1), "You are next.");
        assert_eq!(queue_position(Lang::En, 2), "One job is ahead of you.");
        assert_eq!(queue_position(Lang::Zh, 4), "前面还有 3 个任务。");
    }
}
