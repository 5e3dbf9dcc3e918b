//! What would be done, as data and in words.

use std::fmt;

use serde::Serialize;

use crate::decide::Explanation;

/// What would be done.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// Name of the agent that would do it.
    pub agent: String,
    /// Name of the APIExport.
    pub export: String,
    /// What would be written into it, in words.
    pub export_changes: Vec<String>,
    /// One for each PublishedResource.
    pub published_resources: Vec<Published>,
    /// Why something may be missing.
    pub incomplete: Option<String>,
}

/// What would be done for one PublishedResource.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Published {
    /// Its name.
    pub name: String,
    /// What is wrong with it.
    pub problem: Option<String>,
    /// What is doubtful about its rules although they are valid.
    pub doubts: Vec<String>,
    /// Name of its schema.
    pub schema: Option<String>,
    /// Whether the schema exists in kcp.
    pub schema_exists: bool,
    /// Why its objects are left alone, if they are.
    pub idle: Option<String>,
    /// What a running agent has reported on it and that cannot be told from here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub reported: Vec<String>,
    /// Consumers' objects.
    pub objects: Vec<Explained>,
}

/// What would be done for one object.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explained {
    /// Logical cluster.
    pub cluster: String,
    /// Path of the workspace, if it is known.
    pub workspace: Option<String>,
    /// Namespace and name.
    pub object: String,
    /// What is wrong.
    pub error: Option<String>,
    /// What would be done.
    #[serde(flatten)]
    pub plan: Option<Explanation>,
}

impl Explained {
    /// Whether something is wrong with it.
    pub fn fails(&self) -> bool {
        self.error.is_some() || self.plan.as_ref().is_some_and(|plan| !plan.problems.is_empty())
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Agent {}", self.agent)?;
        writeln!(f, "\nAPIExport {}", self.export)?;
        match self.export_changes.as_slice() {
            [] => writeln!(f, "  is up to date")?,
            changes => changes.iter().try_for_each(|change| writeln!(f, "  would {change}"))?,
        }
        for published in &self.published_resources {
            write!(f, "\n{published}")?;
        }
        if self.published_resources.is_empty() {
            writeln!(f, "\nThere is no PublishedResource.")?;
        }
        if let Some(problem) = &self.incomplete {
            writeln!(f, "\nIncomplete: {problem}")?;
        }
        writeln!(f, "\nNothing was written.")
    }
}

impl fmt::Display for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "PublishedResource {}", self.name)?;
        if let Some(problem) = &self.problem {
            writeln!(f, "  problem: {problem}")?;
        }
        self.doubts.iter().try_for_each(|doubt| writeln!(f, "  doubtful: {doubt}"))?;
        match &self.schema {
            Some(schema) if self.schema_exists => writeln!(f, "  schema {schema} exists")?,
            Some(schema) => writeln!(f, "  schema {schema} would be created")?,
            None => {}
        }
        if let Some(idle) = &self.idle {
            return writeln!(f, "  objects are left alone: {idle}");
        }
        self.reported.iter().try_for_each(|told| writeln!(f, "  the running agent reports {told}"))?;
        let steps = |object: &&Explained| object.plan.as_ref().is_some_and(|plan| !plan.steps.is_empty());
        let busy = self.objects.iter().filter(steps).count();
        let failing = self.objects.iter().filter(|object| object.fails()).count();
        let noun = if self.objects.len() == 1 { "object" } else { "objects" };
        write!(f, "  {} {noun}, {busy} with something to do", self.objects.len())?;
        if failing > 0 {
            write!(f, ", {failing} with errors")?;
        }
        writeln!(f)?;
        self.objects.iter().try_for_each(|object| write!(f, "{object}"))
    }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let place = self.workspace.as_deref().unwrap_or(&self.cluster);
        write!(f, "  {place} {}: ", self.object)?;
        match (&self.error, &self.plan) {
            (Some(error), _) => writeln!(f, "error: {error}"),
            (None, None) => writeln!(f, "nothing is known"),
            (None, Some(plan)) => {
                writeln!(f, "{}", plan.why)?;
                plan.problems.iter().try_for_each(|problem| writeln!(f, "    error: {problem}"))?;
                let mut steps = plan.steps.iter().enumerate();
                steps.try_for_each(|(number, step)| writeln!(f, "    {}. {step}", number + 1))?;
                plan.waits.iter().try_for_each(|wait| writeln!(f, "    waits: {wait}"))
            }
        }
    }
}
