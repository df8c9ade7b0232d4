//! Which buckets are refused: those whose settings would make elections unsafe or wedge them, each with what to change.

use crate::bucket_api::StreamSettings;

/// Why nothing can be kept in a bucket with these settings; `all` are the subjects that it should have.
pub(crate) fn unfit(settings: &StreamSettings, all: &str) -> Option<&'static str> {
    let limited = settings.max_msgs > 0 || settings.max_bytes > 0;
    let reason = if settings.subjects != [all] {
        "its stream does not take exactly the bucket's subjects: use a bucket that was made as one"
    } else if settings.mirror.is_some()
        || settings.sources.as_ref().is_some_and(|sources| !sources.is_empty())
    {
        "it is a copy of another: name the bucket that it is copied from"
    } else if settings.subject_transform.is_some() {
        "it renames keys: use a bucket without a subject transform"
    } else if settings.retention != "limits" {
        "its stream removes what has been read: use one with retention by limits"
    } else if settings.storage == "memory" {
        "it is kept in memory, so leaderships and epochs are forgotten when servers restart: use file storage"
    } else if settings.discard != "new" && limited {
        "it throws old records away when it is full: let it discard new ones, or take its limits away"
    } else if settings.discard_new_per_subject {
        "it takes no second record of a key, so nothing can be renewed: turn discard_new_per_subject off"
    } else if settings.sealed {
        "it is sealed: use another"
    } else if settings.no_ack {
        "it acknowledges nothing: turn acknowledgement on"
    } else if settings.persist_mode.as_deref() == Some("async") {
        "it acknowledges what it has not written: set its persist mode back to the default"
    } else {
        return None;
    };
    Some(reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fit() -> StreamSettings {
        StreamSettings {
            subjects: vec!["$KV.b.>".to_owned()],
            retention: "limits".to_owned(),
            storage: "file".to_owned(),
            discard: "new".to_owned(),
            max_msgs: -1,
            max_bytes: -1,
            ..StreamSettings::default()
        }
    }

    #[test]
    fn settings_that_make_elections_unsafe_are_refused_with_what_to_change() {
        assert_eq!(unfit(&fit(), "$KV.b.>"), None);
        assert_eq!(
            unfit(&StreamSettings { discard: "old".into(), ..fit() }, "$KV.b.>"),
            None,
            "nothing is ever discarded"
        );
        for (settings, part) in [
            (StreamSettings { subjects: vec!["$KV.b.*".into()], ..fit() }, "made as one"),
            (StreamSettings { mirror: Some(serde_json::json!({})), ..fit() }, "a copy"),
            (StreamSettings { retention: "workqueue".into(), ..fit() }, "retention by limits"),
            (StreamSettings { storage: "memory".into(), ..fit() }, "file storage"),
            (StreamSettings { discard: "old".into(), max_bytes: 9, ..fit() }, "discard new"),
            (StreamSettings { discard_new_per_subject: true, ..fit() }, "discard_new_per_subject"),
            (StreamSettings { sealed: true, ..fit() }, "sealed"),
            (StreamSettings { no_ack: true, ..fit() }, "acknowledgement"),
            (StreamSettings { persist_mode: Some("async".into()), ..fit() }, "persist mode"),
        ] {
            let sentence = unfit(&settings, "$KV.b.>").expect("unfit");
            assert!(sentence.contains(part), "{sentence}");
        }
    }
}
