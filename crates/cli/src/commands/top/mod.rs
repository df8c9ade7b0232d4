//! `bellwether top`: elections, leaders, epochs and renewals, live. Reads, and writes nothing.
//!
//! It follows what it shows and waits for the store's news; a timer only draws ages and asks for elections that are new. An
//! error of the store after the first look is shown, and does not end the command: a screen that is left open goes on when the store is
//! back.

mod rows;
mod screen;

use std::time::Duration;

use bellwether::backend::{Notice, Notices, Signal as StoreSignal};
use bellwether::{Boot, Clock, ElectionName, Store, SystemClock, boot_now};
use futures_util::StreamExt;
use futures_util::future::OptionFuture;
use rustix::process::Signal;
use tokio::time::{Interval, MissedTickBehavior};

use self::rows::Rows;
use self::screen::Screen;
use super::signals::Signals;
use crate::args::{Format, Global, Top};
use crate::exit::{Exit, Failure};
use crate::{backend, output};

const USUAL_INTERVAL: Duration = Duration::from_secs(1);
/// How often the store is asked which elections there are. Listing reads every record in some stores.
const LIST_INTERVAL: Duration = Duration::from_secs(1);
/// Changes that come together are drawn together.
const SETTLE: Duration = Duration::from_millis(20);

/// Shows elections until asked to leave, or until nobody reads.
pub(crate) async fn top(global: &Global, top: &Top) -> Result<Exit, Failure> {
    let store = backend::connect(global)?;
    if top.elections.is_empty() {
        backend::can_list(&store)?;
    }
    let mut leave = Signals::new()?;
    let mut view = View { signals: store.backend().signals(), store, rows: Rows::default(), error: None };
    // Before the screen is taken: what is wrong at once is said where it can be read afterwards.
    view.look_at_all(&top.elections).await?;
    let how = How::of(global);
    let mut keys = how.keys();
    let every = top.interval.or_else(|| matches!(how, How::Screen(_)).then_some(USUAL_INTERVAL));
    let mut tick = every.map(interval);
    let mut list = interval(LIST_INTERVAL);
    let mut draw = true;
    let mut silent = Vec::new();
    loop {
        let now = boot_now();
        // Compared with what was shown, and not left to the timer below alone: whatever else wakes us may come at
        // the very instant that a leader falls silent.
        let silent_now = view.rows.silent(now);
        draw |= silent_now != silent;
        silent = silent_now;
        if draw && !how.show(&view, now)? {
            return Ok(Exit::Clean);
        }
        let silence = view.rows.next_silence(now);
        draw = tokio::select! {
            asked = leave.next() => match asked {
                Signal::WINCH => true,
                Signal::USR1 | Signal::USR2 => false,
                _ => return Ok(Exit::Clean),
            },
            Some(key) = keys.recv() => match key {
                b'q' | b'Q' => return Ok(Exit::Clean),
                _ => true,
            },
            notice = view.signals.next() => {
                let Some(notice) = notice else {
                    return Err(Failure::new(Exit::Unavailable, "the store reports no more changes"));
                };
                let news = view.take_in(notice).await;
                view.settle().await || news || matches!(how, How::Screen(_))
            }
            Some(_) = OptionFuture::from(tick.as_mut().map(Interval::tick)) => true,
            // A leader falls silent, and nobody else tells.
            Some(()) = OptionFuture::from(silence.map(until)) => false,
            _ = list.tick() => view.list_again(&top.elections).await,
        };
    }
}

/// What is shown, and where it comes from.
struct View {
    store: Store,
    signals: Notices,
    rows: Rows,
    /// The last trouble with the store, until it is over.
    error: Option<String>,
}

impl View {
    async fn look_at_all(&mut self, named: &[ElectionName]) -> Result<bool, bellwether::Error> {
        let names = if named.is_empty() { self.store.elections().await? } else { named.to_vec() };
        let known = self.rows.names();
        let gone: Vec<ElectionName> = known.iter().filter(|on| !names.contains(on)).cloned().collect();
        for on in &gone {
            self.store.backend().unfollow(on);
        }
        let mut news = self.rows.forget(&gone);
        for on in names.iter().filter(|on| !known.contains(on)) {
            self.store.backend().follow(on);
            let seen = self.store.backend().observe(on).await?;
            news |= self.rows.saw(on, seen, boot_now());
        }
        Ok(news)
    }

    /// True if there is anything new.
    async fn list_again(&mut self, named: &[ElectionName]) -> bool {
        let before = self.error.take();
        match self.look_at_all(named).await {
            Ok(news) => news || before.is_some(),
            Err(error) => {
                self.error = Some(error.to_string());
                self.error != before
            }
        }
    }

    /// True if it is news, and not merely a renewal.
    async fn take_in(&mut self, notice: Notice) -> bool {
        let now = boot_now();
        match (notice.election, notice.signal) {
            (Some(on), StoreSignal::Changed(seen)) => self.rows.saw(&on, seen, now),
            (_, StoreSignal::Doubt | StoreSignal::Gone) => {
                self.error = Some("the connection to the store fell silent; waiting for it".to_owned());
                true
            }
            (_, StoreSignal::Restored) => {
                self.error = None;
                let mut news = true;
                for on in self.rows.names() {
                    if let Ok(seen) = self.store.backend().observe(&on).await {
                        news |= self.rows.saw(&on, seen, boot_now());
                    }
                }
                news
            }
            _ => false,
        }
    }

    /// Takes in what comes within a moment; true if any of it is news.
    async fn settle(&mut self) -> bool {
        let end = tokio::time::sleep(SETTLE);
        tokio::pin!(end);
        let mut news = false;
        loop {
            tokio::select! {
                () = &mut end => return news,
                notice = self.signals.next() => match notice {
                    Some(notice) => news |= self.take_in(notice).await,
                    // Said by the next who asks.
                    None => return news,
                },
            }
        }
    }
}

/// Where it is shown.
enum How {
    Screen(Screen),
    Plain,
    Json,
}

impl How {
    fn of(global: &Global) -> How {
        match global.output {
            Format::Json => How::Json,
            Format::Table => Screen::take().map_or(How::Plain, How::Screen),
        }
    }

    fn keys(&self) -> tokio::sync::mpsc::UnboundedReceiver<u8> {
        match self {
            How::Screen(screen) => screen.keys(),
            How::Plain | How::Json => tokio::sync::mpsc::unbounded_channel().1,
        }
    }

    /// False when nobody reads any more.
    fn show(&self, view: &View, now: Boot) -> Result<bool, Failure> {
        let wall = SystemClock.wall();
        let mut lines = view.rows.table(now);
        if view.rows.names().is_empty() {
            lines = vec!["no elections here yet: they appear as they come".to_owned()];
        }
        let trouble = view.error.as_deref();
        match self {
            How::Json => output::line(&view.rows.json(now, wall, trouble).to_string()),
            How::Plain => {
                lines.extend(trouble.map(str::to_owned));
                // Tables are told apart by a blank line.
                lines.push(String::new());
                output::lines(&lines)
            }
            How::Screen(screen) => {
                let time = wall.to_string();
                let count = view.rows.names().len();
                let title = format!(
                    "bellwether top   {}   {count} {} on {}",
                    time.get(11..19).unwrap_or_default(),
                    if count == 1 { "election" } else { "elections" },
                    view.store.backend().name()
                );
                Ok(screen.draw(&title, &lines, trouble.unwrap_or("q leaves")))
            }
        }
    }
}

fn interval(every: Duration) -> Interval {
    let mut interval = tokio::time::interval(every);
    interval.set_missed_tick_behavior(MissedTickBehavior::Delay);
    // The first tick is now, and what it would draw has just been drawn.
    interval.reset();
    interval
}

async fn until(instant: Boot) {
    tokio::time::sleep(instant.since(boot_now())).await;
}
