//! Lists, page by page.

use http::Method;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::client::Client;
use crate::error::Error;
use crate::object::Object;
use crate::resource::{Resource, push_query};

const PAGE_SIZE: u32 = 500;
/// What a page counts for at least.
const SMALLEST_PAGE: usize = 64 << 10;

/// What to list.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct ListOptions {
    /// Label selector.
    pub label_selector: Option<String>,
    /// Field selector.
    pub field_selector: Option<String>,
}

impl ListOptions {
    /// The objects with these labels.
    pub fn labels(selector: impl Into<String>) -> Self {
        Self { label_selector: Some(selector.into()), ..Self::default() }
    }

    /// The objects with these fields, such as `metadata.name=a`.
    pub fn fields(selector: impl Into<String>) -> Self {
        Self { field_selector: Some(selector.into()), ..Self::default() }
    }

    /// The start of a query string, or nothing.
    pub(crate) fn query(&self) -> String {
        let mut query = String::new();
        for (key, selector) in [("labelSelector", &self.label_selector), ("fieldSelector", &self.field_selector)] {
            if let Some(selector) = selector.as_deref().filter(|selector| !selector.is_empty()) {
                push_query(&mut query, key, selector);
            }
        }
        query
    }
}

/// One page of a list.
pub(crate) struct Page {
    pub(crate) items: Vec<Object>,
    pub(crate) resource_version: String,
    pub(crate) next: Option<String>,
    /// What it counts for in the limit on lists. Small pages count as if they were larger, so that empty ones have an end too.
    pub(crate) bytes: usize,
}

impl Page {
    fn parse(body: &[u8], resource: &Resource) -> Result<Self, serde_json::Error> {
        #[derive(Deserialize)]
        struct List<'a> {
            #[serde(default)]
            metadata: ListMetadata,
            #[serde(borrow, default)]
            items: Option<Vec<&'a RawValue>>,
        }
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct ListMetadata {
            resource_version: String,
            r#continue: String,
        }
        let list: List = serde_json::from_slice(body)?;
        let mut items = Vec::new();
        for raw in list.items.unwrap_or_default() {
            match Object::parse(raw.get(), Some(resource)) {
                Ok(object) => items.push(object),
                Err(problem) => tracing::warn!(%resource, %problem, "skipping an item of a list"),
            }
        }
        let next = Some(list.metadata.r#continue).filter(|token| !token.is_empty());
        let bytes = body.len().max(SMALLEST_PAGE);
        Ok(Self { items, resource_version: list.metadata.resource_version, next, bytes })
    }
}

impl Client {
    /// All objects that match, fetched page by page; without a namespace, those of all namespaces.
    pub async fn list(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<Vec<Value>, Error> {
        let all = self.list_compact(resource, namespace, options).await?;
        all.iter().map(Object::read).collect()
    }

    /// The same in compact form, which takes far less room.
    pub async fn list_compact(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        options: &ListOptions,
    ) -> Result<Vec<Object>, Error> {
        let mut page = self.list_page(resource, namespace, options, Some(PAGE_SIZE), None).await?;
        let (mut all, mut bytes) = (page.items, page.bytes);
        while let Some(token) = page.next {
            page = match self.list_page(resource, namespace, options, Some(PAGE_SIZE), Some(&token)).await {
                Ok(page) => page,
                Err(error) if error.is_gone() => {
                    // The pages were read too slowly; a list in one piece cannot expire.
                    all.clear();
                    bytes = 0;
                    self.list_page(resource, namespace, options, None, None).await?
                }
                Err(error) => return Err(error),
            };
            bytes += page.bytes;
            if bytes > self.most() {
                return Err(self.too_large(&resource.list_path(namespace)));
            }
            all.append(&mut page.items);
        }
        Ok(all)
    }

    /// One page of a list; `limit: None` asks for everything at once.
    pub(crate) async fn list_page(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        options: &ListOptions,
        limit: Option<u32>,
        token: Option<&str>,
    ) -> Result<Page, Error> {
        self.list_page_within(resource, namespace, options, (limit, self.most()), token).await
    }

    /// The same, of so many bytes at most.
    pub(crate) async fn list_page_within(
        &self,
        resource: &Resource,
        namespace: Option<&str>,
        options: &ListOptions,
        (limit, most): (Option<u32>, usize),
        token: Option<&str>,
    ) -> Result<Page, Error> {
        let mut query = options.query();
        if let Some(limit) = limit {
            push_query(&mut query, "limit", &limit.to_string());
        }
        if let Some(token) = token {
            push_query(&mut query, "continue", token);
        }
        let path = format!("{}{query}", resource.list_path(namespace));
        let body = self.list_bytes(&path, most).await?;
        Page::parse(&body, resource).map_err(|problem| Error::Decode {
            request: self.describe(&Method::GET, &path),
            problem: problem.to_string(),
        })
    }
}
