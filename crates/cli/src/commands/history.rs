//! `bellwether history`: past leaderships, where the backend keeps them.

use bellwether::{ElectionName, Past, past_json};
use serde_json::Value;

use crate::args::{Format, Global};
use crate::exit::{Exit, Failure};
use crate::{backend, output};

/// Prints them, oldest first.
pub(crate) async fn history(global: &Global, named: Option<&ElectionName>) -> Result<Exit, Failure> {
    let on = backend::election(global, named)?;
    let store = backend::connect(global)?;
    if !store.backend().capabilities().history {
        let sentence = format!("the {} store keeps no history", store.backend().name());
        return Err(Failure::new(Exit::Unavailable, sentence));
    }
    let all = store.history(&on).await.map_err(|error| {
        let failure = Failure::from(error);
        Failure::new(failure.exit(), format!("cannot read past leaderships: {failure}"))
    })?;
    if global.output == Format::Json {
        let all: Vec<Value> = all.iter().map(past_json).collect();
        output::line(&Value::Array(all).to_string())?;
        return Ok(Exit::Clean);
    }
    if all.is_empty() {
        output::line(&format!("no past leadership of {on} is recorded"))?;
        return Ok(Exit::Clean);
    }
    let rows: Vec<Vec<String>> = all.iter().map(row).collect();
    output::lines(&output::table(&["EPOCH", "LEADER", "SINCE", "UNTIL", "ENDED"], &rows))?;
    Ok(Exit::Clean)
}

fn row(past: &Past) -> Vec<String> {
    vec![
        past.epoch.to_string(),
        past.id.to_string(),
        past.since.to_string(),
        past.until.map_or("-".to_owned(), |until| until.to_string()),
        past.ended.clone().unwrap_or_else(|| "-".to_owned()),
    ]
}
