//! Elections in a directory, seen from outside: real files, real processes, real deaths.

mod bad_places;
mod bad_stores;
mod clones;
mod conformance;
mod death_and_silence;
mod foreign_files;
mod healing;
mod many_writers;
mod news;
mod notices;
mod odd_records;
mod own_threads;
mod signs_kept;
mod signs_of_life;
mod stopped_anywhere;
mod support;
mod takeover;
