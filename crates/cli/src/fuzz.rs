//! What fuzzing asks of the configuration. The function takes any bytes, and panics where a promise is broken; `fuzz` has the list.

use std::ffi::OsString;

use clap::CommandFactory;

use crate::args::Args;
use crate::config::Configuration;
use crate::exit::Exit;
use crate::parse::matched;

/// A file of settings, and the command line that is read with them.
pub fn configuration(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let arguments = ["bellwether", "run", "demo"].map(OsString::from);
    let read = Configuration::default().with_text(text);
    let outcome = read.and_then(|mut configuration| {
        let (_, found) = matched(Args::command(), &arguments, &mut configuration)?;
        match found {
            Ok(found) => assert_eq!(found.subcommand_name(), Some("run"), "a file chooses no command"),
            // What the file has no part in cannot be wrong here.
            Err(error) => {
                let blamed = configuration.blamed_for(&error, &arguments);
                assert!(blamed.is_some_and(|failure| failure.exit() == Exit::Usage), "{error}");
            }
        }
        Ok(())
    });
    if let Err(failure) = outcome {
        assert!(failure.exit() == Exit::Usage, "{failure}");
        assert!(failure.to_string().len() <= 8 * text.len() + 8_192, "{failure}");
    }
}
