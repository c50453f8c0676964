//! Sentences of accounts, invitations and sittings, in both languages.

use ringlab_labs::text::Lang;

use crate::strings::strings;

strings! {
    // Everywhere
    loading = "正在读取…", "Loading…";
    again = "再试一次", "Try again";
    needs_js = "这个页面要开启 JavaScript 与 WebAssembly 才能使用。", "This page needs JavaScript and WebAssembly.";
    answer_unread = "服务器的回答读不懂。刷新页面再试一次。", "The server's answer could not be read. Reload the page and try again.";
    none_yet = "还没有。", "None yet.";
    yes = "是", "yes";
    no = "否", "no";

    // The section's front page
    front_title = "像面试官那样提问，像评审那样给出理由", "Questions like an interviewer's, marks with reasons";
    front_lead = "54 道题，五个层次。自己练，或者拿着邀请计时作答；每一分都指出是答案里的哪句话挣来的，或者缺了什么。", "54 questions on five levels. Practise alone, or sit a timed session by invitation; every mark names the sentence that earned it, or what is missing.";
    front_practice = "练习", "Practice";
    front_practice_text = "一次一题，随时对照参考答案；薄弱的题会按间隔再次出现。", "One question at a time, the model answer when you want it; what was weak comes back after a while.";
    front_invited = "收到了邀请？", "Invited?";
    front_invited_text = "打开邀请链接：先看清有几题、多少时间、会记录什么，按下开始才计时。", "Open the link you were given: it says how many questions, how long and what is recorded. The clock starts when you press start, not before.";
    front_make = "出题与评审", "Interviewers";
    front_make_text = "组一场面试、发邀请、复核评分。需要面试官账号。", "Set up an assessment, invite, review the grades. Needs an instructor's account.";
    assessments = "面试场次", "Assessments";
    review = "复核", "Review";

    // Account
    sign_in_title = "账号", "Account";
    sign_in_lead = "不登录也能读、能做实验、能练习。有了账号，换一台电脑也能接着来；你作为访客做过的都会归到账号下。", "Reading, labs and practice work without an account. With one you can go on from another computer; what you did as a guest moves into it.";
    sign_in = "登录", "Sign in";
    sign_up = "新建账号", "Create an account";
    sign_out = "退出登录", "Sign out";
    email = "邮箱", "Email";
    password = "密码", "Password";
    password_rule = "至少 10 个字符。", "At least 10 characters.";
    old_password = "现在的密码", "Current password";
    new_password = "新密码", "New password";
    change_password = "修改密码", "Change the password";
    password_changed = "密码已修改，其他浏览器上的登录已失效。", "The password was changed; other browsers have been signed out.";
    display_name = "显示的名字", "Name to show";
    you_are = "你现在的身份", "You are";
    you_are_nobody = "还没有登录，也没有留下过任何内容。", "Not signed in, and nothing of yours is stored yet.";
    you_are_guest = "访客：内容只和这个浏览器绑定。", "A guest: your work is tied to this browser alone.";
    role_learner = "学习者", "learner";
    role_instructor = "面试官", "instructor";
    role_admin = "管理员", "administrator";
    export_mine = "下载关于我的全部数据", "Download everything stored about me";

    // Invitation
    invitation_title = "面试邀请", "Invitation to an interview";
    invited_as = "邀请给", "Invitation for";
    what_awaits = "会是什么样", "What awaits you";
    awaits_clock = "按下“开始”才计时，之后不能暂停。时钟由服务器走，关掉页面也不会停。", "The clock starts when you press start and cannot be paused. It is the server's: closing the page does not stop it.";
    awaits_order = "题目可以按任意顺序回答，随时回头修改，直到提交或时间用完。", "Answer in any order and change what you like until you submit or the time is over.";
    awaits_saving = "写下的内容随时自动保存。刷新、崩溃、断网都不会丢；时间到时以最后保存的为准。", "What you write is saved as you write. A reload, a crash or a lost network loses nothing; when the time is over, what was saved last counts.";
    awaits_record = "会记录：离开这个页面的时刻、超过 200 个字符的粘贴、断网的时长。评审看得到，但它们本身不会扣分。", "Recorded: when you leave this page, pastes of more than 200 characters, how long you were offline. Reviewers see them; by themselves they never cost a mark.";
    awaits_grading = "先由程序按评分细则给分并说明理由，面试官可以逐项更正。", "A program grades by the rubric and says why; an instructor can correct any point.";
    awaits_markdown = "用 Markdown 作答，公式写在 $ 之间，旁边有预览。", "Answers are Markdown, with formulae between $ signs and a preview beside them.";
    name_on_report = "报告上的名字", "Name on the report";
    name_hint = "留空就用邀请上的名字。", "Leave it empty to use the name on the invitation.";
    start = "开始计时", "Start the clock";
    starting = "正在开始…", "Starting…";
    go_on = "回到进行中的面试", "Back to your session";
    valid_until = "邀请有效期至", "Valid until";
    invitation_expired = "邀请已经过期。请向发出邀请的人要一个新的链接。", "This invitation has expired. Ask whoever sent it for a new link.";
    invitation_revoked = "邀请已被撤回。请向发出邀请的人确认。", "This invitation was withdrawn. Ask whoever sent it.";
    invitation_closed = "这场面试已经结束，不能再开始了。", "This assessment is closed and cannot be started any more.";
    invitation_taken = "这个邀请已经在别的浏览器里开始了。如果那是你，请回到那个浏览器，或登录同一个账号。", "Somebody began with this invitation in another browser. If it was you, go back to that browser or sign in to the same account.";
    no_invitation = "没有这样的邀请。检查链接是否完整。", "There is no such invitation. Check that the link is complete.";

    // Sitting
    sitting_title = "面试进行中", "Your session";
    time_left = "剩余时间", "Time left";
    questions = "题目", "Questions";
    unanswered = "未作答", "no answer";
    answered = "已作答", "answered";
    not_saved = "未保存", "not saved";
    your_answer = "你的回答", "Your answer";
    preview = "预览", "Preview";
    preview_empty = "写下的内容会显示在这里。", "What you write appears here.";
    preview_failed = "预览没能加载；书写和保存不受影响。", "The preview did not load; writing and saving work all the same.";
    editor_help = "Markdown；公式写在 $ 或 $$ 之间。Tab 键离开输入框，Ctrl+] 缩进，Ctrl+[ 取消缩进。", "Markdown; formulae between $ or $$. Tab leaves the field, Ctrl+] indents, Ctrl+[ takes it back.";
    status_empty = "还没有写", "Nothing written";
    status_typing = "正在写…", "Writing…";
    status_saving = "正在保存…", "Saving…";
    status_saved = "已保存", "Saved";
    status_offline = "连不上服务器：已存在这个浏览器里，恢复后会自动发送。", "No connection: kept in this browser, and sent when it is back.";
    status_refused = "服务器没有接受：", "The server refused it: ";
    conflict_title = "这道题在另一个标签页里有更新的版本", "Another tab has a newer text for this question";
    conflict_text = "什么都没有被覆盖。请选择要保留哪一份；另一份仍然留在“以前的版本”里，或留在另一个标签页里。", "Nothing was overwritten. Choose which to keep; the other stays among the earlier versions or in the other tab.";
    keep_mine = "保留这里的", "Keep what is here";
    take_theirs = "换成服务器上的", "Take the stored one";
    stored_text = "服务器上的文本", "The stored text";
    second_tab = "这场面试同时开在另一个标签页里。只在一个里面写，免得互相冲突。", "This session is open in another tab as well. Write in one of them only.";
    history = "以前的版本", "Earlier versions";
    history_restore = "恢复这个版本", "Restore this version";
    history_none = "还没有保存过的版本。", "No version has been saved yet.";
    previous_question = "上一题", "Previous question";
    next_question = "下一题", "Next question";
    submit_all = "提交整场", "Submit everything";
    submit_title = "提交整场面试？", "Submit the whole session?";
    submit_final = "提交之后不能再修改。", "After this nothing can be changed.";
    submit_missing = "还没有作答的题：", "Questions without an answer:";
    submit_none_missing = "每道题都有回答。", "Every question has an answer.";
    submit_now = "确认提交", "Submit";
    submit_back = "继续作答", "Go on writing";
    submit_saving = "正在保存并提交…", "Saving and submitting…";
    submit_unsaved = "还有内容没能存到服务器，所以没有提交。网络恢复后再试。", "Something could not be saved yet, so nothing was submitted. Try again when the connection is back.";
    time_over_now = "时间到，正在收卷…", "The time is over; collecting your answers…";
    ended_submitted = "已经提交。", "Submitted.";
    ended_time_over = "时间到了，以最后保存的内容为准。", "The time is over; what was saved last counts.";
    ended_text = "下面是你的回答，不能再修改。", "Your answers are below and can no longer be changed.";
    open_report = "打开报告", "Open the report";
    report_later = "报告在复核完成后可以看。", "The report can be opened once the review is finished.";
    no_sitting = "没有这场面试，或者它不属于这个浏览器里的账号。", "There is no such session, or it does not belong to the account in this browser.";
    nothing_written = "没有作答。", "No answer.";
    ten_minutes = "还剩 10 分钟。", "10 minutes left.";
    five_minutes = "还剩 5 分钟。", "5 minutes left.";
    one_minute = "还剩 1 分钟。", "1 minute left.";
}

/// `8 道题，45 分钟`
pub fn amount(lang: Lang, questions: u32, seconds: u32) -> String {
    let time = duration(lang, seconds);
    match (lang, questions) {
        (Lang::Zh, n) => format!("{n} 道题，共 {time}"),
        (Lang::En, 1) => format!("1 question, {time}"),
        (Lang::En, n) => format!("{n} questions, {time}"),
    }
}

/// `45 分钟`, `1 分 30 秒`
pub fn duration(lang: Lang, seconds: u32) -> String {
    match (lang, seconds / 60, seconds % 60) {
        (Lang::Zh, 0, s) => format!("{s} 秒"),
        (Lang::Zh, m, 0) => format!("{m} 分钟"),
        (Lang::Zh, m, s) => format!("{m} 分 {s} 秒"),
        (Lang::En, 0, s) => format!("{s} s"),
        (Lang::En, m, 0) => format!("{m} min"),
        (Lang::En, m, s) => format!("{m} min {s} s"),
    }
}

/// `第 4 题`, `Question 4`
pub fn question(lang: Lang, number: u32) -> String {
    match lang {
        Lang::Zh => format!("第 {number} 题"),
        Lang::En => format!("Question {number}"),
    }
}

/// `第 2 层 · 算法与并行策略`
pub fn level(lang: Lang, level: u32) -> String {
    let title = ringlab_interview::bank::level_title(level);
    match lang {
        Lang::Zh => format!("第 {level} 层 · {}", title.zh),
        Lang::En => format!("Level {level} · {}", title.en),
    }
}

/// `已保存 12:30:05`
pub fn saved_at(lang: Lang, time: &str) -> String {
    format!("{} {time}", status_saved(lang))
}

/// `1,204 个字符`
pub fn characters(lang: Lang, n: usize) -> String {
    match lang {
        Lang::Zh => format!("{n} 个字符"),
        Lang::En => format!("{n} characters"),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_sentence_is_there_in_both_languages() {
        crate::strings::tests::both_languages(super::ALL, &[]);
    }
}
