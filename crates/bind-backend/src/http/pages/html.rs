//! HTML.

use std::fmt::Write as _;

use serde_json::Value;

/// The style of all pages: readable in light and dark, with a focus that can be seen.
pub(super) const STYLE: &str = include_str!("style.css");

/// Two rings that hold each other.
pub(super) const ICON: &str = include_str!("icon.svg");

/// Text as it may stand anywhere in HTML.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// What is the same on all pages.
pub(super) struct Layout<'a> {
    pub(super) title: &'a str,
    pub(super) provider: &'a str,
    pub(super) account: &'a str,
}

impl Layout<'_> {
    /// A whole page.
    pub(super) fn around(&self, content: &str) -> String {
        let (title, provider, account) = (escape(self.title), escape(self.provider), escape(self.account));
        let account =
            if account.is_empty() { account } else { format!("<p>Logged in as <strong>{account}</strong></p>") };
        format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"><title>{title} – {provider}</title>\
             <link rel=\"icon\" href=\"/icon.svg\" type=\"image/svg+xml\">\
             <link rel=\"stylesheet\" href=\"/style.css\"></head><body><a class=\"skip\" href=\"#main\">Skip to content</a>\
             <header><p>{provider}</p>{account}</header><main id=\"main\">{content}</main></body></html>\n"
        )
    }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

fn items(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

/// An error as it stands in a page: they begin with a small letter everywhere else.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first = letters.next().map(|first| first.to_uppercase().collect::<String>()).unwrap_or_default();
    escape(&(first + letters.as_str()))
}

/// What a provider says about a template or a collection, if it says something.
fn description(object: &Value) -> String {
    match text(object, "/spec/description").trim() {
        "" => String::new(),
        words => format!("<p>{}</p>", escape(words)),
    }
}

/// A number of things.
fn count(number: usize, one: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {one}s") }
}

/// Templates as a list, then collections.
pub(super) fn catalogue(templates: &Value, collections: &Value, link: impl Fn(&str) -> String) -> String {
    let templates = items(&templates["items"]);
    let mut out = String::new();
    if templates.is_empty() {
        out.push_str("<p>This provider offers nothing yet.</p>");
    } else {
        out.push_str("<ul class=\"cards\">");
        for template in templates {
            let (name, spec) = (text(template, "/metadata/name"), &template["spec"]);
            let parts =
                [("resources", "resource"), ("permissionClaims", "permission claim"), ("namespaces", "namespace")];
            let numbers = parts.map(|(field, one)| (items(&spec[field]).len(), one));
            let numbers: Vec<String> =
                numbers.iter().filter(|(number, _)| *number > 0).map(|(number, one)| count(*number, one)).collect();
            // Writing to a String cannot fail.
            let _ = write!(
                out,
                "<li><h2><a href=\"{}\">{}</a></h2>{}<p class=\"quiet\">{}</p></li>",
                escape(&link(name)),
                escape(name),
                description(template),
                numbers.join(", ")
            );
        }
        out.push_str("</ul>");
    }
    let collections = items(&collections["items"]);
    if !collections.is_empty() {
        out.push_str("<h2>Collections</h2><dl>");
        for collection in collections {
            let names = items(&collection["spec"]["templates"]).iter().map(|template| text(template, "/name"));
            let known = |name: &str| templates.iter().any(|template| template["metadata"]["name"] == name);
            let links = names.map(|name| {
                let shown = escape(name);
                if known(name) { format!("<a href=\"{}\">{shown}</a>", escape(&link(name))) } else { shown }
            });
            let _ = write!(
                out,
                "<dt>{}</dt><dd>{}<p>{}</p></dd>",
                escape(text(collection, "/metadata/name")),
                description(collection),
                links.collect::<Vec<_>>().join(", ")
            );
        }
        out.push_str("</dl>");
    }
    out
}

/// What a template holds.
pub(super) fn details(template: &Value) -> String {
    let mut out = format!("<h1>{}</h1>", escape(text(template, "/metadata/name")));
    out += &description(template);
    let resource = |value: &Value| {
        let (resource, group) = (text(value, "/resource"), text(value, "/group"));
        if group.is_empty() { resource.to_owned() } else { format!("{resource}.{group}") }
    };
    let spec = &template["spec"];
    let lists: [(&str, Vec<String>); 3] = [
        ("APIs that appear on your cluster", items(&spec["resources"]).iter().map(resource).collect()),
        (
            "Objects of yours that the provider may read and write",
            items(&spec["permissionClaims"]).iter().map(resource).collect(),
        ),
        (
            "Namespaces that are created on your cluster",
            items(&spec["namespaces"]).iter().map(|namespace| text(namespace, "/name").to_owned()).collect(),
        ),
    ];
    for (title, names) in lists.into_iter().filter(|(_, names)| !names.is_empty()) {
        let _ = write!(out, "<h2>{title}</h2><ul>");
        for name in names {
            let _ = write!(out, "<li><code>{}</code></li>", escape(&name));
        }
        out.push_str("</ul>");
    }
    out
}

/// What went wrong, and the way back.
pub(super) fn problem(title: &str, message: &str, back: &str) -> String {
    format!(
        "<h1>{}</h1><p class=\"problem\" role=\"alert\">{}</p><p><a href=\"{}\">Back to the catalogue</a></p>",
        escape(title),
        sentence(message),
        escape(back)
    )
}

/// What is wrong with a form that has come back.
pub(super) struct Mistake<'a> {
    pub(super) typed: &'a str,
    pub(super) problem: &'a str,
}

/// The form that orders a template. One that has come back keeps what was typed, and the field has the focus.
pub(super) fn form(action: &str, mark: &str, template: &str, mistake: Option<&Mistake<'_>>) -> String {
    let (alert, invalid) = match mistake {
        None => (String::new(), ""),
        Some(mistake) => {
            let words = sentence(mistake.problem);
            let alert = format!("<p id=\"problem\" class=\"problem\" role=\"alert\">{words}</p>");
            (alert, " aria-invalid=\"true\" aria-errormessage=\"problem\" autofocus")
        }
    };
    let typed = escape(mistake.map_or(template, |mistake| mistake.typed));
    let (action, mark, template) = (escape(action), escape(mark), escape(template));
    format!(
        "<h2>Bind</h2>{alert}<form method=\"post\" action=\"{action}\"><input type=\"hidden\" name=\"mark\" value=\"{mark}\">\
         <input type=\"hidden\" name=\"template\" value=\"{template}\"><label for=\"name\">Name of the binding</label>\
         <input id=\"name\" name=\"name\" value=\"{typed}\" required maxlength=\"253\" autocomplete=\"off\" \
         pattern=\"[a-z0-9]([a-z0-9.\\-]*[a-z0-9])?\" title=\"Lower-case letters, digits, - and .\" aria-describedby=\"hint\"{invalid}>\
         <p id=\"hint\" class=\"quiet\">Lower-case letters, digits, - and .</p><button>Bind</button></form>"
    )
}

/// What to do with what was bound.
pub(super) fn result(name: &str, yaml: &str, back: &str) -> String {
    format!(
        "<h1>{} is bound</h1><p>Three steps on your own cluster remain:</p><ol>\
         <li><p>Install the konnector: download <a href=\"/api/konnector-manifests\">konnector.yaml</a>, then</p>\
         <pre><code>kubectl apply -f konnector.yaml</code></pre></li>\
         <li><p><label for=\"bundle\">Save this text as bundle.yaml and apply it. It holds credentials: keep it to yourself.</label></p>\
         <textarea id=\"bundle\" readonly rows=\"16\" spellcheck=\"false\">{}</textarea>\
         <pre><code>kubectl apply -f bundle.yaml</code></pre></li>\
         <li><p>Give the konnector rights on the objects of what is bound:</p>\
         <pre><code>konnector roles | kubectl apply -f -</code></pre></li></ol><p><a href=\"{}\">All services</a></p>",
        escape(name),
        escape(yaml),
        escape(back)
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn nothing_that_a_provider_writes_becomes_markup() {
        let evil = "<script>\"'&";
        let templates = json!({"items": [{"metadata": {"name": evil}, "spec": {"description": evil,
            "resources": [{"group": evil, "resource": evil}], "permissionClaims": [], "namespaces": [{"name": evil}]}}]});
        let collections = json!({"items": [{"metadata": {"name": evil}, "spec": {"description": evil,
            "templates": [{"name": evil}, {"name": "gone"}]}}]});
        let pages = [
            catalogue(&templates, &collections, str::to_owned),
            details(&templates["items"][0]),
            form(evil, evil, evil, Some(&Mistake { typed: evil, problem: evil })),
            problem(evil, evil, evil),
            result(evil, evil, evil),
            Layout { title: evil, provider: evil, account: evil }.around(""),
        ];
        for page in pages {
            assert!(!page.contains("<script") && page.contains("&lt;script&gt;&quot;&#39;&amp;"), "{page}");
        }
    }

    #[test]
    fn an_empty_catalogue_says_so_and_numbers_agree_with_their_nouns() {
        assert!(catalogue(&json!({}), &json!({}), str::to_owned).contains("offers nothing yet"));
        assert_eq!((count(1, "resource"), count(0, "resource")), ("1 resource".to_owned(), "0 resources".to_owned()));
    }
}
