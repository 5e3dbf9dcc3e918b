//! Any bytes as a URL: nothing panics, and what is printed reads as the same place.
#![no_main]

use carrick_go::url::Url;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &[u8]| {
    let request = Url::parse_request(text);
    match Url::parse(text) {
        Ok(url) => {
            url.query_pairs().for_each(drop);
            let printed = url.to_bytes();
            // A path may gain slashes or a dot before it, but nothing leads to another host. One exception is Go's own:
            // without a host, a path that begins with two slashes is printed as it is and reads as a host.
            let reads_as_host = url.host.is_empty() && url.user.is_none() && url.escaped_path().starts_with(b"//");
            if let Ok(again) = Url::parse(&printed)
                && !reads_as_host
            {
                assert_eq!((&again.host, &again.query, &again.user), (&url.host, &url.query, &url.user));
                assert_eq!(again.to_bytes(), printed);
            }
        }
        Err(error) => assert!(error.to_string().contains(": ") && !error.plain().is_empty()),
    }
    if let Ok(url) = request {
        assert!(!url.scheme.is_empty() || url.path.starts_with(b"/") || url.path == b"*");
    }
});
