//! What a provider says of itself in the marketplace: the ProviderMetadata.

use std::path::{Path, PathBuf};

use anyhow::{Context, bail, ensure};
use carrick_json::manifest;
use data_encoding::BASE64;
use serde_json::{Map, Value, json};

use super::{CONTENT_FOR, UI, api_version};
use crate::init::offer::Offer;

/// All fields that it has.
const FIELDS: [&str; 11] = [
    "displayName",
    "description",
    "tags",
    "contacts",
    "documentation",
    "links",
    "preferredSupportChannels",
    "helpCenterData",
    "icon",
    "detailViewExtensions",
    "data",
];
/// Lists of `{displayName, url}`.
const LINKS: [&str; 4] = ["documentation", "links", "preferredSupportChannels", "helpCenterData"];
/// The largest picture that is written into an object. etcd has a limit, and everybody who opens the marketplace loads it.
const LARGEST_ICON: usize = 256 * 1024;

/// What is said instead of placeholders.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Card {
    fields: Map<String, Value>,
    is_written: bool,
}

impl Card {
    /// From a file, pictures and addresses of micro frontends, each of which may be missing.
    pub fn read(file: Option<&Path>, icons: &[PathBuf], extensions: &[String]) -> anyhow::Result<Self> {
        let mut fields = match file {
            None => Map::new(),
            Some(file) => {
                let place = file.display();
                let bytes = std::fs::read(file).with_context(|| format!("cannot read {place}"))?;
                fields_of(&manifest::text(&bytes)).with_context(|| format!("--provider-metadata {place}"))?
            }
        };
        if let Some(light) = icons.first() {
            let dark = icons.get(1).unwrap_or(light);
            let picture = |file: &PathBuf| -> anyhow::Result<Value> { Ok(json!({ "data": data_url(file)? })) };
            fields.insert("icon".to_owned(), json!({ "light": picture(light)?, "dark": picture(dark)? }));
        }
        if !extensions.is_empty() {
            let all: Vec<Value> = extensions.iter().map(|url| json!({ "url": url })).collect();
            fields.insert("detailViewExtensions".to_owned(), json!(all));
        }
        check(&fields)?;
        Ok(Self { fields, is_written: file.is_some() })
    }

    /// What was said, as `spec` of the object.
    pub fn said(&self) -> &Map<String, Value> {
        &self.fields
    }

    /// The object for an export, with what the CRD says where nothing was said.
    pub fn object(&self, offer: &Offer) -> Value {
        let mut spec = json!({
            "displayName": offer.kind,
            "description": offer.description(),
            "tags": [offer.singular],
        });
        if !self.is_written {
            spec["contacts"] = json!([{ "displayName": "Your team", "email": "team@example.com", "role": ["Owner"] }]);
            spec["documentation"] = json!([{ "displayName": "Documentation", "url": "https://example.com/docs" }]);
        }
        for (name, value) in &self.fields {
            spec[name] = value.clone();
        }
        json!({
            "apiVersion": api_version(UI),
            "kind": "ProviderMetadata",
            "metadata": { "name": offer.export, "labels": { CONTENT_FOR: offer.export } },
            "spec": spec,
        })
    }
}

/// The fields in a text: a whole ProviderMetadata, or its `spec` alone.
fn fields_of(text: &str) -> anyhow::Result<Map<String, Value>> {
    let all = carrick_json::yaml::values(text)?;
    let [one] = all.as_slice() else { bail!("it holds {} documents; one is wanted", all.len()) };
    let spec = if one["kind"] == "ProviderMetadata" { &one["spec"] } else { one };
    Ok(spec.as_object().context("it is no object; write displayName: …, contacts: … in YAML")?.clone())
}

/// Servers drop what they do not know, and refuse what is incomplete after everything else is there.
fn check(fields: &Map<String, Value>) -> anyhow::Result<()> {
    for name in fields.keys() {
        ensure!(
            FIELDS.contains(&name.as_str()),
            "a ProviderMetadata has no field {name}; there are {}",
            FIELDS.join(", ")
        );
    }
    let entries = |name: &str| fields.get(name).and_then(Value::as_array).into_iter().flatten();
    let is_text = |value: &Value| value.as_str().is_some_and(|text| !text.is_empty());
    for name in LINKS {
        let whole = entries(name).all(|link| is_text(&link["displayName"]) && is_text(&link["url"]));
        ensure!(whole, "each entry of {name} needs displayName and url");
    }
    ensure!(entries("contacts").all(|contact| is_text(&contact["displayName"])), "each contact needs a displayName");
    let named =
        |page: &Value| page["url"].as_str().is_some_and(|url| url.starts_with("https://") || url.starts_with('/'));
    ensure!(
        entries("detailViewExtensions").all(named),
        "each of detailViewExtensions needs a url that begins with https:// or /"
    );
    if let Some(icon) = fields.get("icon") {
        for theme in ["light", "dark"] {
            let one = &icon[theme];
            ensure!(
                is_text(&one["url"]) || is_text(&one["data"]),
                "icon.{theme} needs url or data; both themes are required"
            );
        }
    }
    Ok(())
}

/// A picture as a URL that contains it.
fn data_url(file: &Path) -> anyhow::Result<String> {
    let place = file.display();
    let ending = file.extension().and_then(|ending| ending.to_str()).unwrap_or_default().to_ascii_lowercase();
    let media = match ending.as_str() {
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "webp" => "image/webp",
        _ => bail!("--icon {place} is no picture that browsers show; give it .svg, .png, .jpg or .webp"),
    };
    let bytes = std::fs::read(file).with_context(|| format!("cannot read {place}"))?;
    ensure!(
        bytes.len() <= LARGEST_ICON,
        "--icon {place} has {} KiB, and everybody who opens the marketplace loads it; make it smaller than {} KiB, or \
         write icon.light.url and icon.dark.url into the file of --provider-metadata",
        bytes.len() / 1024,
        LARGEST_ICON / 1024
    );
    Ok(format!("data:{media};base64,{}", BASE64.encode(&bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::init::offer::Choices;
    use crate::init::offer::tests::bucket;

    /// A folder of its own, which goes with it.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Self {
            let folder = std::env::temp_dir().join(format!("carrick-card-{name}-{}", std::process::id()));
            std::fs::create_dir_all(&folder).unwrap();
            Self(folder)
        }

        fn file(&self, name: &str, content: &str) -> PathBuf {
            let file = self.0.join(name);
            std::fs::write(&file, content).unwrap();
            file
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    fn offer() -> Offer {
        Offer::new(&bucket(), Choices::default()).unwrap()
    }

    #[test]
    fn a_file_replaces_all_placeholders_and_pictures_travel_in_the_object() {
        let plain = Card::default().object(&offer());
        assert_eq!(plain["metadata"]["name"], "example.com");
        assert_eq!(plain["metadata"]["labels"][CONTENT_FOR], "example.com");
        assert_eq!(plain["spec"]["contacts"][0]["displayName"], "Your team");
        let folder = Folder::new("whole");
        let file = folder.file("card.yaml", "displayName: Buckets\ncontacts:\n- {displayName: Storage}\n");
        let icons = [folder.file("light.svg", "<svg/>"), folder.file("dark.PNG", "png")];
        let card = Card::read(Some(&file), &icons, &["https://ui.example.com/a".to_owned()]).unwrap();
        let spec = &card.object(&offer())["spec"];
        assert_eq!(spec["displayName"], "Buckets");
        assert_eq!(spec["description"], "A place for files.");
        assert_eq!(spec["contacts"], json!([{ "displayName": "Storage" }]));
        assert_eq!(spec.get("documentation"), None, "a placeholder stayed");
        assert_eq!(spec["icon"]["light"]["data"], "data:image/svg+xml;base64,PHN2Zy8+");
        assert_eq!(spec["icon"]["dark"]["data"], "data:image/png;base64,cG5n");
        assert_eq!(spec["detailViewExtensions"], json!([{ "url": "https://ui.example.com/a" }]));
        // One picture is for both themes.
        let card = Card::read(None, &icons[..1], &[]).unwrap();
        assert_eq!(card.said()["icon"]["dark"], card.said()["icon"]["light"]);
    }

    #[test]
    fn what_the_mesh_would_drop_or_refuse_is_refused_at_once() {
        let folder = Folder::new("refused");
        for (text, wanted) in [
            ("displayname: x", "has no field displayname"),
            ("contacts: [{email: a@example.com}]", "each contact needs a displayName"),
            ("links: [{url: https://example.com}]", "each entry of links needs displayName and url"),
            ("icon: {light: {url: https://example.com/a.svg}}", "icon.dark needs url or data"),
            ("detailViewExtensions: [{url: javascript:x}]", "begins with https:// or /"),
            ("a: 1\n---\nb: 2", "2 documents"),
            ("[a]", "no object"),
        ] {
            let error = format!("{:#}", Card::read(Some(&folder.file("card.yaml", text)), &[], &[]).unwrap_err());
            assert!(error.contains(wanted), "{text}: {error}");
        }
        for (name, content, wanted) in
            [("a.txt", "", "no picture"), ("a.svg", &*"x".repeat(LARGEST_ICON + 1), "256 KiB")]
        {
            let error = Card::read(None, &[folder.file(name, content)], &[]).unwrap_err().to_string();
            assert!(error.contains(wanted), "{name}: {error}");
        }
    }
}
