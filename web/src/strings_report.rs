//! Sentences of reports, review, assessments and practice, in both languages.

use ringlab_interview::bank::Band;
use ringlab_labs::text::Lang;

use crate::strings::strings;

strings! {
    // Report
    report_title = "面试报告", "Interview report";
    no_report = "报告还不能看，或者它不属于这个账号。", "The report cannot be opened yet, or it does not belong to this account.";
    total = "总分", "Total";
    scaled = "折合 540 分制", "On the scale of 540";
    band = "水平", "Band";
    is_final = "已定稿", "final";
    is_draft = "复核之前，分数还可能变动", "before review: marks may still change";
    submitted_at = "提交于", "Submitted";
    ended_at = "到时收卷于", "Time over at";
    nameless = "（匿名复核）", "(name hidden)";
    gates = "门槛题", "Gate questions";
    gates_hint = "每道门槛题至少要 6 分，总分不能代替。", "Each needs 6 points at least; a total does not make up for them.";
    gates_none = "这一套没有门槛题。", "This set has no gate question.";
    passed = "通过", "passed";
    not_passed = "未通过", "not passed";
    by_level = "按层次", "By level";
    by_topic = "按主题", "By topic";
    share = "得分率", "Share";
    points_word = "得分", "Points";
    print = "打印", "Print";
    export_json = "下载 JSON", "Download as JSON";
    the_answer = "候选人的回答", "The answer";
    the_model = "参考答案", "The model answer";
    deep_dive = "深入展开", "In depth";
    point = "评分点", "Point";
    why = "理由", "Why";
    full = "答到了", "said";
    partial = "部分答到", "partly said";
    missing = "缺少", "missing";
    cancelled = "说了，但又自相矛盾", "said, and contradicted elsewhere";
    no_credit = "没有找到能给分的内容。", "Nothing was found that earns marks here.";
    fatal = "基本错误（本题最多 2 分）", "Basic error (at most 2 points for the question)";
    remark_keywords = "只是罗列关键词，没有论述", "a list of keywords, not an argument";
    remark_echo = "复述了题目", "repeats the question";
    remark_instruction = "写给评分程序的指令，未予理会", "an instruction to the grader, ignored";
    remark_other_question = "答的是另一道题", "answers another question";
    remark_off_topic = "没有找到与本题有关的内容", "nothing about this question was found";
    remark_contradiction = "前后矛盾", "contradicts itself";
    judge_says = "语言模型的意见（不改分，只用来找出该由人看的题）", "A language model's opinion (changes no mark, only says where a person should look)";
    judge_fatal = "它认为有基本错误", "it sees a basic error";
    asks_person = "评分程序请人再看一遍。", "The grader asks a person to look.";
    confidence = "把握", "Confidence";
    changed_by = "面试官更正", "Changed by an instructor";
    study = "接下来读什么", "What to study next";
    study_none = "没有丢分，无可推荐。", "No points were lost: nothing to recommend.";
    lost = "丢失的分", "Points lost";
    chapter = "章节", "Chapter";
    from_questions = "来自题目", "From questions";
    not_written = "尚未写好", "not written yet";
    follow_up = "追问", "Follow-up";
    follow_ups = "追问与回答", "Follow-ups and their answers";
    chapters = "相关章节", "Chapters";
    events = "过程记录", "What was recorded";
    events_hint = "只是记录，本身不影响分数。", "A record only: by itself it changes no mark.";
    events_none = "没有离开页面、大段粘贴或断网的记录。", "No leaving of the page, large paste or lost connection was recorded.";
    event_left = "离开了页面", "left the page";
    spent = "用时", "Time on it";
    time = "时间", "Time";
    what = "内容", "What";

    // Review
    review_title = "复核", "Review";
    review_lead = "最没有把握的排在最前。", "The least certain first.";
    review_denied = "复核需要面试官账号。", "Review needs an instructor's account.";
    review_empty = "没有等待复核的面试。", "Nothing waits for review.";
    candidate = "候选人", "Candidate";
    asks = "请人看的题", "Questions that ask for a person";
    state = "状态", "State";
    confirmed_by = "确认者", "Confirmed by";
    open_review = "打开复核", "Open the review";
    override_title = "更正某一点", "Change a point";
    override_to = "改为", "Points";
    override_why = "理由（候选人看得到）", "Reason (the candidate sees it)";
    override_send = "更正", "Change";
    override_done = "已更正。", "Changed.";
    confirm_title = "确认评分", "Confirm the grade";
    confirm_note = "附注（可不填）", "Note (optional)";
    confirm = "确认", "Confirm";
    two_needed = "这场面试要两位面试官确认。", "This assessment needs two instructors to confirm.";
    log = "更改记录", "Log of changes";
    log_who = "谁", "Who";
    log_from = "从", "From";
    log_to = "到", "To";
    statistics = "各题统计", "Statistics of the questions";
    statistics_hint = "难度是平均得分率；区分度是与其余各题的相关；一致性是评分程序与面试官总分的二次加权 kappa。", "Facility is the mean share of points; discrimination the correlation with the rest of the sitting; agreement the quadratic weighted kappa of the grader's totals and the instructors'.";
    answers_count = "回答数", "Answers";
    facility = "难度", "Facility";
    discrimination = "区分度", "Discrimination";
    median_time = "用时中位数", "Median time";
    agreement = "一致性", "Agreement";
    reviewed = "复核数", "Reviewed";
    question_word = "题目", "Question";
    level_word = "层次", "Level";

    // Assessments
    assessments_title = "面试场次", "Assessments";
    assessments_denied = "组织面试需要面试官账号。", "Setting up assessments needs an instructor's account.";
    assessments_none = "还没有组织过面试。", "No assessment yet.";
    make = "新建一场", "Set up an assessment";
    make_title = "名称", "Title";
    make_set = "题组", "Questions";
    set_screening = "45 分钟初筛", "45-minute screening";
    set_senior = "90 分钟资深", "90-minute senior interview";
    set_senior_last = "最后一题", "Its last question";
    set_full = "全部题目", "The full bank";
    set_custom = "自选", "Your own choice";
    set_numbers = "题号，用空格或逗号分开", "Question numbers, with spaces or commas between";
    make_minutes = "时间（分钟，留空用题组自己的）", "Minutes (empty: the set's own)";
    make_blind = "匿名复核：复核者看不到名字", "Blind review: reviewers see no names";
    make_two = "两位面试官都确认才算定稿", "Final once two instructors confirmed it";
    make_at_once = "候选人马上能看报告", "Candidates see their report at once";
    make_send = "新建", "Set up";
    close = "结束这场", "Close it";
    closed = "已结束", "closed";
    invite = "发邀请", "Invite";
    invite_labels = "每行一位：名字、编号，认得出就行", "One candidate a line: a name, a number, whatever you know them by";
    invite_send = "生成邀请链接", "Make the links";
    invite_once = "链接只显示这一次，请现在复制。", "These links are shown this once: copy them now.";
    copy = "复制", "Copy";
    copied = "已复制", "Copied";
    revoke = "撤回", "Withdraw";
    revoked = "已撤回", "withdrawn";
    invited = "已邀请", "invited";
    running = "进行中", "running";
    submitted = "已提交", "submitted";
    time_over = "到时收卷", "time over";
    invitations = "邀请", "Invitations";
    invited_label = "邀请给", "For";

    // Practice
    practice_title = "练习", "Practice";
    practice_lead = "写下你的回答，马上看到每一分的理由。薄弱的题会按间隔再次出现。", "Write your answer and see the reason for every mark at once. What was weak comes back after a while.";
    practice_none = "题库里还没有题目。", "The bank has no questions yet.";
    due = "该复习了", "Due";
    weak = "薄弱", "Weak";
    fresh = "还没练过", "New";
    solid = "已掌握", "Solid";
    attempts = "次数", "Attempts";
    best = "最好", "Best";
    last_word = "最近", "Last";
    grade_me = "评分", "Grade it";
    grading = "正在评分…", "Grading…";
    reveal = "看参考答案", "Show the model answer";
    reveal_hint = "看了以后，一天之内对这道题的回答算作看过答案。", "After that, an answer to it within a day counts as seen.";
    back_to_list = "回到列表", "Back to the list";
    practise_this = "练这道题", "Practise this one";
    answer_follow_up = "回答这个追问", "Answer this follow-up";
    your_grade = "你的得分", "Your grade";
    next_due = "下次复习", "Due again";
}

pub fn band_title(lang: Lang, band: Band) -> &'static str {
    match (lang, band) {
        (Lang::Zh, Band::Beginning) => "入门（0–180）",
        (Lang::Zh, Band::Basic) => "基础（181–300）",
        (Lang::Zh, Band::Working) => "能独立工作（301–400）",
        (Lang::Zh, Band::Senior) => "资深（401–480）",
        (Lang::Zh, Band::Expert) => "专家（481–540）",
        (Lang::En, Band::Beginning) => "beginning (0–180)",
        (Lang::En, Band::Basic) => "basic (181–300)",
        (Lang::En, Band::Working) => "works independently (301–400)",
        (Lang::En, Band::Senior) => "senior (401–480)",
        (Lang::En, Band::Expert) => "expert (481–540)",
    }
}

/// What an event of a sitting says, with its question; nothing for what no reader needs.
pub fn event(lang: Lang, event: &ringlab_interview::api::SittingEvent) -> String {
    use ringlab_interview::api::SittingEvent as E;
    let seconds = |ms: &u64| crate::format::decimal(*ms as f64 / 1000.0, 1);
    match (lang, event) {
        (_, E::Left { question }) => format!("{} · {}", q(lang, *question), event_left(lang)),
        (Lang::Zh, E::Returned { question, away_ms }) => {
            format!("{} · 回到页面，离开了 {} 秒", q(lang, *question), seconds(away_ms))
        }
        (Lang::En, E::Returned { question, away_ms }) => {
            format!("{} · came back after {} s", q(lang, *question), seconds(away_ms))
        }
        (Lang::Zh, E::Pasted { question, characters }) => {
            format!("{} · 粘贴了 {characters} 个字符", q(lang, *question))
        }
        (Lang::En, E::Pasted { question, characters }) => {
            format!("{} · pasted {characters} characters", q(lang, *question))
        }
        (Lang::Zh, E::Offline { question, for_ms }) => {
            format!("{} · 断网 {} 秒", q(lang, *question), seconds(for_ms))
        }
        (Lang::En, E::Offline { question, for_ms }) => {
            format!("{} · offline for {} s", q(lang, *question), seconds(for_ms))
        }
        (_, E::Opened { .. }) => String::new(),
    }
}

fn q(lang: Lang, number: u32) -> String {
    crate::strings_interview::question(lang, number)
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_sentence_is_there_in_both_languages() {
        crate::strings::tests::both_languages(super::ALL, &[]);
    }
}
