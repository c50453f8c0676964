//! The question bank as everyone may see it.

mod common;

use common::{Browser, Server};
use ringlab_interview::api::QuestionCard;
use ringlab_interview::bank;

#[tokio::test]
async fn anyone_may_list_the_questions_and_their_answers_stay_here() {
    let server = Server::start();
    let mut browser = Browser::new(&server);
    let answer = browser.get("/api/v1/questions").await;
    let cards: Vec<QuestionCard> = answer.json();
    assert!(cards.len() >= 10 && cards.is_sorted_by_key(|card| card.number), "{cards:?}");
    for card in &cards {
        assert_eq!((card.level, card.topic), (bank::level(card.number), bank::topic(card.number)));
        assert_eq!(card.gate, bank::GATES.contains(&card.number));
        assert!(!card.title.zh.is_empty() && !card.title.en.is_empty());
    }
    assert!(!answer.text.contains("core") && browser.cookie.is_none());
}
